package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
)

func TestWriteIsAnsweredOnlyAfterTheCommitItShares(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		first, second := make(chan struct{}), make(chan struct{})
		answered := make(chan string, 2)
		write := func(key string, gate chan struct{}) {
			err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
				<-gate
				return put(key, "")(tx)
			})
			answered <- fmt.Sprint(key, " ", err)
		}
		go write("a", first)
		synctest.Wait()
		go write("b", second)
		synctest.Wait()
		close(first) // a is done, b has begun in the same transaction
		synctest.Wait()
		equal(t, "answers before the commit", len(answered), 0)
		equal(t, "what a reader sees before the commit", keys(t, db), "")
		close(second)
		synctest.Wait()
		answers := []string{<-answered, <-answered}
		slices.Sort(answers)
		equal(t, "answers", strings.Join(answers, ", "), "a <nil>, b <nil>")
		equal(t, "what a reader sees", keys(t, db), "a b")
	})
}

func TestFunctionThatFailsIsRolledBackAlone(t *testing.T) {
	fails := func(key string) func(*sqlite.Tx) error {
		return func(tx *sqlite.Tx) error { return errors.Join(put(key, "")(tx), errRefused) }
	}
	panics := func(key string) func(*sqlite.Tx) error {
		return func(tx *sqlite.Tx) error { _ = put(key, "")(tx); panic("a bug in " + key) }
	}
	breaks := func(key string) func(*sqlite.Tx) error { // a statement fails, and the function says so
		return func(tx *sqlite.Tx) error {
			if err := put(key, "")(tx); err != nil {
				return err
			}
			return put(key, "")(tx)
		}
	}
	for _, c := range []struct {
		name  string
		steps []func(*sqlite.Tx) error
		want  string
	}{
		{"in the middle", []func(*sqlite.Tx) error{put("1", ""), fails("2"), put("3", "")}, "1 3"},
		{"at the head", []func(*sqlite.Tx) error{fails("1"), put("2", ""), put("3", "")}, "2 3"},
		{"two at the head", []func(*sqlite.Tx) error{fails("1"), fails("2"), put("3", "")}, "3"},
		{"at the end", []func(*sqlite.Tx) error{put("1", ""), put("2", ""), fails("3")}, "1 2"},
		{"all", []func(*sqlite.Tx) error{fails("1"), fails("2"), fails("3")}, ""},
		{"between failures", []func(*sqlite.Tx) error{fails("1"), put("2", ""), fails("3"), put("4", ""), fails("5")}, "2 4"},
		{"by a panic", []func(*sqlite.Tx) error{put("1", ""), panics("2"), put("3", "")}, "1 3"},
		{"by a panic at the head", []func(*sqlite.Tx) error{panics("1"), put("2", "")}, "2"},
		{"by a statement", []func(*sqlite.Tx) error{put("1", ""), breaks("2"), put("3", "")}, "1 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, db *sqlite.DB) {
				kept := ""
				for i, err := range together(t, db, c.steps[0], c.steps[1:]...) {
					if err == nil {
						kept += fmt.Sprint(" ", i+1)
					}
				}
				equal(t, "what was answered as done", strings.TrimSpace(kept), c.want)
				equal(t, "what is there", keys(t, db), c.want)
				must(t, db.Write(t.Context(), put("9", ""))) // and the writer goes on
			})
		})
	}
}

func TestPanicInAFunctionIsAnErrorThatNamesItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		err := db.Write(t.Context(), func(*sqlite.Tx) error { panic("a bug") })
		if err == nil || !strings.Contains(err.Error(), "a bug") || !strings.Contains(err.Error(), "writer_test.go") {
			t.Fatal(err)
		}
	})
}

func TestCallerWhoLeavesWhileHisFunctionRunsUndoesNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		ctx, leave := context.WithCancel(t.Context())
		gate := make(chan struct{})
		var errs [3]error
		go func() {
			errs[0] = db.Write(t.Context(), func(tx *sqlite.Tx) error { <-gate; return put("before", "")(tx) })
		}()
		synctest.Wait()
		go func() {
			errs[1] = db.Write(ctx, func(tx *sqlite.Tx) error {
				leave()
				return put("leaver", strings.Repeat("x", 1<<16))(tx)
			})
		}()
		synctest.Wait()
		go func() { errs[2] = db.Write(t.Context(), put("after", "")) }()
		synctest.Wait()
		close(gate)
		synctest.Wait()
		equal(t, "answers", fmt.Sprint(errs), "[<nil> <nil> <nil>]")
		equal(t, "what is there", keys(t, db), "after before leaver")
	})
}

func TestCallerWhoLeavesBeforeHisTurnIsNeverServed(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		ctx, leave := context.WithCancel(t.Context())
		gate := make(chan struct{})
		var left error
		var ran, answered bool
		go func() { _ = db.Write(t.Context(), func(*sqlite.Tx) error { <-gate; return nil }) }()
		synctest.Wait()
		go func() {
			left = db.Write(ctx, func(tx *sqlite.Tx) error { ran = true; return put("late", "")(tx) })
			answered = true
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		equal(t, "answered while another function runs", answered, true)
		equal(t, "answer", left, context.Canceled)
		close(gate)
		must(t, db.Write(t.Context(), put("next", "")))
		equal(t, "the function ran", ran, false)
		equal(t, "what is there", keys(t, db), "next")
	})
}

func TestWriteUnderAnEndedContextDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		equal(t, "answer", db.Write(ctx, put("a", "")), context.Canceled)
		equal(t, "what is there", keys(t, db), "")
	})
}

// A Write within a Write waits for itself.
func TestWriteWithinAWriteFailsAfterItsPatience(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		began := time.Now()
		var inner error
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			inner = db.Write(t.Context(), put("inner", ""))
			return put("outer", "")(tx)
		})
		must(t, err)
		if inner == nil || !strings.Contains(inner.Error(), "Write within a Write") {
			t.Fatal(inner)
		}
		equal(t, "waited", time.Since(began), 30*time.Second)
		must(t, db.Write(t.Context(), put("then", "")))
		equal(t, "what is there", keys(t, db), "outer then")
	})
}

func TestWriteBehindAFullQueueFailsAfterItsPatienceToo(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		gate := make(chan struct{})
		go func() { _ = db.Write(t.Context(), func(*sqlite.Tx) error { <-gate; return nil }) }()
		synctest.Wait()
		const many = 200 // more than the queue holds
		errs := make(chan error, many)
		for i := range many {
			go func() { errs <- db.Write(t.Context(), put(fmt.Sprint(i), "")) }()
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		equal(t, "answers", len(errs), many)
		for range many {
			if err := <-errs; err == nil {
				t.Fatal("a Write was answered as done that had no turn")
			}
		}
		close(gate)
		must(t, db.Write(t.Context(), put("then", "")))
		equal(t, "what is there", keys(t, db), "then")
	})
}

func TestAfterCommitFollowsACommitAndNothingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		var heard []string
		hears := func(key string, err error) func(*sqlite.Tx) error {
			return func(tx *sqlite.Tx) error {
				tx.AfterCommit(func() { heard = append(heard, key+" of "+keys(t, db)) })
				return errors.Join(put(key, "")(tx), err)
			}
		}
		together(t, db, hears("a", nil), hears("b", errRefused), hears("c", nil))
		equal(t, "heard", strings.Join(heard, "; "), "a of a c; c of a c")
	})
}

func TestAfterCommitStaysSilentWhenTheTransactionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openBounded(t)
		heard := 0
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			tx.AfterCommit(func() { heard++ })
			return put("big", tooMuch)(tx)
		})
		if !errors.Is(err, sqlite.ErrFull) {
			t.Fatal(err)
		}
		equal(t, "heard", heard, 0)
	})
}

func TestWriteAfterCloseIsRefusedAndOneUnderWayIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := tempFile(t)
		db, err := sqlite.Open(t.Context(), options(path))
		must(t, err)
		gate := make(chan struct{})
		errs := make(chan error, 2)
		go func() { errs <- db.Write(t.Context(), func(tx *sqlite.Tx) error { <-gate; return put("a", "")(tx) }) }()
		synctest.Wait()
		go func() { errs <- db.Write(t.Context(), put("b", "")) }()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- db.Close() }()
		synctest.Wait()
		close(gate)
		must(t, <-closed)
		must(t, <-errs)
		must(t, <-errs)
		equal(t, "a Write after Close", db.Write(t.Context(), put("c", "")), sqlite.ErrClosed)
		equal(t, "what is there", keys(t, open(t, options(path))), "a b")
	})
}
