package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

// S:49, R:F8. Read, then write what follows from it: where several connections do
// that, some of them fail at once whatever their patience.
func TestCrowdOfWritersAndReadersMeetsNoLock(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	const many, each = 24, 40
	must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`INSERT INTO applied (effect_key, answer, at) VALUES ('count', '', 0)`)
		return err
	}))
	var all sync.WaitGroup
	for w := range many {
		all.Go(func() {
			for i := range each {
				err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
					n, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT at FROM applied WHERE effect_key = 'count'`)
					if err != nil {
						return err
					}
					if _, err := tx.Exec(`UPDATE applied SET at = ? WHERE effect_key = 'count'`, n+1); err != nil {
						return err
					}
					return put(fmt.Sprint(w, "-", i), strings.Repeat("x", 500))(tx)
				})
				if err != nil {
					t.Error("a Write:", err)
					return
				}
			}
		})
		all.Go(func() {
			for range each {
				rows, err := sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (int, error) {
					counted, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT at FROM applied WHERE effect_key = 'count'`)
					if err != nil {
						return 0, err
					}
					rows, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) - 1 FROM applied`)
					return rows - counted, err
				})
				if err != nil || rows != 0 {
					t.Error("a Read:", rows, err)
					return
				}
			}
		})
	}
	all.Wait()
	equal(t, "counted", query[int](t, db, `SELECT at FROM applied WHERE effect_key = 'count'`), many*each)
}

// locked holds the write lock of a file as a program beside the node would.
func locked(t *testing.T, path string) (release func()) {
	t.Helper()
	other, err := sql.Open("sqlite", path+"?_txlock=immediate")
	must(t, err)
	tx, err := other.Begin()
	must(t, err)
	return func() { must(t, errors.Join(tx.Rollback(), other.Close())) }
}

func TestWriteWaitsForAnotherProgramsShortLock(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		release := locked(t, db.Path())
		done := make(chan error)
		go func() { done <- db.Write(t.Context(), put("a", "")) }()
		time.Sleep(3 * time.Second)
		equal(t, "a reader meanwhile sees", keys(t, db), "")
		release()
		must(t, <-done)
		equal(t, "what is there", keys(t, db), "a")
	})
}

func TestWriteThatMeetsALongLockFailsAloneAndOthersFollow(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		release := locked(t, db.Path())
		began := time.Now()
		err := db.Write(t.Context(), put("a", ""))
		if took := time.Since(began); err == nil || took < 4*time.Second || took > 6*time.Second {
			t.Fatal(err, took)
		}
		release()
		must(t, db.Write(t.Context(), put("b", "")))
		synctest.Wait()
		equal(t, "what is there", keys(t, db), "b")
	})
}
