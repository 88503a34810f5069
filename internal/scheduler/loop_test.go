package scheduler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/push"
	"tandem/internal/sqlite"
)

// running calls fn within a bubble, with the node's loop running. The machine's
// clock is the bubble's, which begins at the start of the year 2000, and is moved
// by the node's offset.
func running(t *testing.T, fn func(*testing.T, *node)) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, noon)
		n.offset, n.wall = time.Until(n.wall), time.Time{}
		n.restart()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- n.scheduler.Loop().Run(ctx) }()
		synctest.Wait()
		fn(t, n)
		stop()
		n.must(<-done)
	})
}

// passes lets time go by and the loop come to rest.
func passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTheLoopRingsOnTime(t *testing.T) {
	running(t, func(t *testing.T, n *node) {
		n.add(Draft{Content: "far", TriggerAt: "2026-05-06T12:10:07.25Z"})
		n.add(Draft{Content: "near", TriggerAt: "2026-05-06T12:00:02Z"})
		passes(2 * time.Second)
		n.rang("2026-05-06T12:00:02Z near")
		n.add(Draft{Content: "each", CronExpr: "* * * * *"})
		passes(time.Minute)
		n.rang("2026-05-06T12:00:02Z near", "2026-05-06T12:01:00Z each")
		passes(9*time.Minute + 6*time.Second)
		rings := n.rings()
		equal(t, rings[len(rings)-1].Body, "far")
		for _, r := range rings {
			equal(t, r.At, r.DueAt)
		}
	})
}

func TestAnEarlierTimeWakesTheLoop(t *testing.T) {
	running(t, func(t *testing.T, n *node) {
		m := n.add(Draft{Content: "x", TriggerAt: "2026-05-06T12:00:25Z"})
		passes(3 * time.Second)
		n.edit(m, Change{TriggerAt: ptr("2026-05-06T12:00:05Z")})
		passes(2 * time.Second)
		n.rang("2026-05-06T12:00:05Z x")
	})
}

func TestARowFromThePeerWakesTheLoop(t *testing.T) {
	running(t, func(t *testing.T, n *node) {
		passes(time.Second)
		n.receive(peerRow(1, noon, `"trigger_at":1778068804000`)) // 12:00:04
		passes(3 * time.Second)
		n.rang("2026-05-06T12:00:04Z from the peer")
	})
}

func TestAMachineThatWasAsleepRingsSoonAfterItWakes(t *testing.T) { // R:B12
	running(t, func(t *testing.T, n *node) {
		n.add(Draft{Content: "x", TriggerAt: "2026-05-06T15:00:00Z"})
		passes(10 * time.Second)
		n.offset += 6 * time.Hour // asleep: the clock on the wall went on, timers did not
		passes(30 * time.Second)
		rings := n.rings()
		equal(t, len(rings), 1)
		if late := rings[0].At.Sub(instant(t, "2026-05-06T18:00:10Z")); late > 30*time.Second {
			t.Errorf("%v after it woke", late)
		}
	})
}

func TestTheLoopRingsOnThroughFailures(t *testing.T) {
	running(t, func(t *testing.T, n *node) {
		n.quiet = true // the backoff is spread by chance
		broken := true
		n.refuse = func(*sqlite.Tx, push.Notice) error {
			if broken {
				panic("no")
			}
			return nil
		}
		n.add(Draft{Content: "x", TriggerAt: "2026-05-06T12:00:10Z"})
		passes(30 * time.Second)
		n.rang()
		broken = false
		passes(40 * time.Second) // the longest backoff and its spread
		equal(t, len(n.rings()), 1)
	})
}

func TestAStartDerivesAnewWhatAnotherBuildDerived(t *testing.T) {
	for _, idle := range []bool{false, true} {
		n := newNode(t, noon)
		m := n.add(Draft{Content: "x", TriggerAt: "2026-05-06T13:00:00Z"})
		off := n.add(Draft{Content: "off", TriggerAt: "2026-05-06T13:00:00Z", Disabled: true})
		n.must(n.db.Write(t.Context(), func(tx *sqlite.Tx) error {
			for range 500 { // more than are looked at in one go
				if _, _, err := n.store.AddTx(tx, ben, Draft{Content: "y", TriggerAt: "2027-01-01T00:00:00Z"}); err != nil {
					return err
				}
			}
			return nil
		}))
		last := n.add(Draft{Content: "last", TriggerAt: "2026-05-06T13:00:00Z"})
		forget := func() { // as a build that knew less would have left them
			n.must(n.db.Write(t.Context(), func(tx *sqlite.Tx) error {
				_, err := tx.Exec(`UPDATE scheduled_messages SET next_fire_at = NULL`)
				return err
			}))
		}
		forget()
		n.idle = idle
		n.restart()
		n.must(n.round())
		n.next(m, "2026-05-06T13:00:00Z")
		n.next(last, "2026-05-06T13:00:00Z")
		n.next(off, "")

		forget() // and no other round looks at them all
		n.tick("2026-05-06T12:30:00Z")
		n.next(m, "")
	}
}
