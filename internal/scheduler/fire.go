package scheduler

import (
	"fmt"
	"time"

	"tandem/internal/push"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

const (
	// counted is how many missed occurrences are told apart; behind it the number
	// says nothing more to a person.
	counted = 100

	kind  = "ring" // what the outbox tells the notices of one fire apart by
	title = "Reminder"

	keptOnce    = 24 * time.Hour // how long a service keeps the notice of a one-shot for a phone that is off,
	keptRegular = 4 * time.Hour  // and one of many
)

// story is the body of the facts fired and missed.
type story struct {
	Reminder     sync.UID `json:"reminder"`
	ScheduleHash string   `json:"schedule_hash"`
	Occurrence   string   `json:"occurrence"` // as package when names it
	DueAt        int64    `json:"due_at"`     // Unix ms
	Text         string   `json:"text"`
	Earlier      int      `json:"earlier_missed,omitempty"` // occurrences that this one stands for, up to counted
}

func (m Message) story(o when.Occurrence, earlier int) story {
	return story{m.UID, m.scheduleHash(), o.Key, o.At.UnixMilli(), m.Content, earlier}
}

// fireTx rings a message that is due, or finds that there is nothing to ring. The
// fact, the notice and the next time are one transaction with whatever else fires
// in it: a crash leaves all of it or nothing.
func (s *Scheduler) fireTx(tx *sqlite.Tx, m Message) error {
	schedule, err := m.plan()
	if err != nil { // it could be followed when it was planned: a zone is gone, or a file was edited
		s.log.Warn("a reminder can no longer be scheduled", "reminder", m.Ref.String(), "error", err)
		return s.store.table.planTx(tx, &m)
	}
	due, earlier, ok, err := newestTx(tx, m, schedule)
	if err == nil && ok {
		err = s.ringTx(tx, m, due, earlier)
	} else if err == nil {
		err = s.missTx(tx, m, schedule)
	}
	if err != nil {
		return err
	}
	return s.store.table.planTx(tx, &m)
}

// newestTx returns the newest occurrence that is due and has not rung, and how many
// are before it; false means that none is due.
func newestTx(tx *sqlite.Tx, m Message, s when.Schedule) (when.Occurrence, int, bool, error) {
	first, ok, err := firstTx(tx, m, s)
	if err != nil || !ok || first.At.After(tx.Now) {
		return first, 0, false, err
	}
	due := passed(s, first, tx.Now)
	for i := len(due) - 1; i > 0; i-- {
		if rung, err := rungTx(tx, m.fireID(due[i])); err != nil || !rung {
			return due[i], min(i, counted), true, err
		}
	}
	return first, 0, true, nil
}

// passed returns the occurrences from first up to now. Where there are more than
// counted, it leaves out those before the newest.
func passed(s when.Schedule, first when.Occurrence, now time.Time) []when.Occurrence {
	due := []when.Occurrence{first}
	for len(due) <= counted {
		o, ok := s.Next(due[len(due)-1].At)
		if !ok || o.At.After(now) {
			return due
		}
		due = append(due, o)
	}
	return append(due, newest(s, due[len(due)-1], now))
}

// newest returns the last occurrence up to now, which is o or comes after it. It
// looks back from now in steps that double, so that a year of minutes is found as
// quickly as an hour of them.
func newest(s when.Schedule, o when.Occurrence, now time.Time) when.Occurrence {
	for back := shortest; now.Add(-back).After(o.At); back *= 2 {
		if n, ok := s.Next(now.Add(-back)); ok && !n.At.After(now) {
			o = n
			break
		}
	}
	for {
		n, ok := s.Next(o.At)
		if !ok || n.At.After(now) {
			return o
		}
		o = n
	}
}

func (s *Scheduler) ringTx(tx *sqlite.Tx, m Message, due when.Occurrence, earlier int) error {
	id := m.fireID(due)
	if _, err := s.store.log.FactTx(tx, Fired, id, m.Owner, "", m.story(due, earlier)); err != nil {
		return err
	}
	ttl := keptRegular
	if m.TriggerAt != nil {
		ttl = keptOnce
	}
	return s.outbox.EnqueueTx(tx, push.Notice{
		FireID: id, Kind: kind, Owner: m.Owner, Title: title, Body: m.Content, Notes: notes(earlier),
		DueAt: due.At, TTL: ttl, Zone: m.EffectiveZone(),
	})
}

// notes tell a person of how many occurrences this is the newest. That it is late
// the outbox says, whatever held it up.
func notes(earlier int) []string {
	switch {
	case earlier >= counted:
		return []string{fmt.Sprintf("%d or more earlier missed", counted)}
	case earlier > 0:
		return []string{fmt.Sprintf("%d earlier missed", earlier)}
	}
	return nil
}

// missTx tells of an occurrence that this node had planned and finds too old to
// ring. A plan that was not kept for another reason is no loss to tell of: the rules
// of the zone have moved it, or it has rung, or a newer one has.
func (s *Scheduler) missTx(tx *sqlite.Tx, m Message, schedule when.Schedule) error {
	o, ok := schedule.Next(m.NextFireAt.Add(-time.Second))
	if !ok || o.At.After(tx.Now.Add(-oldest)) {
		return nil
	}
	rung, err := rungTx(tx, m.fireID(o))
	if err != nil || rung {
		return err
	}
	_, err = s.store.log.FactTx(tx, Missed, m.fireID(o), m.Owner, "", m.story(o, 0))
	return err
}
