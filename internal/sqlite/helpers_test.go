package sqlite_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

var errRefused = errors.New("refused")

// TestMain lets a test start this binary again as a process that may be killed.
func TestMain(m *testing.M) {
	if role := os.Getenv("SQLITE_TEST_CHILD"); role != "" {
		child(role, os.Getenv("SQLITE_TEST_DIR"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes one row under key.
func put(key, body string) func(*sqlite.Tx) error {
	return func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`INSERT INTO applied (effect_key, answer, at) VALUES (?, ?, ?)`, key, body, tx.Millis())
		return err
	}
}

// keys returns the keys that put has written, in their order, run together.
func keys(t *testing.T, db *sqlite.DB) string {
	t.Helper()
	s, err := sqlite.Read(context.WithoutCancel(t.Context()), db, func(tx *sqlite.Tx) (string, error) {
		s, _, err := sqlite.One(tx, sqlite.Value[string], `
			SELECT coalesce(group_concat(effect_key, ' ' ORDER BY effect_key), '') FROM applied`)
		return s, err
	})
	must(t, err)
	return s
}

func query[T any](t *testing.T, db *sqlite.DB, q string, args ...any) T {
	t.Helper()
	v, err := sqlite.Read(context.WithoutCancel(t.Context()), db, func(tx *sqlite.Tx) (T, error) {
		v, _, err := sqlite.One(tx, sqlite.Value[T], q, args...)
		return v, err
	})
	must(t, err)
	return v
}

// inBubble runs test with an open file, under virtual time.
func inBubble(t *testing.T, test func(t *testing.T, db *sqlite.DB)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, sqlitetest.Open(t, sqlite.Todos)) })
}

// together has the functions share one transaction, in their order, the first of
// them at its head, and returns what each was answered. It needs a bubble.
func together(t *testing.T, db *sqlite.DB, first func(*sqlite.Tx) error, rest ...func(*sqlite.Tx) error) []error {
	t.Helper()
	gate := make(chan struct{})
	gated := func(tx *sqlite.Tx) error { <-gate; return first(tx) }
	errs := make([]error, 1+len(rest))
	for i, fn := range append([]func(*sqlite.Tx) error{gated}, rest...) {
		go func() { errs[i] = db.Write(t.Context(), fn) }()
		synctest.Wait()
	}
	close(gate)
	synctest.Wait()
	return errs
}

// options are those of sqlitetest, for a test that needs others too.
func options(path string) sqlite.Options {
	return sqlite.Options{Path: path, Schema: sqlite.Todos, Now: time.Now, Rand: rand.NewChaCha8([32]byte{})}
}

func open(t *testing.T, o sqlite.Options) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

func tempFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), sqlite.Todos.File())
}
