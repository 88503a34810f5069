package sqlite_test

import (
	"errors"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

func TestWhatIsDoneBeforeTheCommitIsPartOfIt(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	write := func(fails, lastFails error) error {
		return db.Write(t.Context(), func(tx *sqlite.Tx) error {
			tx.BeforeCommit(func(tx *sqlite.Tx) error { return errors.Join(put("last", "")(tx), lastFails) })
			if err := put("first", "")(tx); err != nil {
				return err
			}
			_ = tx.Try(func() error {
				tx.BeforeCommit(put("undone", ""))
				return errRefused
			})
			return fails
		})
	}
	for _, failing := range [][2]error{{errRefused, nil}, {nil, errRefused}} {
		if err := write(failing[0], failing[1]); !errors.Is(err, errRefused) {
			t.Errorf("it returns %v", err)
		}
		equal(t, "rows", keys(t, db), "")
	}
	must(t, write(nil, nil))
	equal(t, "rows", keys(t, db), "first last")
}
