package sqlite_test

import (
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

func TestOpenMigratesAndReadsBackWhatWasWritten(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`INSERT INTO applied (effect_key, answer, at) VALUES (?, ?, ?)`, tx.NewID(), "{}", tx.Millis())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n, err := sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (int, error) {
		n, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM applied`)
		return n, err
	})
	if err != nil || n != 1 {
		t.Fatal(n, err)
	}
}
