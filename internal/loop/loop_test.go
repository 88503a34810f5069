package loop_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/loop"
)

// run starts a loop and returns how to stop it and wait for it.
func run(l *loop.Loop) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	return func() { cancel(); <-done }
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestALoopWorksAtOnceThenAtEachIntervalAndSoonerWhenWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds atomic.Int32
		l := loop.New("x", time.Minute, slog.New(slog.DiscardHandler), func(context.Context) error { rounds.Add(1); return nil })
		stop := run(l)
		for i, step := range []struct {
			wait time.Duration
			wake int
			want int32
		}{{0, 0, 1}, {59 * time.Second, 0, 1}, {2 * time.Second, 0, 2}, {time.Second, 1, 3}, {58 * time.Second, 0, 3}, {3 * time.Second, 0, 4}} {
			for range step.wake {
				l.Wake()
			}
			pass(step.wait)
			if got := rounds.Load(); got != step.want {
				t.Fatalf("step %d: %d rounds, want %d", i, got, step.want)
			}
		}
		stop()
	})
}

func TestFailingWorkBacksOffWhateverWakesItAndPanicsEndOnlyTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var rounds, good atomic.Int32
		heal := atomic.Bool{}
		l := loop.New("y", time.Millisecond, slog.New(slog.NewTextHandler(&log, nil)), func(context.Context) error {
			switch n := rounds.Add(1); {
			case heal.Load():
				good.Add(1)
				return nil
			case n%2 == 0:
				panic("no")
			}
			return errors.New("broken")
		})
		stop := run(l)
		for range 600 { // ten minutes, woken each second
			pass(time.Second)
			l.Wake()
		}
		if n := rounds.Load(); n < 20 || n > 40 {
			t.Errorf("%d rounds in ten minutes of failing", n)
		}
		heal.Store(true)
		pass(loop.Longest)
		if good.Load() == 0 {
			t.Errorf("not healed within %v", loop.Longest)
		}
		stop()
		if lines := strings.Count(log.String(), "round failed"); lines != int(rounds.Load()-good.Load()) {
			t.Errorf("%d lines for %d failures", lines, rounds.Load()-good.Load())
		}
		if !strings.Contains(log.String(), "loop=y") || !strings.Contains(log.String(), "panic: no") {
			t.Errorf("the log says\n%.300s", log.String())
		}
	})
}

// What has changed that the work failed for need not wait for the backoff.
func TestFailingWorkIsTriedAgainAtOnceWhenItsReasonHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds atomic.Int32
		l := loop.New("z", time.Hour, slog.New(slog.DiscardHandler), func(context.Context) error {
			rounds.Add(1)
			return errors.New("not yet")
		})
		stop := run(l)
		pass(10 * time.Minute)
		before := rounds.Load()
		l.Wake()
		pass(0)
		if got := rounds.Load(); got != before {
			t.Errorf("%d rounds more since it was woken", got-before)
		}
		l.Again()
		pass(0)
		if got := rounds.Load(); got != before+1 {
			t.Errorf("%d rounds more when its reason has changed, want 1", got-before)
		}
		stop()
	})
}

func TestWhatTheWorkHasToldIsNotToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var rounds atomic.Int32
		broken := errors.New("broken")
		l := loop.New("z", time.Hour, slog.New(slog.NewTextHandler(&log, nil)), func(context.Context) error {
			if rounds.Add(1) == 3 {
				return nil
			}
			return loop.Told(broken)
		})
		stop := run(l)
		pass(loop.Longest)
		if rounds.Load() != 3 || log.Len() > 0 {
			t.Errorf("%d rounds, and the log says %q", rounds.Load(), log.String())
		}
		stop()
		if !errors.Is(loop.Told(broken), broken) || loop.Told(nil) != nil {
			t.Error("it is another error")
		}
	})
}

func TestBackoffGrowsWithinItsBounds(t *testing.T) {
	for failures := range 100 {
		for range 20 {
			if d := loop.Backoff(failures); d < loop.Shortest || d > loop.Longest {
				t.Fatalf("after %d failures: %v", failures, d)
			}
		}
	}
	if loop.Backoff(1) > 2*loop.Shortest || loop.Backoff(3) > loop.Longest*2/3 || loop.Backoff(4) < loop.Longest*3/4 {
		t.Error("it does not grow to its longest after three failures")
	}
}

func TestEachDoesAllWhateverBecomesOfOneAndNoMoreAtOnceThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, done atomic.Int32
		err := loop.Each(t.Context(), 3, []int{0, 1, 2, 3, 4, 5, 6, 7}, func(_ context.Context, i int) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			done.Add(1)
			switch i {
			case 1:
				return errors.New("one is broken")
			case 2:
				panic("two is worse")
			}
			return nil
		})
		if done.Load() != 8 || most.Load() != 3 {
			t.Errorf("%d done, %d at once", done.Load(), most.Load())
		}
		if err == nil || !strings.Contains(err.Error(), "one is broken") || !strings.Contains(err.Error(), "two is worse") {
			t.Error(err)
		}
	})
}
