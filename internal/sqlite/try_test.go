package sqlite_test

import (
	"errors"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

func TestAPartThatFailsUndoesItselfAndNothingElse(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	var woken []string
	wake := func(tx *sqlite.Tx, name string) { tx.AfterCommit(func() { woken = append(woken, name) }) }
	must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
		must(t, put("before", "")(tx))
		err := tx.Try(func() error {
			must(t, put("undone", "")(tx))
			wake(tx, "undone")
			must(t, tx.Try(func() error { return put("undone too", "")(tx) }))
			return errRefused
		})
		if !errors.Is(err, errRefused) {
			t.Errorf("Try returned %v", err)
		}
		if err := tx.Try(func() error { return put("before", "again")(tx) }); !errors.Is(err, sqlite.ErrTaken) {
			t.Errorf("a key that is taken: %v", err)
		}
		return tx.Try(func() error { wake(tx, "kept"); return put("kept", "")(tx) })
	}))
	equal(t, "rows", keys(t, db), "before kept")
	equal(t, "what followed the commit", len(woken), 1)
}
