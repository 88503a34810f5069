// Package scheduler turns time into notices. What is to be said, and when, are
// replicated rows; what has rung is facts; when something rings next is derived
// from the two. Nothing is kept in a timer, so a node that was down or asleep
// catches up, and a restart forgets nothing. How a notice reaches a person is for
// package push.
package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"tandem/internal/loop"
	"tandem/internal/push"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

const (
	// longest is the longest sleep. Timers stand still while a machine is suspended,
	// so this bounds how late it rings after it wakes.
	longest = 30 * time.Second
	// batch is how many messages share a transaction.
	batch = 100
)

// outbox takes a notice in the transaction of the fire. Handing in the same fire
// again changes nothing.
type outbox interface {
	EnqueueTx(*sqlite.Tx, push.Notice) error
}

// Options say how the scheduler behaves.
type Options struct {
	Active   bool               // false: rings nothing, and yet keeps what would ring next
	Disabled func() []string    // owners whose reminders are paused, from memory
	Crash    func(point string) // where set, called at scheduler.due (nothing written) and scheduler.fired (committed)
	Log      *slog.Logger
}

// Scheduler rings what is due.
type Scheduler struct {
	db     *sqlite.DB
	store  *Store
	outbox outbox
	o      Options
	log    *slog.Logger
	loop   *loop.Loop
	alarm  *time.Timer // wakes the loop when something is due sooner than in longest
	fresh  bool        // what is derived has been looked at since the start, and since the clock was set back
	seen   time.Time   // by the clock, in the last round
}

// New returns a scheduler that is not yet running.
func New(db *sqlite.DB, store *Store, out outbox, o Options) *Scheduler {
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	s := &Scheduler{db: db, store: store, outbox: out, o: o, log: o.Log}
	s.loop = loop.New("scheduler", longest, o.Log, s.round)
	store.table.wake = s.loop.Wake
	return s
}

// Loop is what runs while the node does. It is woken by each commit that changes
// what rings next; whoever lets an owner in again may wake it too.
func (s *Scheduler) Loop() *loop.Loop { return s.loop }

// round rings what is due and sets the alarm for what comes next. The first one
// after a start also derives everything anew; so does one that finds the clock set
// back, since what rang ahead of its time had passed over what is still to come.
func (s *Scheduler) round(ctx context.Context) error {
	now := s.db.Now()
	if now.Before(s.seen.Add(-time.Second)) {
		s.fresh = false
	}
	s.seen = now
	if err := s.Tick(ctx); err != nil {
		return err
	}
	if !s.fresh {
		if err := s.refresh(ctx); err != nil {
			return err
		}
		s.fresh = true
	}
	if !s.o.Active {
		return nil
	}
	next, some, err := s.next(ctx)
	if err != nil || !some {
		return err
	}
	if wait := next.Sub(s.db.Now()); wait < longest {
		s.wakeIn(max(wait, 0))
	}
	return nil
}

func (s *Scheduler) wakeIn(d time.Duration) {
	if s.alarm == nil {
		s.alarm = time.AfterFunc(d, s.loop.Wake)
		return
	}
	s.alarm.Reset(d)
}

// Tick rings all that is due by the clock on the wall. Nothing due is one look at
// the end of an index, however many messages there are. A message that cannot be
// rung does not keep the others waiting; it is tried again in the next round.
func (s *Scheduler) Tick(ctx context.Context) error {
	if !s.o.Active {
		return nil
	}
	next, some, err := s.next(ctx)
	if err != nil || !some || next.After(s.db.Now()) {
		return err
	}
	s.o.Crash("scheduler.due")
	if err := s.ringAll(ctx); err != nil {
		return err
	}
	s.o.Crash("scheduler.fired")
	return nil
}

// next returns the earliest time at which a message rings whose owner is not
// paused. It walks past the overdue ones of owners who are.
func (s *Scheduler) next(ctx context.Context) (at time.Time, some bool, err error) {
	ms, err := sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) (int64, error) {
		var ms int64
		ms, some, err = sqlite.One(tx, sqlite.Value[int64], nextDue, s.paused())
		return ms, err
	})
	return sqlite.Time(ms), some, err
}

const nextDue = `
	SELECT next_fire_at FROM scheduled_messages
	WHERE next_fire_at IS NOT NULL AND owner NOT IN (SELECT value FROM json_each(?))
	ORDER BY next_fire_at
	LIMIT 1`

// paused is the owners whose reminders wait, as a JSON list.
func (s *Scheduler) paused() string {
	owners, err := json.Marshal(append([]string{}, s.o.Disabled()...))
	if err != nil {
		panic("scheduler: a list of texts did not marshal: " + err.Error())
	}
	return string(owners)
}

// spot is where a message stands in the order in which things are due.
type spot struct {
	at int64
	sync.Ref
}

const dueAfter = selectMessage + `
	WHERE next_fire_at IS NOT NULL AND next_fire_at <= ? AND (next_fire_at, origin, id) > (?, ?, ?)
	  AND owner NOT IN (SELECT value FROM json_each(?))
	ORDER BY next_fire_at, origin, id
	LIMIT ?`

// dueTx returns the next messages behind a spot that are due.
func (s *Scheduler) dueTx(tx *sqlite.Tx, after spot) ([]Message, error) {
	due, err := sqlite.All(tx, scan, dueAfter, tx.Millis(), after.at, after.Origin, after.ID, s.paused(), batch)
	if err != nil {
		return nil, err
	}
	return due, s.store.table.homes(tx).fillAll(due)
}

// ringAll goes once through all that is due, a batch in each transaction.
func (s *Scheduler) ringAll(ctx context.Context) error {
	var failed []error
	for after := (spot{at: math.MinInt64}); ; {
		var due []Message
		err := s.db.Write(ctx, func(tx *sqlite.Tx) (err error) {
			if due, err = s.dueTx(tx, after); err != nil {
				due = nil
				return err
			}
			for _, m := range due {
				if err := s.fireTx(tx, m); err != nil {
					return fmt.Errorf("reminder %s: %w", m.Ref, err)
				}
			}
			return nil
		})
		if err != nil && len(due) == 0 {
			return errors.Join(append(failed, err)...)
		}
		if err != nil {
			failed = append(failed, s.ringEach(ctx, due)...)
		}
		if len(due) < batch || ctx.Err() != nil {
			return errors.Join(failed...)
		}
		last := due[len(due)-1]
		after = spot{last.NextFireAt.UnixMilli(), last.Ref}
	}
}

// ringEach rings each of a batch that failed in a transaction of its own, and
// returns what went wrong.
func (s *Scheduler) ringEach(ctx context.Context, due []Message) (failed []error) {
	for _, m := range due {
		err := s.db.Write(ctx, func(tx *sqlite.Tx) error {
			now, found, err := sqlite.One(tx, scan, selectMessage+`WHERE uid = ? AND next_fire_at <= ?`, m.UID[:], tx.Millis())
			if err != nil || !found { // not found: edited since
				return err
			}
			if err := s.store.table.homes(tx).fill(&now); err != nil {
				return err
			}
			return s.fireTx(tx, now)
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("reminder %s: %w", m.Ref, err))
		}
	}
	return failed
}
