// Package sync keeps the rows and facts of two nodes alike. A domain makes and
// edits its rows in its own transactions and asks the Log for a stamp and a place
// in the order; the Log serves what follows a reader's cursor, and applies what
// the peer's log serves, by one rule that ends the same in any order and after any
// number of repeats. It knows no domain: newNode hands it the tables.
//
// Files that also need the standard package import this one as nodesync.
package sync

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	gosync "sync"

	"tandem/internal/sqlite"
)

// Options say whose log it is.
type Options struct {
	Node   string // this node's name; it signs each version
	Origin int64  // 0 or 1; it keys each row made here
	Tables []*Table
	Facts  func(*sqlite.Tx, []Fact) error // called within the transaction that applies facts from the peer
}

// Log is the order of all changes of one file, this node's and its peer's.
type Log struct {
	db          *sqlite.DB
	node        string
	origin      int64
	incarnation string
	writer      string // node/incarnation: who signs in seen
	tables      map[string]*Table
	order       []*Table
	applied     func(*sqlite.Tx, []Fact) error
	last        numbers // the writer's own

	mu      gosync.Mutex
	changed chan struct{} // closed and replaced after each commit that appends
	wakes   []func()
}

// NewLog opens the log of a file, and begins its first incarnation when it has none.
func NewLog(ctx context.Context, db *sqlite.DB, o Options) (*Log, error) {
	l := &Log{
		db: db, node: o.Node, origin: o.Origin, tables: map[string]*Table{}, order: o.Tables,
		applied: o.Facts, changed: make(chan struct{}),
	}
	for _, t := range o.Tables {
		t.prepare()
		l.tables[t.Name] = t
	}
	err := db.Write(ctx, func(tx *sqlite.Tx) (err error) {
		if l.last, err = l.countTx(tx); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO sync_state (one, incarnation) VALUES (1, ?) ON CONFLICT (one) DO NOTHING`,
			hex.EncodeToString(tx.Random(8))); err != nil {
			return err
		}
		l.incarnation, _, err = sqlite.One(tx, sqlite.Value[string], `SELECT incarnation FROM sync_state`)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	l.writer = l.node + "/" + l.incarnation
	return l, nil
}

// Incarnation names this life of the file.
func (l *Log) Incarnation() string { return l.incarnation }

// Changed returns a channel that closes at the next commit that appends. Take it
// before you look, so that no change falls between.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// OnChange has f called after each commit that appends.
func (l *Log) OnChange(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakes = append(l.wakes, f)
}

// Announce ends the waits on Changed. What the peer copies whole announces
// itself here too.
func (l *Log) Announce() {
	l.mu.Lock()
	close(l.changed)
	l.changed = make(chan struct{})
	wakes := l.wakes
	l.mu.Unlock()
	for _, f := range wakes {
		f()
	}
}

// numbers are the last ones given out. They live in memory and are used on the
// writer alone: a number that went to a transaction which was rolled back is never
// given out again, which leaves a gap and costs nothing.
type numbers struct {
	seq int64
	ids map[string]int64 // of the rows made here, a table each
}

// countTx finds the last numbers in the file. A reader's cursor may stand behind a
// row that is no longer there, but never behind the last page that was issued.
func (l *Log) countTx(tx *sqlite.Tx) (numbers, error) {
	last := numbers{ids: map[string]int64{}}
	for _, t := range l.order {
		id, _, err := sqlite.One(tx, sqlite.Value[int64], `SELECT coalesce(max(id), 0) FROM `+t.Name+` WHERE origin = ?`, l.origin)
		if err != nil {
			return last, err
		}
		last.ids[t.Name] = id
	}
	for _, table := range append(tableNames(l.order), FactsTable, "sync_tokens") {
		seq, _, err := sqlite.One(tx, sqlite.Value[int64], `SELECT coalesce(max(seq), 0) FROM `+table)
		if err != nil {
			return last, err
		}
		last.seq = max(last.seq, seq)
	}
	return last, nil
}

// seqTx gives out the next place in the order of the whole file.
func (l *Log) seqTx(tx *sqlite.Tx) int64 {
	l.last.seq++
	tx.AfterCommit(l.Announce)
	return l.last.seq
}

// nextID gives out the next id of a table for a row made here.
func (l *Log) nextID(table string) int64 {
	l.last.ids[table]++
	return l.last.ids[table]
}

// newToken returns a token that no log has issued. It comes from the system's own
// randomness: a token repeated by a seeded source would pass for one that a
// restored file never issued.
func newToken() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
