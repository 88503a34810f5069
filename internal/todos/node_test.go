package todos

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

const (
	anna = "01ANNA00000000000000000000"
	ben  = "01BEN000000000000000000000"
)

// node is one node's todos on a real file, with a clock that the test moves.
type node struct {
	testing.TB
	name  string
	clock time.Time
	homes map[string]string // where owners live
	db    *sqlite.DB
	log   *sync.Log
	*Store
}

func newNode(t testing.TB) *node { return newPeer(t, "local", 0) }

func newPeer(t testing.TB, name string, origin int64) *node {
	n := &node{TB: t, name: name, clock: time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC), homes: map[string]string{anna: "Europe/Berlin"}}
	var err error
	n.db, err = sqlite.Open(context.Background(), sqlite.Options{
		Path: filepath.Join(t.TempDir(), "todos.db"), Schema: sqlite.Todos, Rand: rand.NewChaCha8([32]byte{byte(origin)}),
		Now: func() time.Time { return n.clock },
	})
	n.must(err)
	t.Cleanup(func() { n.db.Close() })
	n.log, err = sync.NewLog(context.Background(), n.db, sync.Options{Node: name, Origin: origin, Tables: []*sync.Table{Table()}})
	n.must(err)
	n.Store = NewStore(n.db, n.log, func(_ *sqlite.Tx, owner string) (string, error) { return n.homes[owner], nil })
	return n
}

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

func (n *node) write(do func(*sqlite.Tx) error) error { return n.db.Write(context.Background(), do) }

func (n *node) add(d New) (t Todo) {
	n.Helper()
	t, _, err := n.tryAdd(anna, d)
	n.must(err)
	return t
}

func (n *node) tryAdd(owner string, d New) (t Todo, w []when.Warning, err error) {
	err = n.write(func(tx *sqlite.Tx) (err error) {
		t, w, err = n.AddTx(tx, owner, d)
		return err
	})
	return t, w, err
}

func (n *node) edit(t Todo, c Change) Todo {
	n.Helper()
	t, err := n.tryEdit(anna, t.Ref, c)
	n.must(err)
	return t
}

func (n *node) tryEdit(owner string, ref sync.Ref, c Change) (t Todo, err error) {
	err = n.write(func(tx *sqlite.Tx) (err error) {
		t, _, err = n.EditTx(tx, owner, ref, c)
		return err
	})
	return t, err
}

func (n *node) remove(owner string, ref sync.Ref) error {
	return n.write(func(tx *sqlite.Tx) error { return n.DeleteTx(tx, owner, ref) })
}

func (n *node) see(ref sync.Ref) Todo {
	n.Helper()
	t, err := n.Get(context.Background(), anna, ref)
	n.must(err)
	return t
}

// take applies all that the other node's log has.
func (n *node) take(from *node) {
	n.Helper()
	ctx := context.Background()
	for {
		cursor, err := n.log.Cursor(ctx, from.name)
		n.must(err)
		page, err := from.log.Page(ctx, cursor, sync.PageRows)
		n.must(err)
		if len(page.Entries) == 0 {
			return
		}
		_, err = n.log.Apply(ctx, from.name, cursor, page.Cursor, page.Entries)
		n.must(err)
	}
}

func (n *node) count(query string, args ...any) int {
	n.Helper()
	v, _, err := sqlite.ReadOne(context.Background(), n.db, sqlite.Value[int], query, args...)
	n.must(err)
	return v
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// refused wants a fault of that code about that field.
func refused(t testing.TB, what string, err error, code, field string) {
	t.Helper()
	f := fault.From(err)
	if err == nil || f.Code != code || len(f.Fields) != 1 || f.Fields[0].Name != field {
		t.Errorf("%s: %v %v, want %s of %s", what, err, f.Fields, code, field)
	}
}

// exec runs SQL as a bug might.
func (n *node) exec(query string, args ...any) {
	n.Helper()
	n.must(n.write(func(tx *sqlite.Tx) error { _, err := tx.Exec(query, args...); return err }))
}
