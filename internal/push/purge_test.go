package push

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
)

func TestADoneNoticeIsForgottenAfterNinetyDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		purge := func() (more bool) {
			w.write(func(tx *sqlite.Tx) (err error) { more, err = PurgeTx(tx); return err })
			return more
		}
		rows := func() (n int) {
			n, err := sqlite.Read(t.Context(), w.db, func(tx *sqlite.Tx) (int, error) {
				n, _, err := sqlite.One(tx, sqlite.Value[int], `
					SELECT (SELECT count(*) FROM delivery_intents) + (SELECT count(*) FROM delivery_targets) + (SELECT count(*) FROM delivery_events)`)
				return n, err
			})
			must(t, err)
			return n
		}
		var many []Notice
		for i := range 201 {
			many = append(many, ring(fmt.Sprint(i), "ada"))
		}
		w.enqueue(many...)
		w.deliver()
		whole := rows()
		w.enqueue(ring("waits", "bob")) // nobody can tell him
		w.deliver()
		all := rows()
		time.Sleep(keptSettled - time.Second)
		equal(t, purge(), false)
		equal(t, rows(), all)
		time.Sleep(time.Second)
		equal(t, purge(), true)
		equal(t, purge(), false)
		equal(t, rows(), all-whole)
		equal(t, w.of("waits").State, Retryable)
	})
}
