package letters_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync/letters"
)

// TestMain makes the property the same in each run; -rapid.seed and -rapid.checks on
// the command line look further.
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.seed", "20260329")
	_ = flag.Set("rapid.checks", "15")
	_ = flag.Set("rapid.nofailfile", "true")
	flag.Parse()
	var err error
	if empty, err = makeEmpty(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var errBusy = errors.New("busy")

// node is one node's letters and its file. What a letter does here is a line in the
// table done.
type node struct {
	t      testing.TB
	path   string
	db     *sqlite.DB
	box    *letters.Box
	refuse map[string]error // what handling a letter fails with, by key
	woken  int
}

// empty is a migrated file without letters: to copy it is faster than to make it.
// TestMain makes it, outside of all bubbles.
var empty []byte

func makeEmpty() ([]byte, error) {
	dir, err := os.MkdirTemp("", "letters")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "todos.db")
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: path, Schema: sqlite.Todos, Now: time.Now, Rand: rand.NewChaCha8([32]byte{})})
	if err != nil {
		return nil, err
	}
	err = db.Write(context.Background(), func(tx *sqlite.Tx) error { _, err := tx.Exec(`CREATE TABLE done (key TEXT NOT NULL)`); return err })
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{t: t, path: filepath.Join(t.TempDir(), "todos.db"), refuse: map[string]error{}}
	must(t, os.WriteFile(n.path, empty, 0o600))
	n.open()
	t.Cleanup(func() { must(t, n.db.Close()) })
	return n
}

func (n *node) open() {
	n.t.Helper()
	var err error
	n.db, err = sqlite.Open(context.Background(), sqlite.Options{
		Path: n.path, Schema: sqlite.Todos, Now: time.Now, Rand: rand.NewChaCha8([32]byte{}), Volatile: true,
	})
	must(n.t, err)
	n.box = letters.NewBox(n.db, letters.Options{Handle: n.handle, OnChange: func() { n.woken++ }})
}

// handle leaves its effect before it fails, as a handler may.
func (n *node) handle(tx *sqlite.Tx, l letters.Letter) error {
	if _, err := tx.Exec(`INSERT INTO done (key) VALUES (?)`, l.Key); err != nil {
		return err
	}
	if err := n.refuse[l.Key]; err != nil {
		return fmt.Errorf("handle: %w", err)
	}
	return nil
}

func (n *node) restart() {
	n.t.Helper()
	must(n.t, n.db.Close())
	n.open()
}

func (n *node) exec(query string, args ...any) {
	n.t.Helper()
	must(n.t, n.db.Write(context.Background(), func(tx *sqlite.Tx) error { _, err := tx.Exec(query, args...); return err }))
}

// backup is the whole file as it is now.
func (n *node) backup() []byte {
	n.t.Helper()
	must(n.t, n.db.Close())
	b, err := os.ReadFile(n.path)
	must(n.t, err)
	n.open()
	return b
}

// restore puts a backup back.
func (n *node) restore(backup []byte) {
	n.t.Helper()
	must(n.t, n.db.Close())
	must(n.t, os.WriteFile(n.path, backup, 0o600))
	n.open()
}

func letter(key, owner string) letters.Letter {
	return letters.Letter{Key: key, Owner: owner, Kind: "message", Body: json.RawMessage(`{"text":"hello"}`)}
}

func (n *node) send(all ...letters.Letter) {
	n.t.Helper()
	for _, l := range all {
		must(n.t, n.trySend(l))
	}
}

func (n *node) trySend(l letters.Letter) error {
	return n.db.Write(context.Background(), func(tx *sqlite.Tx) error { return n.box.SendTx(tx, l) })
}

// call is what a node offers at one moment.
type call struct {
	letters []letters.Letter
	after   string
}

// offered is what n offers now, as it arrives at the other node.
func (n *node) offered() call {
	n.t.Helper()
	all, after, err := n.box.Oldest(context.Background(), 100)
	must(n.t, err)
	b, err := json.Marshal(all)
	must(n.t, err)
	c := call{after: after}
	must(n.t, json.Unmarshal(b, &c.letters))
	return c
}

func keys(c call) string {
	var list []string
	for _, l := range c.letters {
		list = append(list, l.Key)
	}
	return strings.Join(list, " ")
}

func (n *node) receive(c call) string {
	n.t.Helper()
	ack, err := n.box.Receive(context.Background(), c.after, c.letters)
	must(n.t, err)
	return strings.Join(ack, " ")
}

// acked has n hear which letters of a call were acked.
func (n *node) acked(of call, keys ...string) {
	n.t.Helper()
	must(n.t, n.box.Acked(context.Background(), of.after, keys))
}

// cross is one exchange: the letters, and their acks, or that the reader has lost some.
// It returns how many letters crossed.
func cross(from, to *node) int {
	from.t.Helper()
	c := from.offered()
	ack, err := to.box.Receive(context.Background(), c.after, c.letters)
	if errors.Is(err, letters.ErrPutBack) {
		must(from.t, from.box.OfferAgain(context.Background(), c.after))
		return cross(from, to)
	}
	if err != nil && !errors.Is(err, errBusy) {
		from.t.Fatal(err)
	}
	from.acked(c, ack...)
	return len(c.letters)
}

func (n *node) done() string {
	n.t.Helper()
	all, err := sqlite.ReadAll(context.Background(), n.db, sqlite.Value[string], `SELECT key FROM done ORDER BY rowid`)
	must(n.t, err)
	return strings.Join(all, " ")
}

func (n *node) waits() bool {
	n.t.Helper()
	next, err := n.box.Next(context.Background())
	must(n.t, err)
	return next != ""
}

// parked is what n has parked, newest first.
func (n *node) parked() string {
	n.t.Helper()
	all, err := n.box.Parked(context.Background(), 100)
	must(n.t, err)
	var list []string
	for _, p := range all {
		list = append(list, p.Key+": "+p.Code)
	}
	return strings.Join(list, ", ")
}

// kept is the body of a parked letter.
func (n *node) kept(key string) []byte {
	n.t.Helper()
	body, _, err := sqlite.ReadOne(context.Background(), n.db, sqlite.Value[[]byte], `SELECT body FROM letters_parked WHERE key = ?`, key)
	must(n.t, err)
	return body
}

func (n *node) count(table string) int {
	n.t.Helper()
	v, _, err := sqlite.ReadOne(context.Background(), n.db, sqlite.Value[int], `SELECT count(*) FROM `+table)
	must(n.t, err)
	return v
}

func (n *node) purge() {
	n.t.Helper()
	for more := true; more; {
		must(n.t, n.db.Write(context.Background(), func(tx *sqlite.Tx) (err error) {
			more, err = letters.PurgeTx(tx)
			return err
		}))
	}
}
