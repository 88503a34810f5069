package sync

import (
	"context"
	"encoding/json"
	"fmt"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// ErrBadPage refuses what is not a page at all. Nothing of it is stored and the
// cursor stays, so that nothing in it is passed over.
var ErrBadPage = fault.New(fault.Malformed, "bad_page", "The peer sent something that is not a page of this protocol.")

// Apply stores the entries of a peer's page and how far that peer's log has been
// read, in one transaction: a crash leaves both or neither, and a page applied
// twice is applied once. The cursor moves to next only from the place it is at. An
// entry that cannot be taken is set aside and keeps no other away. It returns the
// cursor that is stored afterwards.
func (l *Log) Apply(ctx context.Context, peer, from, next string, entries []json.RawMessage) (string, error) {
	return l.Store(ctx, peer, from, next, l.Decode(entries))
}

// Store is Apply for entries that Decode has read.
func (l *Log) Store(ctx context.Context, peer, from, next string, b Batch) (string, error) {
	var stored string
	err := l.db.Write(ctx, func(tx *sqlite.Tx) (err error) {
		if err := l.applyTx(tx, b, "", true); err != nil {
			return err
		}
		l.crash("sync.applying")
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

// applyTx stores rows and facts, then lets each table derive what is its own. With
// watch, deletes that are too many at once are held.
func (l *Log) applyTx(tx *sqlite.Tx, b Batch, peerVersion string, watch bool) error {
	a := &applying{Log: l, tx: tx, peerVersion: peerVersion, changed: map[string][]UID{}, owners: map[string]bool{}}
	if err := l.setBadAside(tx, b.bad, peerVersion); err != nil {
		return err
	}
	pages := make([]page, 0, len(l.order))
	for _, t := range l.order {
		rows, err := a.believed(t, b.rows[t.Name])
		if err != nil {
			return err
		}
		if rows, err = a.storeNews(t, rows); err != nil {
			return err
		}
		p, err := a.look(t, rows)
		if err != nil {
			return err
		}
		pages = append(pages, p)
	}
	if watch {
		if err := a.holdDeletes(pages); err != nil {
			return err
		}
	}
	for _, p := range pages {
		if err := a.store(p); err != nil {
			return err
		}
	}
	return a.finish(b.facts)
}

// applying is one page on its way into the file.
type applying struct {
	*Log
	tx          *sqlite.Tx
	peerVersion string
	changed     map[string][]UID // table to the rows that changed here
	owners      map[string]bool  // those asked about: whether the directory has them
	news        int64            // live rows that were stored as news
	rekeyed     bool             // a key has led elsewhere since: what waited for that may be taken now
}

// finish stores the facts and lets each table derive.
func (a *applying) finish(facts []Fact) error {
	// Rows that were made here, lost, and come back, may be lost once more.
	for table, id := range a.last.ids {
		if err := a.reserve(table, id); err != nil {
			return fmt.Errorf("reserve ids of %s: %w", table, err)
		}
	}
	var news []Fact
	for _, f := range facts {
		isNew, err := a.applyFact(f)
		if err != nil {
			return err
		}
		if isNew {
			news = append(news, f)
		}
	}
	for _, t := range a.order {
		if uids := a.changed[t.Name]; len(uids) > 0 && t.Applied != nil {
			if err := t.Applied(a.tx, uids); err != nil {
				return fmt.Errorf("derive %s: %w", t.Name, err)
			}
		}
	}
	if len(news) > 0 && a.applied != nil {
		if err := a.applied(a.tx, news); err != nil {
			return err
		}
	}
	if a.rekeyed {
		return a.retryRekeyed()
	}
	return nil
}

// retryRekeyed tries what was set aside because its key was another row's.
func (a *applying) retryRekeyed() error {
	due, err := sqlite.All(a.tx, scanQuarantined, `SELECT `+quarantineColumns+` FROM sync_quarantine WHERE kind = 'id_reuse' ORDER BY at, tbl, uid`)
	if err != nil || len(due) == 0 {
		return err
	}
	_, err = a.retryTx(a.tx, due, a.peerVersion)
	return err
}

// applyFact stores a fact of the peer's and reports whether it is news. One that is
// older than facts are kept is let go.
func (a *applying) applyFact(f Fact) (bool, error) {
	if f.At < factsFrom(a.tx.Millis()) {
		return false, nil
	}
	isNew, err := a.addFact(a.tx, f)
	if err == nil {
		err = a.clearTx(a.tx, FactsTable, f.UID, f.At)
	}
	return isNew, err
}
