package sync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// ErrBadPage refuses a page of which a part cannot be read. Nothing of it is
// stored and the cursor stays, so that nothing in it is passed over.
var ErrBadPage = fault.New(fault.Malformed, "bad_page", "The peer sent something that is not a row of this protocol.")

// Apply stores the entries of a peer's page and how far that peer's log has been
// read, in one transaction: a crash leaves both or neither, and a page applied
// twice is applied once. The cursor moves to next only from the place it is at.
// It returns the cursor that is stored afterwards.
func (l *Log) Apply(ctx context.Context, peer, from, next string, entries []json.RawMessage) (string, error) {
	rows, facts, err := l.decode(entries)
	if err != nil {
		return "", err
	}
	var stored string
	err = l.db.Write(ctx, func(tx *sqlite.Tx) error {
		if err := l.applyTx(tx, rows, facts); err != nil {
			return err
		}
		stored, _, err = sqlite.One(tx, sqlite.Value[string], `SELECT cursor FROM sync_cursors WHERE peer = ?`, peer)
		if err != nil || stored != from || next == from {
			return err
		}
		stored = next
		_, err = tx.Exec(`
			INSERT INTO sync_cursors (peer, cursor) VALUES (?, ?)
			ON CONFLICT (peer) DO UPDATE SET cursor = excluded.cursor`, peer, next)
		return err
	})
	return stored, err
}

// Cursor is how far this node has read the log of a peer; empty before the first page.
func (l *Log) Cursor(ctx context.Context, peer string) (string, error) {
	return sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (string, error) {
		c, _, err := sqlite.One(tx, sqlite.Value[string], `SELECT cursor FROM sync_cursors WHERE peer = ?`, peer)
		return c, err
	})
}

// decode reads a whole page before a byte of it is stored.
func (l *Log) decode(entries []json.RawMessage) (rows []Row, facts []Fact, err error) {
	for i, raw := range entries {
		all, err := members(raw)
		if err == nil && slices.ContainsFunc(all, isFact) {
			facts, err = appendFact(facts, raw)
		} else if err == nil {
			rows, err = l.appendRow(rows, all)
		}
		if err != nil {
			return nil, nil, ErrBadPage.Because(fmt.Errorf("entry %d: %w", i, err))
		}
	}
	return rows, facts, nil
}

func isFact(f Field) bool { return f.Name == "table" && string(f.Value) == `"`+FactsTable+`"` }

func appendFact(facts []Fact, raw json.RawMessage) ([]Fact, error) {
	var f Fact
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	f.Body = canonical(f.Body)
	return append(facts, f), f.check()
}

func (l *Log) appendRow(rows []Row, all []Field) ([]Row, error) {
	var r Row
	if err := r.read(all); err != nil {
		return nil, err
	}
	t := l.tables[r.Table]
	if t == nil {
		return nil, fmt.Errorf("unknown table %.40q", r.Table)
	}
	err := r.check()
	if err == nil {
		r.Fields, err = t.canonical(r.Fields)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Table, r.Ref, err)
	}
	return append(rows, r), nil
}

// applyTx stores rows and facts, then lets each table derive what is its own.
func (l *Log) applyTx(tx *sqlite.Tx, rows []Row, facts []Fact) error {
	changed := map[string][]UID{}
	for _, r := range rows {
		won, err := l.applyRow(tx, r)
		if err != nil {
			return err
		}
		if won {
			changed[r.Table] = append(changed[r.Table], r.UID)
		}
	}
	var news []Fact
	for _, f := range facts {
		isNew, err := l.addFact(tx, f)
		if err != nil {
			return err
		}
		if isNew {
			news = append(news, f)
		}
	}
	for _, t := range l.order {
		if uids := changed[t.Name]; len(uids) > 0 && t.Applied != nil {
			if err := t.Applied(tx, uids); err != nil {
				return fmt.Errorf("derive %s: %w", t.Name, err)
			}
		}
	}
	if len(news) > 0 && l.applied != nil {
		return l.applied(tx, news)
	}
	return nil
}

// applyRow stores a row that is newer than what is here, and reports whether it
// was. What both versions contain is kept in seen either way, without a new seq:
// it says nothing that the peer does not know.
func (l *Log) applyRow(tx *sqlite.Tx, in Row) (bool, error) {
	t := l.tables[in.Table]
	mine, known, err := sqlite.One(tx, t.scan, t.byKey, in.Origin, in.ID)
	if err != nil {
		return false, err
	}
	if known && mine.UID != in.UID {
		return false, ErrBadPage.Because(fmt.Errorf("%s %s: another row has this key here", in.Table, in.Ref))
	}
	if known && !newer(in, mine) {
		both := mine.Seen.merged(in.Seen)
		if both == mine.Seen {
			return false, nil
		}
		_, err := tx.Exec(`UPDATE `+t.Name+` SET seen = ? WHERE origin = ? AND id = ?`, string(both), in.Origin, in.ID)
		return false, err
	}
	if known {
		in.Seen = in.Seen.merged(mine.Seen)
	}
	in.Seq = l.seqTx(tx)
	args, err := t.args(in)
	if err != nil {
		return false, fmt.Errorf("%s %s: %w", in.Table, in.Ref, err)
	}
	if _, err := tx.Exec(t.upsert, args...); errors.Is(err, sqlite.ErrTaken) {
		return false, ErrBadPage.Because(fmt.Errorf("%s %s: the same row has another key here", in.Table, in.Ref))
	} else if err != nil {
		return false, fmt.Errorf("%s %s: %w", in.Table, in.Ref, err)
	}
	if in.Origin == l.origin { // made here, lost by a restore, and come back
		l.last.ids[in.Table] = max(l.last.ids[in.Table], in.ID)
	}
	return true, nil
}
