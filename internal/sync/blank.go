package sync

import (
	"time"

	"tandem/internal/sqlite"
)

const (
	day       = int64(24 * time.Hour / time.Millisecond) // in ms
	blankDays = 30                                       // a tombstone keeps its text so long after the peer has it
	factDays  = 90                                       // facts are kept so long
	someRows  = 200                                      // changed by one turn of upkeep
)

// factsFrom is the time from which facts are kept at now: a whole UTC day, so that
// both nodes agree on it all day.
func factsFrom(now int64) int64 { return max(now/day-factDays, 0) * day }

// markTx notes how far the peer has surely read today.
func (l *Log) markTx(tx *sqlite.Tx) error {
	type pair struct{ n, seq int64 }
	read, _, err := sqlite.One(tx, func(r sqlite.Row) (p pair, err error) { return p, r.Scan(&p.n, &p.seq) },
		`SELECT count(*), coalesce(min(seq), 0) FROM sync_tokens WHERE n IN (`+lastPresented+`)`)
	if err != nil || read.n < 3 {
		return err
	}
	return noteTx(tx, read.seq)
}

// noteTx notes how far the peer has read today, unless it had read so far before.
func noteTx(tx *sqlite.Tx, seq int64) error {
	_, err := tx.Exec(`
		INSERT INTO sync_marks (day, seq)
		SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM sync_marks WHERE day <= ?1 AND seq >= ?2)
		ON CONFLICT (day) DO UPDATE SET seq = excluded.seq`, tx.Millis()/day, seq)
	return err
}

// BlankTx takes the text out of some rows that were deleted, once the peer has had
// the delete for 30 days, and reports whether there are more. What stays says to
// whoever comes back after a year that the row is gone; neither stamp nor place
// changes. Alone says that there is no peer.
func (l *Log) BlankTx(tx *sqlite.Tx, alone bool) (more bool, err error) {
	read := l.next.surelyRead() // no poll that finds nothing is worth a write of its own
	if alone {
		read = l.last.seq
	}
	if read > 0 {
		if err := noteTx(tx, read); err != nil {
			return false, err
		}
	}
	until, found, err := sqlite.One(tx, sqlite.Value[int64], `SELECT seq FROM sync_marks WHERE day <= ? ORDER BY day DESC LIMIT 1`, tx.Millis()/day-blankDays)
	if err != nil || !found {
		return false, err
	}
	done := until
	for _, t := range l.order {
		if done, err = t.blankTx(tx, done); err != nil {
			return false, err
		}
	}
	if _, err := tx.Exec(`UPDATE sync_state SET blanked = ? WHERE blanked < ?`, done, done); err != nil || done < until {
		return done < until, err
	}
	_, err = tx.Exec(`DELETE FROM sync_marks WHERE seq < ?`, until)
	return false, err
}

// blankTx takes the text out of some rows up to a seq, and returns up to which one
// there is none left.
func (t *Table) blankTx(tx *sqlite.Tx, until int64) (int64, error) {
	rows, err := sqlite.All(tx, t.scanLenient, t.selectAll+`
		WHERE deleted_at IS NOT NULL AND seq > (SELECT blanked FROM sync_state) AND seq <= ?
		ORDER BY seq LIMIT ?`, until, someRows)
	if err != nil {
		return 0, err
	}
	for i := range rows {
		if len(rows[i].Fields) == 0 {
			continue
		}
		rows[i].Fields = nil
		if err := t.overwriteTx(tx, &rows[i]); err != nil {
			return 0, err
		}
	}
	if len(rows) == someRows {
		return rows[someRows-1].Seq, nil
	}
	return until, nil
}

// overwriteTx stores a row as it is, with the seq it has.
func (t *Table) overwriteTx(tx *sqlite.Tx, r *Row) error {
	args, err := t.appendArgs(nil, r)
	if err != nil {
		return err
	}
	_, err = tx.Exec(t.upsert(1), args...)
	return err
}

// PurgeFactsTx forgets some facts that are older than facts are kept, and reports
// whether there are more.
func (l *Log) PurgeFactsTx(tx *sqlite.Tx) (more bool, err error) {
	n, err := tx.Exec(`DELETE FROM facts WHERE uid IN (SELECT uid FROM facts WHERE at < ? LIMIT ?)`, factsFrom(tx.Millis()), someRows)
	return n == someRows, err
}
