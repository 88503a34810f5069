package sqlite_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// tooMuch does not fit into a file of openBounded, nor into what is free in it.
var tooMuch = strings.Repeat("x", 600<<10)

// openBounded opens a file that cannot grow beyond 400 kB, as if its disk were full.
func openBounded(t *testing.T) *sqlite.DB {
	t.Helper()
	o := options(tempFile(t))
	o.MaxPages = 100
	return open(t, o)
}

func TestFullDiskTellsEverybodyWhoSharedTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openBounded(t)
		errs := together(t, db, put("1", ""), put("2", ""), put("3", tooMuch), put("4", ""))
		for i, err := range errs[:3] {
			if !errors.Is(err, sqlite.ErrFull) || !fault.Of(err, fault.Unavailable) {
				t.Errorf("function %d: %v", i+1, err)
			}
		}
		must(t, errs[3]) // it began after the transaction was lost, and got its own
		equal(t, "what is there", keys(t, db), "4")
	})
}

func TestFunctionThatHidesAFullDiskIsToldNonetheless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openBounded(t)
		var next error
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_ = put("1", "")(tx)
			_ = put("2", tooMuch)(tx)
			next = put("3", "")(tx) // would commit by itself if it ran
			return nil
		})
		for what, err := range map[string]error{"the function": err, "the statement that followed": next} {
			if !errors.Is(err, sqlite.ErrFull) {
				t.Errorf("%s: %v", what, err)
			}
		}
		equal(t, "what is there", keys(t, db), "")
	})
}

func TestFileThatFillsUpKeepsWhatItAnsweredAndWritesAgainOnceThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openBounded(t)
		var err error
		kept := 0
		for ; err == nil && kept < 1000; kept++ {
			err = db.Write(t.Context(), put(fmt.Sprintf("%04d", kept), strings.Repeat("x", 5000)))
		}
		if kept--; !errors.Is(err, sqlite.ErrFull) {
			t.Fatal(err)
		}
		equal(t, "rows", query[int](t, db, `SELECT count(*) FROM applied`), kept)
		must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := tx.Exec(`DELETE FROM applied WHERE effect_key < '0010'`)
			return err
		}))
		must(t, db.Write(t.Context(), put("small", "")))
		equal(t, "rows after", query[int](t, db, `SELECT count(*) FROM applied`), kept-10+1)
		equal(t, "integrity", query[string](t, db, `PRAGMA integrity_check`), "ok")
	})
}
