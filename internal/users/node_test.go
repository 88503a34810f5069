package users

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.seed", "20260506") // the same damage in each run
	os.Exit(m.Run())
}

const (
	ada      = "ada@example.org"
	password = "correct horse"
)

// cheap is a cost at which a test can afford hundreds of logins.
var cheap = Cost{Memory: 8, Passes: 1}

// node is a store with its file, as the tests see it.
type node struct {
	*Store
	db      *sqlite.DB
	hashes  *atomic.Int32 // argon2 calls so far
	changes *atomic.Int32 // calls of OnChange
}

// start opens the file at path as a node would. The seed stands for chance: two
// starts have two.
func start(t testing.TB, path string, seed byte, authority bool) node {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{
		Path: path, Schema: sqlite.Users, Now: time.Now, Rand: rand.NewChaCha8([32]byte{seed}),
	})
	if err != nil {
		t.Fatal(err)
	}
	n := node{db: db, hashes: new(atomic.Int32), changes: new(atomic.Int32)}
	n.Store, err = NewStore(context.Background(), db, Options{
		Authority: authority, AuthorityURL: "https://cloud.example",
		Hasher: counted(n.hashes), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		OnChange: func() { n.changes.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func counted(calls *atomic.Int32) *Hasher {
	h := NewHasher(cheap)
	create, check := h.create, h.check
	h.create = func(p string, c *argon2id.Params) (string, error) { calls.Add(1); return create(p, c) }
	h.check = func(p, hash string) (bool, error) { calls.Add(1); return check(p, hash) }
	return h
}

func (n node) stop(t testing.TB) {
	t.Helper()
	if err := n.db.Close(); err != nil {
		t.Error(err)
	}
}

// run is start in a folder of its own, for as long as the test.
func run(t testing.TB, seed byte, authority bool) node {
	t.Helper()
	n := start(t, filepath.Join(t.TempDir(), "users.db"), seed, authority)
	t.Cleanup(func() { n.stop(t) })
	return n
}

// cloud is an authority with ada as its admin, home a node that has her too.
func twoNodes(t testing.TB) (cloud, home node, id string) {
	t.Helper()
	cloud, home = run(t, 1, true), run(t, 2, false)
	id = first(t, cloud)
	carry(t, cloud, home)
	return cloud, home, id
}

func first(t testing.TB, n node) string {
	t.Helper()
	a, err := n.Init(context.Background(), ada, password)
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

func carry(t testing.TB, from, to node) {
	t.Helper()
	generation, body, err := from.Export(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ok(t, to.Import(context.Background(), generation, body))
}

func login(t testing.TB, n node, email, password string) string {
	t.Helper()
	token, _, err := n.Login(context.Background(), email, password)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// alive reports whether the token opens anything.
func alive(t testing.TB, n node, token string) bool {
	t.Helper()
	_, err := n.Authenticate(context.Background(), token)
	if err != nil && !errors.Is(err, errNoSession) {
		t.Fatal(err)
	}
	return err == nil
}

// sql runs a statement behind the store's back.
func (n node) sql(t testing.TB, query string, args ...any) {
	t.Helper()
	ok(t, n.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}))
}

func (n node) count(t testing.TB, query string, args ...any) int {
	t.Helper()
	v, err := sqlite.Read(context.Background(), n.db, func(tx *sqlite.Tx) (int, error) {
		v, _, err := sqlite.One(tx, sqlite.Value[int], query, args...)
		return v, err
	})
	ok(t, err)
	return v
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// refused wants a fault of kind and code.
func refused(t testing.TB, err error, kind fault.Kind, code string) *fault.Error {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	e := fault.From(err)
	if e.Kind != kind || e.Code != code {
		t.Fatalf("got %s %s (%v), want %s %s", e.Kind, e.Code, err, kind, code)
	}
	return e
}
