package sync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tandem/internal/sqlite"
)

const (
	// PageRows is how many entries of the log a page holds at most.
	PageRows = 1000
	// PageBytes is where a page ends however few entries it has; it holds one at least.
	PageBytes = 1 << 20
	// keptTokens is how many of the newest page tokens stay good, besides the one
	// that was last presented.
	keptTokens = 64
)

// Page is a stretch of a log.
type Page struct {
	Entries []json.RawMessage `json:"rows"`   // rows and facts, each naming its table
	Cursor  string            `json:"cursor"` // where the stretch ends; the cursor given when it is empty
	Reset   string            `json:"reset,omitempty"`
}

// entry is one row or fact in the order of the log.
type entry struct {
	seq  int64
	json json.RawMessage
}

// Page returns what follows cursor. A cursor that this log did not issue is not
// an error: the page then begins at the start and Reset says why, since reading
// again what is there already changes nothing and missing something would. The
// new cursor is durable before Page returns; an empty page writes nothing.
func (l *Log) Page(ctx context.Context, cursor string) (Page, error) {
	p := Page{Cursor: cursor}
	var entries []entry
	from, err := sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (seq int64, err error) {
		if seq, p.Reset, err = l.positionTx(tx, cursor); err != nil {
			return 0, err
		}
		entries, err = l.entriesTx(tx, seq)
		return seq, err
	})
	if err != nil || len(entries) == 0 {
		if p.Reset != "" {
			p.Cursor = "" // the start of a log that has nothing yet
		}
		return p, err
	}
	for _, e := range entries {
		p.Entries = append(p.Entries, e.json)
	}
	end, token := entries[len(entries)-1].seq, newToken()
	p.Cursor = fmt.Sprintf("%s.%d.%s", l.incarnation, end, token)
	return p, l.db.Write(ctx, func(tx *sqlite.Tx) error { return l.issueTx(tx, token, end, cursor, from) })
}

// positionTx returns the seq that cursor stands for, or 0 and the reason why the
// reader must begin again.
func (l *Log) positionTx(tx *sqlite.Tx, cursor string) (int64, string, error) {
	if cursor == "" {
		return 0, "", nil
	}
	parts := strings.Split(cursor, ".")
	if len(parts) != 3 {
		return 0, "unreadable cursor", nil
	}
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	switch {
	case err != nil:
		return 0, "unreadable cursor", nil
	case parts[0] != l.incarnation:
		return 0, "cursor of another incarnation", nil
	}
	at, known, err := sqlite.One(tx, sqlite.Value[int64], `SELECT seq FROM sync_tokens WHERE token = ?`, parts[2])
	if err != nil {
		return 0, "", err
	}
	if !known || at != seq {
		return 0, "cursor not issued by this log", nil
	}
	return seq, "", nil
}

// issueTx makes the token of a new page durable, notes that the reader came back
// with cursor, and forgets tokens that no reader can still hold.
func (l *Log) issueTx(tx *sqlite.Tx, token string, end int64, cursor string, from int64) error {
	if _, err := tx.Exec(`INSERT INTO sync_tokens (token, seq) VALUES (?, ?)`, token, end); err != nil {
		return err
	}
	if from > 0 {
		presented := cursor[strings.LastIndexByte(cursor, '.')+1:]
		if _, err := tx.Exec(`UPDATE sync_tokens SET presented_at = ? WHERE token = ?`, tx.Millis(), presented); err != nil {
			return err
		}
	}
	_, err := tx.Exec(`
		DELETE FROM sync_tokens
		WHERE n <= (SELECT max(n) FROM sync_tokens) - ?
		  AND n <> (SELECT coalesce(max(n), 0) FROM sync_tokens WHERE presented_at IS NOT NULL)`, keptTokens)
	return err
}

// entriesTx returns the next entries of all tables in the order of seq.
func (l *Log) entriesTx(tx *sqlite.Tx, after int64) ([]entry, error) {
	all, err := stretchTx(tx, factEntry, `SELECT `+factColumns+` FROM facts`, after)
	if err != nil {
		return nil, err
	}
	for _, t := range l.order {
		rows, err := stretchTx(tx, t.entry, t.selectAll, after)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	size := 0
	for i, e := range all {
		if size += len(e.json); i == PageRows || i > 0 && size > PageBytes {
			return all[:i], nil
		}
	}
	return all, nil
}

// stretchTx returns the entries of one table that a page could hold: what is
// beyond would not be in it, and may be large.
func stretchTx(tx *sqlite.Tx, scan func(sqlite.Row) (entry, error), query string, after int64) ([]entry, error) {
	var all []entry
	size, enough := 0, errors.New("enough for a page")
	_, err := sqlite.All(tx, func(r sqlite.Row) (struct{}, error) {
		if size > PageBytes {
			return struct{}{}, enough
		}
		e, err := scan(r)
		size += len(e.json)
		all = append(all, e)
		return struct{}{}, err
	}, query+` WHERE seq > ? ORDER BY seq LIMIT ?`, after, PageRows)
	if errors.Is(err, enough) {
		err = nil
	}
	return all, err
}

func (t *Table) entry(r sqlite.Row) (entry, error) {
	row, err := t.scan(r)
	if err != nil {
		return entry{}, err
	}
	b, err := row.MarshalJSON()
	return entry{row.Seq, b}, err
}

func factEntry(r sqlite.Row) (entry, error) {
	f, err := scanFact(r)
	if err != nil {
		return entry{}, err
	}
	b, err := json.Marshal(struct {
		Table string `json:"table"`
		Fact
	}{FactsTable, f})
	return entry{f.Seq, b}, err
}
