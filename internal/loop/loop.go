// Package loop runs a node's background work. Whatever outlives a request is a
// Loop, so that all of it has a name, stops when asked, and survives its own
// panics; nothing else starts a goroutine that lasts.
package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// Failing work waits at least Shortest and at most Longest before its next
// round, whatever its interval is. The far end of a link that heals is found
// again within Longest.
const (
	Shortest = time.Second
	Longest  = 30 * time.Second
)

// Loop calls its work at start, then at each interval, and sooner when woken.
type Loop struct {
	name  string
	every time.Duration
	work  func(context.Context) error
	log   *slog.Logger
	wake  chan struct{}
	again chan struct{}
}

// New returns a loop that is not yet running. Every is the longest time between
// two rounds; work that learns of events in other ways is woken.
func New(name string, every time.Duration, log *slog.Logger, work func(context.Context) error) *Loop {
	return &Loop{name: name, every: every, work: work, log: log.With("loop", name), wake: make(chan struct{}, 1), again: make(chan struct{}, 1)}
}

// Wake asks for a round soon. It never blocks, and calls made before the round
// begins count as one. While the work is failing only the backoff starts a round.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Again is Wake for when what made the work fail has changed: it ends the backoff too.
func (l *Loop) Again() {
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// Run blocks until ctx ends. A round that fails or panics is logged in one line,
// unless its error is Told, and tried again with backoff; it never ends the loop.
func (l *Loop) Run(ctx context.Context) error {
	failures := 0
	for {
		err := l.round(ctx)
		if ctx.Err() != nil {
			return nil
		}
		wait, wake := l.every, (<-chan struct{})(l.wake)
		if err == nil {
			failures = 0
		} else {
			failures++
			wait, wake = Backoff(failures), nil
			if _, quiet := errors.AsType[told](err); !quiet {
				l.log.WarnContext(ctx, "round failed", "error", err, "failures", failures, "retry_in", wait)
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-wake:
			timer.Stop()
		case <-l.again:
			timer.Stop()
			failures = 0
		}
	}
}

func (l *Loop) round(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return l.work(ctx)
}

// Backoff is how long to wait after so many failures in a row: it quadruples from
// Shortest, and is Longest after the third, less up to a quarter so that two nodes that failed together
// do not come back together.
func Backoff(failures int) time.Duration {
	d := min(Shortest<<min(2*max(failures-1, 0), 16), Longest)
	return max(Shortest, time.Duration(float64(d)*(1-rand.Float64()/4)))
}
