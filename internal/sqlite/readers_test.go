package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

// A pragma that is misspelt, or set on one connection of a pool, is ignored
// without a word: each connection is asked.
func TestEveryConnectionHasTheSettingsItWasOpenedWith(t *testing.T) {
	pragmas := func(tx *sqlite.Tx) (string, error) {
		var all []string
		for _, p := range []string{"journal_mode", "synchronous", "foreign_keys", "busy_timeout", "cache_size", "query_only"} {
			v, _, err := sqlite.One(tx, sqlite.Value[string], `PRAGMA `+p)
			if err != nil {
				return "", err
			}
			all = append(all, p+"="+v)
		}
		_, _, err := sqlite.One(tx, sqlite.Value[string], `SELECT "no such column"`)
		if err == nil {
			all = append(all, "double quotes make strings")
		}
		return strings.Join(all, " "), nil
	}
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
			got, err := pragmas(tx)
			equal(t, "writer", got, "journal_mode=wal synchronous=2 foreign_keys=1 busy_timeout=5000 cache_size=-8000 query_only=0")
			return err
		}))
		gate := make(chan struct{})
		for i := range 4 { // all at once, so that each has a connection of its own
			go func() {
				_, err := sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (int, error) {
					<-gate
					got, err := pragmas(tx)
					equal(t, fmt.Sprint("reader ", i), got,
						"journal_mode=wal synchronous=2 foreign_keys=1 busy_timeout=5000 cache_size=-8000 query_only=1")
					return 0, err
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		close(gate)
		synctest.Wait()
	})
}

func TestReadCannotWrite(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	_, err := sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (int, error) { return 0, put("a", "")(tx) })
	if err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Fatal(err)
	}
	equal(t, "what is there", keys(t, db), "")
}

func TestReadSeesOneMomentWhileWritesGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		must(t, db.Write(t.Context(), put("before", "")))
		_, err := sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (int, error) {
			for range 3 {
				n, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM applied`)
				if err != nil {
					return 0, err
				}
				equal(t, "rows in the snapshot", n, 1)
				must(t, db.Write(t.Context(), put(tx.Now.Add(time.Duration(n)).String()+fmt.Sprint(time.Now().UnixNano()), "")))
				time.Sleep(time.Millisecond)
			}
			return 0, nil
		})
		must(t, err)
		equal(t, "rows afterwards", query[int](t, db, `SELECT count(*) FROM applied`), 4)
	})
}

// A01: a writer never blocks a reader.
func TestReadsGoOnWhileAWriteIsUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		must(t, db.Write(t.Context(), put("a", "")))
		must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
			must(t, put("b", "")(tx))
			for range 10 {
				equal(t, "what a reader sees", keys(t, db), "a")
			}
			return nil
		}))
	})
}

// sequence yields the numbers up to n, each after a pause.
func sequence(ctx context.Context, db *sqlite.DB, n int, pause func(row int)) error {
	_, err := sqlite.Read(ctx, db, func(tx *sqlite.Tx) ([]int, error) {
		return sqlite.All(tx, func(r sqlite.Row) (int, error) {
			v, err := sqlite.Value[int](r)
			pause(v)
			return v, err
		}, `WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?) SELECT n FROM s`, n)
	})
	return err
}

func TestReadEndsWhenItsTimeIsUp(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		began := time.Now()
		err := sequence(t.Context(), db, 1_000_000, func(int) { time.Sleep(50 * time.Millisecond) })
		if err == nil || !strings.Contains(err.Error(), "10s") {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 10*time.Second || took > 15*time.Second {
			t.Fatal("ended after", took)
		}
		must(t, sequence(t.Context(), db, 100, func(int) {})) // the connection is good for others
	})
}

func TestReadEndsWhenItsCallerHasGone(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	ctx, leave := context.WithCancel(t.Context())
	last := 0
	err := sequence(ctx, db, 1_000_000, func(row int) {
		if last = row; row == 1000 {
			leave()
		}
	})
	equal(t, "answer", err, context.Canceled)
	if last > 1100 {
		t.Fatal("went on to row", last)
	}
	must(t, sequence(t.Context(), db, 100, func(int) {}))
}

func TestReadWaitsForAConnectionNoLongerThanItsCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		gate := make(chan struct{})
		waiting := 0
		for range 100 { // more than there are connections
			go func() {
				_, _ = sqlite.Read(t.Context(), db, func(*sqlite.Tx) (int, error) { waiting++; <-gate; return 0, nil })
			}()
			synctest.Wait()
		}
		if waiting == 100 {
			t.Fatal("there is no bound on connections")
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := sqlite.Read(ctx, db, func(*sqlite.Tx) (int, error) { return 0, nil })
		equal(t, "answer", err, context.DeadlineExceeded)
		close(gate)
		synctest.Wait()
		equal(t, "served in the end", waiting, 100)
	})
}

func TestReaderThatPanicsGivesItsConnectionBack(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		must(t, db.Write(t.Context(), put("a", "")))
		for range 50 {
			func() {
				defer func() { _ = recover() }()
				_ = sequence(t.Context(), db, 10, func(int) { panic("a bug") })
			}()
		}
		equal(t, "what is there", keys(t, db), "a")
		must(t, db.Write(t.Context(), put("b", "")))
		equal(t, "what is there then", keys(t, db), "a b")
	})
}

func TestFileOpenForReadingOnlyIsNeitherMadeNorWritten(t *testing.T) {
	path := tempFile(t)
	absent, err := sqlite.OpenReadOnly(t.Context(), options(path))
	must(t, err)
	_, err = sqlite.Read(t.Context(), absent, func(tx *sqlite.Tx) (int, error) { return 0, nil })
	if err == nil {
		t.Error("a file that is not there was read")
	}
	must(t, absent.Close())
	assertGone(t, path)

	db, err := sqlite.Open(t.Context(), options(path))
	must(t, err)
	must(t, db.Write(t.Context(), put("a", "")))
	must(t, db.Close())
	before := content(t, path)
	db, err = sqlite.OpenReadOnly(t.Context(), options(path))
	must(t, err)
	equal(t, "what is there", keys(t, db), "a")
	if err := db.Write(t.Context(), put("b", "")); err == nil || errors.Is(err, sqlite.ErrClosed) {
		t.Error(err)
	}
	must(t, db.Close())
	equal(t, "the file afterwards", content(t, path), before)
}

func TestSingleStatementIsReadLikeAnyOther(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error { return errors.Join(put("a", "1")(tx), put("b", "2")(tx)) }))
		v, found, err := sqlite.ReadOne(t.Context(), db, sqlite.Value[string], `SELECT answer FROM applied WHERE effect_key = ?`, "b")
		equal(t, "one", fmt.Sprint(v, " ", found, " ", err), "2 true <nil>")
		v, found, err = sqlite.ReadOne(t.Context(), db, sqlite.Value[string], `SELECT answer FROM applied WHERE effect_key = ?`, "c")
		equal(t, "none", fmt.Sprint(v, " ", found, " ", err), " false <nil>")
		all, err := sqlite.ReadAll(t.Context(), db, sqlite.Value[string], `SELECT answer FROM applied ORDER BY 1`)
		equal(t, "all", fmt.Sprint(all, " ", err), "[1 2] <nil>")
		if _, _, err = sqlite.ReadOne(t.Context(), db, sqlite.Value[string], `DELETE FROM applied RETURNING answer`); err == nil {
			t.Error("it wrote")
		}
		if _, err = sqlite.ReadAll(t.Context(), db, sqlite.Value[string], `SELECT ?`, time.Now()); err == nil {
			t.Error("it took a time")
		}
		ctx, leave := context.WithCancel(t.Context())
		_, err = sqlite.ReadAll(ctx, db, func(sqlite.Row) (int, error) { leave(); return 0, nil },
			`WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT n FROM s`)
		equal(t, "a caller who has gone", err, context.Canceled)
		equal(t, "what is there", keys(t, db), "a b")
	})
}

func TestCloseLetsAReadUnderWayEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), sqlite.Options{
			Path: filepath.Join(t.TempDir(), "todos.db"), Schema: sqlite.Todos, Now: time.Now, Rand: rand.NewChaCha8([32]byte{}),
		})
		if err != nil {
			t.Fatal(err)
		}
		goOn, read, closed := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		look := func(tx *sqlite.Tx) (int, error) {
			<-goOn
			n, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM applied`)
			return n, err
		}
		go func() {
			_, err := sqlite.Read(context.Background(), db, look)
			read <- err
		}()
		synctest.Wait()
		go func() { closed <- db.Close() }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("the file was closed under a read")
		default:
		}
		close(goOn)
		if err := errors.Join(<-read, <-closed); err != nil {
			t.Error(err)
		}
		if _, err := sqlite.Read(context.Background(), db, look); !errors.Is(err, sqlite.ErrClosed) {
			t.Errorf("a read after Close: %v", err)
		}
	})
}
