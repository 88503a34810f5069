package push

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A process that is killed goes on at once in the next: what it may have sent is
// sent again and says so, and what it had not begun is sent as if nothing happened.
func TestCrashLosesNothingAndMarksWhatMayComeTwice(t *testing.T) { // R:B3
	again := []string{againNotes["restart"]}
	for _, c := range []struct {
		point    string
		fcmFails bool
		fcm      [][]string // the notes of each post
		telegram [][]string
	}{
		{"push.sending", false, [][]string{again}, nil},
		{"push.taken", false, [][]string{{}, again}, nil},
		{"push.recorded", false, [][]string{{}}, nil},
		{"push.fallback", true, [][]string{{}}, [][]string{{}}},
	} {
		t.Run(c.point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.phone("ada", "a")
				if c.fcmFails {
					w.fcm.will(fail(Retry, "500"))
				}
				w.enqueue(ring("fire", "ada"))
				w.dies(c.point)
				w.deliver()
				same(t, notes(w.fcm), c.fcm)
				same(t, notes(w.telegram), c.telegram)
				equal(t, w.of("fire").State, Accepted)
				equal(t, len(w.facts("fire", "accepted")), 1)
				w.story("fire")
				w.start() // once more: there is nothing left to do
				w.deliver()
				same(t, notes(w.fcm), c.fcm)
				same(t, notes(w.telegram), c.telegram)
			})
		})
	}
}

func notes(f *fake) (all [][]string) {
	for _, p := range f.posts {
		all = append(all, append([]string{}, p.Notes...))
	}
	return all
}

// Two crashes on one way: while FCM is asked, and while Telegram is.
func TestCrashOnEachChannelOfTheChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.fcm.will(fail(Retry, "500"))
		w.enqueue(ring("fire", "ada"))
		w.dies("push.sending")
		w.dies("push.fallback")
		w.dies("push.taken") // Telegram took it
		w.deliver()
		same(t, notes(w.fcm), [][]string{{againNotes["restart"]}})
		same(t, notes(w.telegram), [][]string{{}, {againNotes["restart"]}})
		equal(t, w.of("fire").State, Accepted)
		equal(t, w.of("fire").Attempts, 4)
	})
}

func TestACrashedSendWhoseTimeIsUpIsUnknownAndNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.enqueue(ring("fire", "ada"))
		w.dies("push.taken")
		time.Sleep(25 * time.Hour)
		w.deliver()
		equal(t, len(w.fcm.to()), 1)
		d := w.of("fire")
		equal(t, d.State, Unknown)
		dead, err := w.outbox.Dead(t.Context())
		must(t, err)
		equal(t, len(dead), 1)
		w.story("fire")
	})
}

// Another process on the same file, such as one that came to life again after the
// lease ran out, may not write what it found.
func TestALateHolderRecordsNothing(t *testing.T) { // R:F2
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.enqueue(ring("fire", "ada"))
		claimed, err := w.outbox.claim(t.Context())
		must(t, err)
		old := *w.outbox
		s, err := old.begin(t.Context(), claimed[0])
		must(t, err)
		time.Sleep(held)
		w.deliver() // the claim is open
		equal(t, w.of("fire").State, Accepted)
		if _, err := old.record(t.Context(), claimed[0], s, []outcome{{failure: &Failure{Verdict: Unregistered, Code: "UNREGISTERED"}}}); err == nil {
			t.Error("the late record was taken")
		}
		equal(t, w.of("fire").State, Accepted)
		equal(t, len(w.facts("fire", "attempt")), 1)
		devices, err := w.tokens.List(t.Context(), "ada")
		must(t, err)
		equal(t, len(devices), 1)
	})
}

func TestGracefulStopLosesNothing(t *testing.T) { // R:E9
	slow := func(d time.Duration) func(context.Context, Target) error {
		return func(ctx context.Context, _ Target) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return &Failure{Verdict: Retry, Code: "cancelled"}
			}
		}
	}
	t.Run("a send under way finishes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.phone("ada", "a")
			w.fcm.will(slow(9 * time.Second))
			w.enqueue(ring("fire", "ada"))
			w.run(w.outbox.Loops(), time.Second)
			equal(t, w.of("fire").State, Accepted)
			equal(t, len(w.facts("fire", "accepted")), 1)
		})
	})
	t.Run("one that does not is cut after ten seconds, and goes on after the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.phone("ada", "a")
			w.fcm.will(slow(14 * time.Second))
			began := time.Now()
			w.enqueue(ring("fire", "ada"))
			w.run(w.outbox.Loops(), time.Second)
			equal(t, time.Since(began), 11*time.Second)
			equal(t, len(w.telegram.to()), 0) // no send begins after the stop
			equal(t, w.of("fire").State, Retryable)
			w.start()
			w.deliver()
			same(t, w.telegram.to(), []string{"42"})
		})
	})
	t.Run("what was claimed and not begun is free at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.phone("ada", "a")
			w.enqueue(ring("fire", "ada"))
			claimed, err := w.outbox.claim(t.Context())
			must(t, err)
			stopped, stop := context.WithCancel(t.Context())
			stop()
			must(t, w.outbox.serve(stopped, claimed[0]))
			equal(t, len(w.fcm.to()), 0)
			w.deliver() // without OrphansTx
			same(t, w.fcm.to(), []string{"a"})
			same(t, w.fcm.last().Notes, []string{})
		})
	})
}
