package push

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
)

func throttle(after time.Duration) func(context.Context, Target) error {
	return func(context.Context, Target) error {
		return &Failure{Verdict: Throttled, Code: "429", RetryAfter: after}
	}
}

func TestThrottledChannelIsLeftAloneAndOthersAreUsed(t *testing.T) { // R:C2
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.phone("bob", "b")
		w.fcm.will(throttle(time.Minute))
		w.enqueue(ring("one", "ada"))
		w.deliver()
		equal(t, w.of("one").Channel, "telegram") // meanwhile
		began := time.Now()

		w.fcm.will(take)
		w.enqueue(ring("two", "ada"), ring("three", "bob"))
		w.deliver()
		same(t, w.telegram.to(), []string{"42", "42"})
		equal(t, w.of("three").State, Retryable)
		equal(t, w.of("three").Reason, throttled)

		w.start() // the pause outlives the process
		w.run(w.outbox.Loops(), time.Minute-time.Second)
		equal(t, len(w.fcm.to()), 1)
		w.run(w.outbox.Loops(), poll+time.Second)
		same(t, w.fcm.to(), []string{"a", "b"})
		if waited := w.fcm.last().at.Sub(began); waited < time.Minute {
			t.Errorf("called again after %v", waited)
		}
		equal(t, w.of("three").State, Accepted)
	})
}

func TestPauseWithoutALengthIsAMinuteAndDoubles(t *testing.T) { // R:C2
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("bob", "b")
		w.fcm.will(throttle(0))
		w.enqueue(ring("fire", "bob"))
		w.run(w.outbox.Loops(), 10*time.Minute)
		least := time.Minute
		equal(t, len(w.fcm.posts), 4) // at 0, 1, 3 and 7 minutes, and a little
		for i := 1; i < len(w.fcm.posts); i++ {
			gap := w.fcm.posts[i].at.Sub(w.fcm.posts[i-1].at)
			if gap < least || gap > least*5/4+poll {
				t.Errorf("pause %d is %v, want about %v", i, gap, least)
			}
			least *= 2
		}
		w.fcm.will(take)
		w.run(w.outbox.Loops(), 10*time.Minute)
		equal(t, w.of("fire").State, Accepted)

		w.fcm.will(throttle(0)) // a success forgets the pauses before it
		w.enqueue(ring("next", "bob"))
		w.run(w.outbox.Loops(), 2*time.Minute)
		last := w.fcm.posts[len(w.fcm.posts)-2:]
		if gap := last[1].at.Sub(last[0].at); gap > time.Minute*5/4+poll {
			t.Errorf("the first pause after a success is %v", gap)
		}
	})
}

func TestCallsUnderWayTogetherAreThrottledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("bob", "b", "c", "d")
		w.fcm.will(each(map[string]func(context.Context, Target) error{"b": throttle(0), "c": throttle(0)})) // d is taken
		w.enqueue(ring("fire", "bob"))
		w.deliver()
		failures, err := sqlite.Read(t.Context(), w.db, func(tx *sqlite.Tx) ([]int, error) {
			return sqlite.All(tx, sqlite.Value[int], `SELECT failures FROM delivery_gates WHERE until > ?`, tx.Millis())
		})
		must(t, err)
		same(t, failures, []int{1}) // and what was taken meanwhile does not end the pause
	})
}

func TestThrottledChatHoldsUpNoOtherChat(t *testing.T) { // R:D11
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.routes = func(w *world) []Route {
			return []Route{{Channel: w.telegram, PerAddress: true, Targets: func(_ context.Context, owner string) ([]Target, error) {
				return []Target{{Address: "chat of " + owner}}, nil
			}}}
		}
		w.start()
		w.telegram.will(each(map[string]func(context.Context, Target) error{"chat of ada": throttle(51 * time.Second)}))
		w.enqueue(ring("one", "ada"))
		w.deliver()
		w.enqueue(ring("two", "bob"), ring("three", "ada"))
		w.deliver()
		same(t, w.telegram.to(), []string{"chat of ada", "chat of bob"})
		w.telegram.will(take)
		time.Sleep(50 * time.Second)
		w.deliver()
		equal(t, len(w.telegram.to()), 2)
		time.Sleep(time.Second)
		w.deliver()
		equal(t, len(w.telegram.to()), 4)
	})
}
