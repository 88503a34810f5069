package sync

import (
	"encoding/json"
	"errors"
	"time"

	"tandem/internal/sqlite"
)

// The breaker: so many deletes of the peer's in one page or hour are held until a
// person has said that they are meant. Replacing a node by an empty one, or a script
// that went wrong, must not empty the other one too.
const (
	fewDeletes   = 50 // that many are never held
	deletedShare = 4  // nor are deletes of less than one in four of the live rows

	minute = int64(time.Minute / time.Millisecond)
)

var errManyDeletes = errors.New("one of many deletes at once; an administrator decides whether they are meant")

// holdDeletes takes the deletes out of a page when they would be too many, and those
// of rows for which a person has not answered yet, however few they are.
func (a *applying) holdDeletes(pages []page) error {
	doomed, err := a.doomed(pages)
	if err != nil || len(doomed) == 0 {
		return err
	}
	waiting, err := a.waiting()
	if err != nil {
		return err
	}
	fresh := 0
	for _, in := range doomed {
		if !waiting[in.UID] {
			fresh++
		}
	}
	too, err := a.tooMany(fresh)
	if err != nil {
		return err
	}
	held := map[UID]bool{}
	for _, in := range doomed {
		if !too && !waiting[in.UID] {
			continue
		}
		if err := a.setRowAside(HeldDelete, errManyDeletes, *in); err != nil {
			return err
		}
		held[in.UID] = true
	}
	for i := range pages {
		pages[i].drop(held)
	}
	return nil
}

// doomed returns the entries that would delete a row which lives here. Those of an
// owner who is no longer in the directory are not among them.
func (a *applying) doomed(pages []page) ([]*Row, error) {
	var all []*Row
	for i := range pages {
		p := &pages[i]
		for j := range p.rows {
			in := &p.rows[j]
			if mine := p.mine[in.UID]; in.DeletedAt != nil && mine != nil && mine.DeletedAt == nil && newer(*in, *mine) {
				known, err := a.ownerKnown(mine.Owner)
				if err != nil {
					return nil, err
				}
				if known {
					all = append(all, in)
				}
			}
		}
	}
	return all, nil
}

// waiting is the rows whose delete is held.
func (a *applying) waiting() (map[UID]bool, error) {
	if a.aside == 0 {
		return nil, nil
	}
	uids, err := sqlite.All(a.tx, sqlite.Value[UID], `SELECT uid FROM sync_quarantine WHERE kind = 'held_delete'`)
	all := make(map[UID]bool, len(uids))
	for _, uid := range uids {
		all[uid] = true
	}
	return all, err
}

func (p *page) drop(uids map[UID]bool) {
	kept := p.rows[:0:0]
	for _, r := range p.rows {
		if !uids[r.UID] {
			kept = append(kept, r)
		}
	}
	p.rows = kept
}

// ownerKnown asks once a page for each owner.
func (a *applying) ownerKnown(owner string) (known bool, err error) {
	if a.known == nil {
		return true, nil
	}
	known, asked := a.owners[owner]
	if !asked {
		known, err = a.known(owner)
		a.owners[owner] = known
	}
	return known, err
}

// tooMany counts n deletes, unless with those of this hour they would be too many.
func (a *applying) tooMany(n int) (bool, error) {
	if n == 0 {
		return false, nil
	}
	now := a.tx.Millis() / minute
	if _, err := a.tx.Exec(`DELETE FROM sync_deletes WHERE minute <= ? OR minute > ?`, now-60, now); err != nil {
		return false, err
	}
	before, _, err := sqlite.One(a.tx, sqlite.Value[int64], `SELECT coalesce(sum(rows), 0) FROM sync_deletes`)
	if err != nil {
		return false, err
	}
	if total := before + int64(n); total > fewDeletes {
		live, err := a.liveTx(a.tx)
		if err != nil || total > (live-a.news+before)/deletedShare { // of what was here before the page
			return true, err
		}
	}
	_, err = a.tx.Exec(`
		INSERT INTO sync_deletes (minute, rows) VALUES (?, ?)
		ON CONFLICT (minute) DO UPDATE SET rows = rows + excluded.rows`, now, n)
	return false, err
}

func (l *Log) liveTx(tx *sqlite.Tx) (int64, error) {
	var live int64
	for _, t := range l.order {
		n, _, err := sqlite.One(tx, sqlite.Value[int64], `SELECT count(*) FROM `+t.Name+` WHERE deleted_at IS NULL`)
		if err != nil {
			return 0, err
		}
		live += n
	}
	return live, nil
}

// DecideHeldTx is a person's answer to the deletes that are held: they are meant, or
// the rows are to stay, which undoes the deletes on the other node too. It returns
// how many there were. All of them are one commit, so that no half of an answer can be
// left over: 15,000 take some 1.6 s, for which other writes wait.
func (l *Log) DecideHeldTx(tx *sqlite.Tx, meant bool) (int, error) {
	held, err := sqlite.All(tx, scanQuarantined, `SELECT `+quarantineColumns+` FROM sync_quarantine WHERE kind = 'held_delete'`)
	if err != nil || len(held) == 0 {
		return 0, err
	}
	if _, err := tx.Exec(`DELETE FROM sync_quarantine WHERE kind = 'held_delete'`); err != nil {
		return 0, err
	}
	l.recountTx(tx)
	var entries []json.RawMessage
	for _, q := range held {
		entries = append(entries, q.entry)
	}
	b := l.Decode(entries)
	if meant {
		return len(held), l.applyTx(tx, b, "", false)
	}
	return len(held), l.keepTx(tx, b)
}

// keepTx writes a new version above each delete, which says what is here.
func (l *Log) keepTx(tx *sqlite.Tx, b Batch) error {
	gone := Batch{rows: map[string][]Row{}} // where there is nothing to keep
	for _, t := range l.order {
		for _, deleted := range b.rows[t.Name] {
			row, found, err := sqlite.One(tx, t.scanLenient, t.byUID, deleted.UID[:])
			if err != nil {
				return err
			}
			if !found || row.DeletedAt != nil {
				gone.rows[t.Name] = append(gone.rows[t.Name], deleted)
				continue
			}
			if !newer(deleted, row) {
				continue
			}
			row.UpdatedAt = max(row.UpdatedAt, deleted.UpdatedAt)
			row.Seen = row.Seen.merged(deleted.Seen)
			if err := l.confirmTx(tx, t, &row); err != nil {
				return err
			}
		}
	}
	return l.applyTx(tx, gone, "", false)
}

// confirmTx stores a new version of this node's that says what the row says already. It
// touches none of that: some of it may be what cannot be read.
func (l *Log) confirmTx(tx *sqlite.Tx, t *Table, r *Row) error {
	l.EditTx(tx, &r.Head)
	if _, err := tx.Exec(`UPDATE `+t.Name+` SET updated_at = ?, updated_by = ?, seq = ?, seen = ? WHERE uid = ?`,
		r.UpdatedAt, r.UpdatedBy, r.Seq, string(r.Seen), r.UID[:]); err != nil {
		return err
	}
	if t.Applied == nil {
		return nil
	}
	return t.Applied(tx, []UID{r.UID})
}
