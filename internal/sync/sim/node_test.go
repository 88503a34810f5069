package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	gosync "sync"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// ctx ends no call: the simulator has no time-outs.
var ctx = context.Background()

// crash is what a node that dies in the driver's own goroutine panics with.
type crash struct{ point string }

// node is one of the two: its files, its clock, and what runs on them.
type node struct {
	w      *world
	name   string
	origin int64
	dir    string
	clock  int64 // ms added to the true time
	newer  bool  // it runs a version that knows more
	lives  int   // how often it was opened; seeds its randomness

	db     *sqlite.DB
	log    *sync.Log
	client *link.Client // at local
	server *link.Server // at cloud

	ought   *state
	backups []*snapshot
	before  *snapshot // a moment ago

	forgetful bool   // nothing told it what it gave out in an earlier life
	applied   bool   // a page was applied in this step
	died      string // the crash point that has just ended this life; "" while it lives
}

func (n *node) peer() *node  { return n.w.nodes[1-n.origin] }
func (n *node) path() string { return filepath.Join(n.dir, sqlite.Todos.File()) }
func (n *node) now() int64   { return n.w.now + n.clock }

// open opens the files, as a start of the node does.
func (n *node) open() {
	n.lives++
	n.died = ""
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], n.w.seed)
	seed[8], seed[9] = byte(n.origin), byte(n.lives)
	var err error
	n.db, err = sqlite.Open(ctx, sqlite.Options{
		Path: n.path(), Schema: sqlite.Todos, Rand: rand.NewChaCha8(seed), Volatile: true,
		Now: func() time.Time { return time.UnixMilli(n.now()) },
	})
	n.w.must(err)
	n.migrate()
	n.log, err = sync.NewLog(ctx, n.db, sync.Options{
		Node: n.name, Origin: n.origin, Tables: n.tables(), Fence: n.fence(), Version: n.version(), Crash: n.applying,
	})
	n.w.must(err)
	n.talk()
}

// talk makes what speaks to the peer: it remembers nothing of an earlier life.
func (n *node) talk() {
	logger := slog.New(slog.NewTextHandler(&n.w.said, nil))
	hello := func() link.Hello {
		return link.Hello{
			Node: n.name, Origin: n.origin, Incarnation: n.log.Incarnation(), Protocol: link.Protocol, Version: n.version(), Now: n.now(),
		}
	}
	if n.origin == 0 {
		peer := link.NewPeer("http://cloud", "cloud", n.name, canary, n.w.line)
		n.client = link.NewClient(n.log, peer, link.ClientOptions{Hello: hello, Crash: n.crash, Log: logger})
		return
	}
	n.server = link.NewServer(link.ServerOptions{
		Log: n.log, Name: "local", Hello: hello, Heard: func(link.Hello) {}, Stop: ctx, Crash: n.crash, Logger: logger,
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

func (n *node) close() { n.w.must(n.db.Close()) }

// restart ends a life and begins the next: what was committed stays.
func (n *node) restart() {
	n.close()
	n.open()
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
	highest map[string][2]int64 // what a backup says of ids
	files   map[string][]byte   // by suffix
	ought   *state
	backups []*snapshot
	before  *snapshot // a moment ago

	forgetful bool // nothing told it what it gave out in an earlier life
	applied   bool // a page was applied in this step
	at        int64
}

// copied are the files that make a database; what SQLite shares between processes
// is made anew.
var copied = []string{"", "-wal"}

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
	for _, suffix := range append(copied, "-shm") {
		if err := os.Remove(n.path() + suffix); err != nil && !os.IsNotExist(err) {
			n.w.must(err)
		}
	}
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

// empty is a migrated file without rows: to copy it is faster than to make it.
var empty = gosync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp(scratch(), "sim")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "todos.db")
	db, err := sqlite.Open(ctx, sqlite.Options{Path: path, Schema: sqlite.Todos, Now: time.Now, Rand: rand.NewChaCha8([32]byte{})})
	if err != nil {
		panic(err)
	}
	if err := db.Close(); err != nil {
		panic(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return b
})

// scratch is where the files of the nodes lie: in memory where the machine has room
// for that.
func scratch() string {
	const shm = "/dev/shm"
	if fi, err := os.Stat(shm); err == nil && fi.Mode()&fs.ModeSticky != 0 {
		return shm
	}
	return os.TempDir()
}

func (n *node) String() string { return fmt.Sprintf("%-5s", n.name) }
