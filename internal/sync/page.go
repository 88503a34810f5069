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
	// PageRows is how many entries of the log a page holds at most, whatever the
	// reader asks for.
	PageRows = 5000
	// PageBytes is where a page ends however few entries it has; it holds one at least.
	PageBytes = 1 << 20
	// keptTokens is how many of the newest page tokens stay good, besides the
	// three that were last presented.
	keptTokens = 64
)

// Page is a stretch of a log.
type Page struct {
	Entries []json.RawMessage `json:"rows"`   // rows and facts, each naming its table
	Cursor  string            `json:"cursor"` // where the stretch ends; the cursor given when it is empty
	Reset   string            `json:"reset,omitempty"`
	End     int64             `json:"end"`            // the last place in the log, when the page was read
	At      int64             `json:"at"`             // the place where the stretch ends
	More    bool              `json:"more,omitempty"` // the log goes on after it
}

// entry is one row or fact in the order of the log; or one that cannot be sent.
type entry struct {
	seq  int64
	json json.RawMessage
	bad  *Quarantined
}

// Page returns what follows cursor, at most limit entries. A cursor that this log
// did not issue is not an error: the page then begins at the start and Reset says
// why, since reading again what is there already changes nothing and missing
// something would. The new cursor is durable before Page returns; an empty page
// writes nothing. A row that cannot be sent is set aside and does not stop the rest.
func (l *Log) Page(ctx context.Context, cursor string, limit int) (Page, error) {
	p, err := l.page(ctx, cursor, limit)
	if err == nil && p.Reset == notIssued {
		if err := l.renew(ctx, cursor); err != nil {
			return Page{}, err
		}
		p, err = l.page(ctx, cursor, limit)
		p.Reset = notIssued
	}
	return p, err
}

func (l *Log) page(ctx context.Context, cursor string, limit int) (Page, error) {
	l.pages.RLock()
	defer l.pages.RUnlock()
	p := Page{Cursor: cursor}
	var entries []entry
	from, err := sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (seq int64, err error) {
		if seq, p.Reset, err = l.positionTx(tx, cursor); err != nil {
			return 0, err
		}
		if p.End, err = l.endTx(tx); err != nil {
			return 0, err
		}
		entries, p.More, err = l.entriesTx(tx, seq, max(1, min(limit, PageRows)))
		return seq, err
	})
	p.At = from
	if p.Reset != "" {
		p.Cursor = "" // the start, until there is something to be sent
	}
	if err != nil || p.Reset == notIssued {
		return p, err
	}
	var bad []*Quarantined
	for _, e := range entries {
		if e.bad != nil {
			bad = append(bad, e.bad)
			continue
		}
		p.Entries, p.At = append(p.Entries, e.json), e.seq
	}
	if err := l.setAside(ctx, bad); err != nil {
		return p, err
	}
	if len(p.Entries) == 0 {
		if from > 0 {
			l.next.waits(reader{cursor, from})
		}
		return p, l.served(0)
	}
	if p.Cursor, err = l.issue(ctx, p.At, cursor, from); err != nil {
		return p, err
	}
	return p, l.served(p.At)
}

// issue returns the cursor of a page that ends at a place, for the reader who came with
// cursor, once it is durable: one that was made ahead if there is one.
func (l *Log) issue(ctx context.Context, end int64, cursor string, from int64) (made string, err error) {
	if made, ok := l.next.take(cursor, end); ok {
		void, err := sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (string, error) { _, reason, err := l.positionTx(tx, made); return reason, err })
		if err != nil || void == "" {
			return made, err
		}
	}
	err = l.db.Write(ctx, func(tx *sqlite.Tx) (err error) { made, err = l.issueTx(tx, end, cursor, from); return err })
	return made, err
}

func (l *Log) served(seq int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guard.served(seq, l.db.Now())
}

// notIssued is the reset of a cursor of this life that this life did not issue.
const notIssued = "cursor not issued by this log"

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
		return 0, notIssued, nil
	}
	return seq, "", nil
}

// issueTx makes the token of a page that ends at a place durable and returns its cursor,
// notes that the reader came back with cursor, which stands for from, and forgets tokens
// that no reader can still hold.
func (l *Log) issueTx(tx *sqlite.Tx, end int64, cursor string, from int64) (string, error) {
	token := newToken()
	if _, err := tx.Exec(`INSERT INTO sync_tokens (token, seq) VALUES (?, ?)`, token, end); err != nil {
		return "", err
	}
	if from > 0 {
		// In the order of presenting, also within a millisecond and under any clock.
		presented := cursor[strings.LastIndexByte(cursor, '.')+1:]
		if _, err := tx.Exec(`
			UPDATE sync_tokens
			SET presented_at = max(?, 1 + (SELECT coalesce(max(presented_at), 0) FROM sync_tokens))
			WHERE token = ?`, tx.Millis(), presented); err != nil {
			return "", err
		}
	}
	if err := l.markTx(tx); err != nil {
		return "", err
	}
	_, err := tx.Exec(`
		DELETE FROM sync_tokens
		WHERE n <= (SELECT max(n) FROM sync_tokens) - ?
		  AND n NOT IN (`+lastPresented+`)`, keptTokens)
	return fmt.Sprintf("%s.%d.%s", l.incarnation, end, token), err
}

// lastPresented are the three tokens that a reader last came with. It may ask for two
// pages ahead of the one that it is storing: the oldest of the three is what it surely
// has.
const lastPresented = `SELECT n FROM sync_tokens WHERE presented_at IS NOT NULL ORDER BY presented_at DESC LIMIT 3`

// entriesTx returns the next entries of all tables in the order of seq, at most
// limit that can be sent, and whether there are more.
func (l *Log) entriesTx(tx *sqlite.Tx, after int64, limit int) ([]entry, bool, error) {
	all, more, err := stretchTx(tx, factEntry, `SELECT `+factColumns+` FROM facts`, after, limit)
	if err != nil {
		return nil, false, err
	}
	mixed := len(all) > 0
	for _, t := range l.order {
		rows, goesOn, err := stretchTx(tx, t.entries(), t.selectAll, after, limit)
		if err != nil {
			return nil, false, err
		}
		mixed = mixed || len(all) > 0 && len(rows) > 0
		all, more = append(all, rows...), more || goesOn
	}
	if mixed {
		slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	}
	good, size := 0, 0
	for i, e := range all {
		if e.bad == nil {
			good++
		}
		if size += len(e.json); good > limit || good > 1 && size > PageBytes {
			return all[:i], true, nil
		}
	}
	return all, more, nil
}

// stretchTx returns the entries of one table that a page could hold, and whether it
// stopped before the end: what is beyond would not be in the page, and may be large.
func stretchTx(tx *sqlite.Tx, scan func(sqlite.Row) (entry, error), query string, after int64, limit int) ([]entry, bool, error) {
	var all []entry
	size, good, enough := 0, 0, errors.New("enough for a page")
	_, err := sqlite.All(tx, func(r sqlite.Row) (struct{}, error) {
		if size > PageBytes || good == limit {
			return struct{}{}, enough
		}
		e, err := scan(r)
		if e.bad == nil {
			good++
		}
		size += len(e.json)
		all = append(all, e)
		return struct{}{}, err
	}, query+` WHERE seq > ? ORDER BY seq`, after)
	if errors.Is(err, enough) {
		return all, true, nil
	}
	return all, false, err
}

// textRoom is how much of a page is written into one piece of memory.
const textRoom = 64 << 10

// entries returns what writes the rows of one statement for the peer, or says why one
// cannot be sent: its head is sound then, and names which.
func (t *Table) entries() func(sqlite.Row) (entry, error) {
	from := t.reader(true)
	var text []byte
	return func(r sqlite.Row) (entry, error) {
		row, err := from.sendable(r)
		if row.UID == (UID{}) {
			return entry{}, err
		}
		if err != nil {
			return entry{seq: row.Seq, bad: row.aside(Unencodable, err)}, nil
		}
		if cap(text)-len(text) < textRoom/16 {
			text = make([]byte, 0, textRoom)
		}
		start := len(text)
		text = row.appendJSON(text, row.Fields)
		return entry{seq: row.Seq, json: text[start:len(text):len(text)]}, nil
	}
}

// sendable reads a row as the peer is to have it. With an error comes what of it was
// read.
func (r *rowReader) sendable(from sqlite.Row) (Row, error) {
	row, err := r.scan(from)
	if err == nil {
		err = row.check()
	}
	if err != nil && row.DeletedAt != nil && row.UID != (UID{}) { // it says that it is deleted, and need say no more
		row.Fields = nil
		err = row.check()
	}
	return row, err
}

func factEntry(r sqlite.Row) (entry, error) {
	f, err := scanFact(r)
	if err != nil {
		return entry{}, err
	}
	if err := f.check(); err != nil {
		return entry{seq: f.Seq, bad: f.aside(Unencodable, err)}, nil
	}
	b, err := json.Marshal(struct {
		Table string `json:"table"`
		Fact
	}{FactsTable, f})
	return entry{seq: f.Seq, json: b}, err
}
