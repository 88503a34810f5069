package sim

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
	"tandem/internal/sync/link"
)

// ctx ends no call: the simulator has no time-outs.
var ctx = context.Background()

// crash is what a node that dies in the driver's own goroutine panics with.
type crash struct{ point string }

// node is one of the two: its files, its clock, and what runs on them.
type node struct {
	w *world
	*disk
	name   string
	origin int64
	clock  int64 // ms added to the true time
	newer  bool  // it runs a version that knows more
	lives  int   // how often it was opened; seeds its randomness

	log    *sync.Log
	box    *letters.Box
	client *link.Client // at local
	server *link.Server // at cloud

	ought   *state
	backups []*snapshot
	before  *snapshot // a moment ago

	forked    bool   // it went on with its life from a moment after which the peer had read, or a backup kept, more
	forgetful bool   // nothing told it what it gave out in an earlier life
	applied   bool   // a page was applied in this step
	lost      int64  // how far the log was shortened when the database was last replaced
	died      string // the crash point that has just ended this life; "" while it lives
}

func (n *node) peer() *node { return n.w.nodes[1-n.origin] }
func (n *node) now() int64  { return n.w.now + n.clock }

// open opens the files, as a start of the node does.
func (n *node) open() {
	n.w.must(n.disk.open())
	n.begin()
}

// begin starts what runs on open files: it remembers nothing of an earlier life.
func (n *node) begin() {
	n.died = ""
	n.lives++
	n.disk.seed(n.w.seed, int(n.origin), n.lives)
	n.migrate()
	var err error
	n.log, err = sync.NewLog(ctx, n.db, sync.Options{
		Node: n.name, Origin: n.origin, Tables: n.tables(), Fence: n.fence(), Version: n.version(), Crash: n.applying,
	})
	n.w.must(err)
	n.box = letters.NewBox(n.db, letters.Options{Handle: n.act})
	n.talk()
}

// talk makes what speaks to the peer.
func (n *node) talk() {
	logger := slog.New(slog.NewTextHandler(&n.w.said, nil))
	hello := func() link.Hello {
		return link.Hello{
			Node: n.name, Origin: n.origin, Version: n.version(), Now: n.now(),
		}
	}
	if n.origin == 0 {
		peer := link.NewPeer("http://cloud", "cloud", n.name, canary, n.w.line)
		n.client = link.NewClient(n.log, peer, link.ClientOptions{Letters: n.box, Hello: hello, Crash: n.crash, Logger: logger})
		return
	}
	n.server = link.NewServer(link.ServerOptions{
		Log: n.log, Letters: n.box, Name: "local", Hello: hello, Stop: ctx, Crash: n.crash, Logger: logger,
	})
}

func (n *node) version() string {
	if n.newer {
		return "2"
	}
	return "1"
}

// applying is the hook within a page's transaction, on the writer's goroutine: what
// it panics with only undoes the transaction.
func (n *node) applying(point string) {
	n.applied = true
	if n.w.fault(n.w.odds.crash) {
		n.died, n.applied = point, false
		panic(crash{point})
	}
}

// crash is the hook of all crash points that are reached in the driver's goroutine.
func (n *node) crash(point string) {
	if !n.w.fault(n.w.odds.crash) {
		return
	}
	n.died = point
	panic(crash{point})
}

func (n *node) close() { n.w.must(n.disk.close()) }

// restart ends a life and begins the next: what was committed stays. To open the
// files costs more than all else in a step; now and then that is done, too.
func (n *node) restart() {
	if n.w.chance(0.2) {
		n.close()
		n.open()
		return
	}
	n.begin()
}

func (n *node) write(fn func(*sqlite.Tx) error) { n.w.must(n.db.Write(ctx, fn)) }

// all is sqlite.ReadAll of a sound statement.
func all[T any](n *node, scan func(sqlite.Row) (T, error), query string, args ...any) []T {
	list, err := sqlite.ReadAll(ctx, n.db, scan, query, args...)
	n.w.must(err)
	return list
}

func value[T any](n *node, query string, args ...any) T {
	v, _, err := sqlite.ReadOne(ctx, n.db, sqlite.Value[T], query, args...)
	n.w.must(err)
	return v
}

// snapshot is a copy of a node's database and of what it ought to hold.
type snapshot struct {
	highest map[string][2]int64 // what a backup's manifest says of ids
	files   map[string][]byte   // by suffix
	ought   *state
	at      int64
}

// snapshot copies the database as it is between two steps.
func (n *node) snapshot() *snapshot {
	s := &snapshot{files: map[string][]byte{}, ought: n.ought.clone(), at: n.w.now}
	for _, suffix := range copied {
		b, err := os.ReadFile(n.path() + suffix)
		if err == nil {
			s.files[suffix] = b
		} else if !os.IsNotExist(err) {
			n.w.must(err)
		}
	}
	return s
}

// put replaces the database of a node that is closed; a nil snapshot is a wiped disk.
func (n *node) put(s *snapshot) {
	n.w.must(n.disk.remove())
	if s == nil {
		n.ought = newState()
		n.w.must(os.WriteFile(n.path(), empty(), 0o600))
		return
	}
	for suffix, b := range s.files {
		n.w.must(os.WriteFile(n.path()+suffix, b, 0o600))
	}
	n.ought = s.ought.clone()
}

func (n *node) String() string { return fmt.Sprintf("%-5s", n.name) }
