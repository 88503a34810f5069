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
	"sync/atomic"

	"tandem/internal/sqlite"
)

// Options say whose log it is.
type Options struct {
	Node   string // this node's name; it signs each version
	Origin int64  // 0 or 1; it keys each row made here
	Tables []*Table
	Facts  func(*sqlite.Tx, []Fact) error // called within the transaction that applies facts from the peer

	Fence   string                           // path of the fence beside the file; empty: none is kept
	Version string                           // of this build: another one may take what this one set aside
	Known   func(owner string) (bool, error) // whether an owner is in the directory; nil: everybody is
	Crash   func(point string)               // called at sync.applying, within the transaction; nil: nothing
}

// Log is the order of all changes of one file, this node's and its peer's.
type Log struct {
	db      *sqlite.DB
	node    string
	origin  int64
	version string
	tables  map[string]*Table
	order   []*Table
	applied func(*sqlite.Tx, []Fact) error
	known   func(string) (bool, error)
	crash   func(string)

	// The writer's own: used within a Write, and while the log is opened.
	last   numbers
	writer string // node/incarnation: who signs in seen
	aside  int    // entries in quarantine, or more: whether to look at all
	blind  bool   // the file was put back and nothing tells how many ids it had given out

	announced *sqlite.Tx // whose commit announces already
	recounted *sqlite.Tx // in which counts was counted already

	pages gosync.RWMutex // read-held while a page is issued, held while a life begins
	next  nextPage

	counts atomic.Pointer[map[string]int] // of quarantine, by kind

	heard atomic.Value // string: the peer's version, once Retry was told
	ahead ahead
	letGo atomic.Int64 // entries that could not be read and were not kept, since the start

	mu          gosync.Mutex
	guard       guard
	incarnation string
	reset       string        // why this life was begun
	changed     chan struct{} // closed and replaced after each commit that appends
	wakes       []func()
}

// NewLog opens the log of a file. It begins a new incarnation where the file has
// none, or where the fence tells that the file was put back. A file of another node
// is ErrAnotherNode.
func NewLog(ctx context.Context, db *sqlite.DB, o Options) (*Log, error) {
	l := &Log{
		db: db, node: o.Node, origin: o.Origin, version: o.Version, tables: map[string]*Table{}, order: o.Tables,
		applied: o.Facts, known: o.Known, crash: o.Crash, changed: make(chan struct{}), guard: guard{path: o.Fence},
	}
	if l.crash == nil {
		l.crash = func(string) {}
	}
	for _, t := range o.Tables {
		t.prepare()
		l.tables[t.Name] = t
	}
	if err := l.guard.load(); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	err := db.Write(ctx, func(tx *sqlite.Tx) (err error) {
		if err := l.beginTx(tx); err != nil {
			return err
		}
		if l.aside, err = countAside(tx); err != nil {
			return err
		}
		l.ahead.note() // nobody has looked yet, and no start waits for that
		counts, err := countsTx(tx)
		if err != nil {
			return err
		}
		l.counts.Store(&counts)
		return l.learnTx(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	l.writer = l.node + "/" + l.incarnation
	return l, nil
}

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

// newToken returns a token that no log has issued. It comes from the system's own
// randomness: a token repeated by a seeded source would pass for one that a
// restored file never issued.
func newToken() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
