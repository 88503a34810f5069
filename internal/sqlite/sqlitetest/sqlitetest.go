// Package sqlitetest opens throwaway files for tests.
package sqlitetest

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"tandem/internal/sqlite"
)

// Open returns a migrated file in a temporary folder. Its ids are the same in
// every run, and its clock is time.Now, which a synctest bubble makes so too.
func Open(t testing.TB, schema sqlite.Schema) *sqlite.DB {
	t.Helper()
	return OpenAt(t, schema, filepath.Join(t.TempDir(), schema.File()))
}

// OpenAt is Open for a path of the test's choice, such as one opened before.
func OpenAt(t testing.TB, schema sqlite.Schema, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{
		Path: path, Schema: schema, Now: time.Now, Rand: rand.NewChaCha8([32]byte{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
