package link_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// TestMain makes the properties the same in each run; -rapid.seed and
// -rapid.checks on the command line look further.
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.seed", "20260329")
	_ = flag.Set("rapid.checks", "20")
	_ = flag.Set("rapid.nofailfile", "true")
	flag.Parse()
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

// todosTable describes a table as its domain would.
func todosTable() *sync.Table {
	return &sync.Table{Name: "todos", Columns: []sync.Column{
		{Name: "content"},
		{Name: "due_at", Kind: sync.Time, Null: true},
		{Name: "due_on", Null: true},
		{Name: "tz", Null: true},
		{Name: "done", Kind: sync.Bool},
		{Name: "notes"},
		{Name: "remind", Null: true},
	}}
}

// messagesTable has columns whose default is not nothing, and JSON.
func messagesTable() *sync.Table {
	return &sync.Table{Name: "scheduled_messages", Columns: []sync.Column{
		{Name: "content"},
		{Name: "action", Default: "notify"},
		{Name: "args", Kind: sync.JSON, Null: true},
		{Name: "enabled", Kind: sync.Bool, Default: "1"},
	}}
}

func settingsTable() *sync.Table {
	return &sync.Table{Name: "settings", Columns: []sync.Column{{Name: "tz", Null: true}}}
}

// node is one node's log and its file.
type node struct {
	t       testing.TB
	name    string
	origin  int64
	path    string
	db      *sqlite.DB
	log     *sync.Log
	now     func() time.Time
	skew    time.Duration // added to now
	facts   []string      // what the log told of facts from the peer
	tables  []*sync.Table
	durable bool // whether each commit reaches the disk
	process link.Process
}

var (
	emptyOnce gosync.Once
	emptyFile []byte
)

// empty is a migrated file without rows: to copy it is faster than to make it.
func empty(t testing.TB) []byte {
	t.Helper()
	emptyOnce.Do(func() {
		dir, err := os.MkdirTemp("", "sync")
		must(t, err)
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "todos.db")
		db, err := sqlite.Open(context.Background(), sqlite.Options{Path: path, Schema: sqlite.Todos, Now: time.Now, Rand: rand.NewChaCha8([32]byte{})})
		must(t, err)
		must(t, db.Close())
		emptyFile, err = os.ReadFile(path)
		must(t, err)
	})
	return emptyFile
}

// newNode returns a node whose file is new. Its clock is time.Now plus its skew.
func newNode(t testing.TB, name string, origin int64) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "sync")
	must(t, err)
	n := &node{t: t, name: name, origin: origin, path: filepath.Join(dir, "todos.db"), now: time.Now,
		tables: []*sync.Table{todosTable(), messagesTable(), settingsTable()}}
	must(t, os.WriteFile(n.path, empty(t), 0o600))
	n.open()
	t.Cleanup(func() {
		must(t, n.db.Close())
		must(t, os.RemoveAll(dir))
	})
	return n
}

// open opens the file, as a start of the node does.
func (n *node) open() {
	n.t.Helper()
	var err error
	n.db, err = sqlite.Open(context.Background(), sqlite.Options{
		Path: n.path, Schema: sqlite.Todos, Volatile: !n.durable, Rand: rand.NewChaCha8([32]byte{byte(n.origin + 1), n.name[0]}),
		Now: func() time.Time { return n.now().Add(n.skew) },
	})
	must(n.t, err)
	n.log, err = sync.NewLog(context.Background(), n.db, sync.Options{
		Node: n.name, Origin: n.origin, Tables: n.tables,
		Facts: func(_ *sqlite.Tx, facts []sync.Fact) error {
			for _, f := range facts {
				n.facts = append(n.facts, f.Kind+" "+f.Subject)
			}
			return nil
		},
	})
	must(n.t, err)
}

// restart closes the file and opens it again.
func (n *node) restart() {
	n.t.Helper()
	must(n.t, n.db.Close())
	n.open()
}

func pair(t testing.TB) (local, cloud *node) {
	t.Helper()
	return newNode(t, "local", 0), newNode(t, "cloud", 1)
}

func (n *node) write(fn func(*sqlite.Tx) error) {
	n.t.Helper()
	must(n.t, n.db.Write(context.Background(), fn))
}

// exec runs SQL as an operator might, or a bug.
func (n *node) exec(query string, args ...any) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error { _, err := tx.Exec(query, args...); return err })
}

func read[T any](n *node, query string, args ...any) T {
	n.t.Helper()
	v, _, err := sqlite.ReadOne(context.Background(), n.db, sqlite.Value[T], query, args...)
	must(n.t, err)
	return v
}

// add makes a todo, as its domain does.
func (n *node) add(content string) sync.Ref {
	n.t.Helper()
	var h sync.Head
	n.write(func(tx *sqlite.Tx) (err error) { h, err = n.addTx(tx, content); return err })
	return h.Ref
}

func (n *node) addTx(tx *sqlite.Tx, content string) (sync.Head, error) {
	h, err := n.log.AddTx(tx, "todos", "ann")
	if err != nil {
		return h, err
	}
	_, err = tx.Exec(`INSERT INTO todos (`+sync.HeadColumns+`, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(h.Args(), content)...)
	return h, err
}

// edit writes a new version of a todo, with one column changed. One that was deleted
// comes back.
func (n *node) edit(r sync.Ref, column string, value any) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error {
		h, found, err := sqlite.One(tx, func(row sqlite.Row) (h sync.Head, err error) { return h, row.Scan(h.Dest()...) },
			`SELECT `+sync.HeadColumns+` FROM todos WHERE origin = ? AND id = ?`, r.Origin, r.ID)
		if err != nil || !found {
			return fmt.Errorf("no todo %s: %w", r, err)
		}
		n.log.EditTx(tx, &h)
		h.DeletedAt = nil
		if column == "deleted_at" {
			h.DeletedAt, value, column = value.(*int64), nil, "tz"
		}
		_, err = tx.Exec(`
			UPDATE todos SET updated_at = ?, updated_by = ?, deleted_at = ?, seq = ?, seen = ?, `+column+` = ?
			WHERE origin = ? AND id = ?`, h.UpdatedAt, h.UpdatedBy, h.DeletedAt, h.Seq, string(h.Seen), value, r.Origin, r.ID)
		return err
	})
}

// content is what a todo says here, and "" where it is not or was deleted.
func (n *node) content(r sync.Ref) string {
	n.t.Helper()
	return read[string](n, `SELECT content FROM todos WHERE origin = ? AND id = ? AND deleted_at IS NULL`, r.Origin, r.ID)
}

// state is all that replicates, as text, but for what is each node's own.
func (n *node) state() string {
	n.t.Helper()
	var all []string
	for _, raw := range n.entries() {
		var e map[string]any
		must(n.t, json.Unmarshal(raw, &e))
		b, err := json.Marshal(e)
		must(n.t, err)
		all = append(all, string(b))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// entries is the whole log.
func (n *node) entries() []json.RawMessage {
	n.t.Helper()
	var all []json.RawMessage
	for cursor := ""; ; {
		p, err := n.log.Page(context.Background(), cursor, sync.PageRows)
		must(n.t, err)
		if len(p.Entries) == 0 {
			return all
		}
		all, cursor = append(all, p.Entries...), p.Cursor
	}
}

// page returns what follows the place up to which n has read from's log.
func (n *node) page(from *node) sync.Page {
	n.t.Helper()
	cursor, err := n.log.Cursor(context.Background(), from.name)
	must(n.t, err)
	p, err := from.log.Page(context.Background(), cursor, sync.PageRows)
	must(n.t, err)
	return p
}

// apply stores a page as one that follows the place n has read up to.
func (n *node) apply(from *node, p sync.Page) error {
	n.t.Helper()
	cursor, err := n.log.Cursor(context.Background(), from.name)
	must(n.t, err)
	_, err = n.log.Apply(context.Background(), from.name, cursor, p.Cursor, p.Entries)
	return err
}

// pull reads from's log to its end and returns how many entries that were.
func (n *node) pull(from *node) int {
	n.t.Helper()
	moved := 0
	for {
		p := n.page(from)
		if len(p.Entries) == 0 && p.Reset == "" {
			return moved
		}
		must(n.t, n.apply(from, p))
		moved += len(p.Entries)
	}
}

func same(t testing.TB, a, b *node) {
	t.Helper()
	if x, y := a.state(), b.state(); x != y {
		t.Errorf("the nodes differ\n%s:\n%s\n%s:\n%s", a.name, x, b.name, y)
	}
}

// fact tells one, and reports whether it was new.
func (n *node) fact(kind, subject string, body any) (isNew bool) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) (err error) {
		isNew, err = n.log.FactTx(tx, kind, subject, "ann", "", body)
		return err
	})
	return isNew
}

// many adds n todos in one transaction, all of one millisecond.
func (n *node) many(count int, size int) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error {
		for i := range count {
			if _, err := n.addTx(tx, fmt.Sprintf("%06d%s", i, strings.Repeat("x", size))); err != nil {
				return err
			}
		}
		return nil
	})
}

// fetchPage takes one page of the peer's log, without waiting.
func fetchPage(t testing.TB, c *link.Client) (more bool) {
	t.Helper()
	more, err := c.FetchPage(t.Context(), 0)
	must(t, err)
	return more
}
