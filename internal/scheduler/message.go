package scheduler

import (
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

// Notify is the action of a message that is said as it stands. A row from a newer
// version may name another, which is kept, shown by Problem, and not carried out.
const Notify = "notify"

// utc is where a schedule is read when nobody has said where its owner lives: the
// zone of the machine says nothing about people.
const utc = "UTC"

// Message is something to be said at a time. One of TriggerAt, CronExpr and RRule
// is set, except in what another version may have sent.
type Message struct {
	sync.Head
	Content       string
	Action        string
	TriggerAt     *time.Time
	CronExpr      *string
	RRule         *string // with its DTSTART line
	Zone          *string // IANA; nil is the owner's, also after the owner has moved
	Enabled       bool
	EffectiveFrom *time.Time // occurrences up to it belong to an older schedule; nil is CreatedAt
	NextFireAt    *time.Time // this node's own: what it would ring next, or is about to; nil is nothing more

	fromCompletion bool
	zoneMode       string
	home           string // the owner's zone; empty when it is not known
}

// EffectiveZone is the IANA zone in which the schedule is read and its times are shown.
func (m Message) EffectiveZone() string {
	if zone := m.chosenZone(); zone != "" {
		return zone
	}
	return utc
}

// chosenZone is the zone that somebody has named, or nothing.
func (m Message) chosenZone() string {
	if zone := text(m.Zone); zone != "" {
		return zone
	}
	return m.home
}

// plan returns the schedule, or why this node cannot follow it.
func (m Message) plan() (when.Schedule, error) {
	if m.Action != Notify {
		return when.Schedule{}, fault.New(fault.Invalid, "unknown_action",
			"This node cannot do what the reminder asks for, so it does not ring here. A newer version may.")
	}
	r := when.Rule{Cron: text(m.CronExpr), RRule: text(m.RRule), Zone: m.EffectiveZone()}
	if m.TriggerAt != nil {
		r.At = *m.TriggerAt
	}
	return when.Parse(r)
}

// Problem says why the message can never ring on this node, or is nil. What a
// person makes here has none; what a peer sent is kept as it came and may have.
func (m Message) Problem() *fault.Error {
	s, err := m.plan()
	if err == nil && m.TriggerAt == nil {
		if _, ever := s.Next(time.Unix(0, 0)); !ever {
			err = when.ErrNeverFires
		}
	}
	if err == nil {
		return nil
	}
	return fault.From(err)
}

// Warnings tell what the schedule does that its maker may not expect. None is an
// empty list, and never nil.
func (m Message) Warnings() []when.Warning {
	s, err := m.plan()
	if err != nil {
		return []when.Warning{}
	}
	warnings := s.Warnings()
	if m.TriggerAt == nil && m.chosenZone() == "" {
		warnings = append(warnings, noZone)
	}
	return warnings
}

var noZone = when.Warning{Code: "no_zone", Detail: "No zone is known for you, so the time is read as UTC. Set your zone, or give one with the reminder."}

// Upcoming returns the next n times at which the message rings, fewer when it
// ends before. The first may have passed: then it is about to ring late.
func (m Message) Upcoming(now time.Time, n int) []time.Time {
	s, err := m.plan()
	if err != nil || m.NextFireAt == nil {
		return nil
	}
	times := []time.Time{*m.NextFireAt}
	for after := later(now, *m.NextFireAt); len(times) < n; after = times[len(times)-1] {
		o, ok := s.Next(after)
		if !ok {
			break
		}
		times = append(times, o.At)
	}
	return times
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

const columns = sync.HeadColumns + `, content, action, trigger_at, cron_expr, rrule, from_completion, tz, tz_mode,
	enabled, schedule_effective_from, next_fire_at`

const selectMessage = `SELECT ` + columns + ` FROM scheduled_messages `

// scan reads columns. Whose zone the schedule is read in is for homes.fill to add.
func scan(r sqlite.Row) (m Message, err error) {
	var trigger, from, next *int64
	err = r.Scan(append(m.Dest(), &m.Content, &m.Action, &trigger, &m.CronExpr, &m.RRule, &m.fromCompletion,
		&m.Zone, &m.zoneMode, &m.Enabled, &from, &next)...)
	m.TriggerAt, m.EffectiveFrom, m.NextFireAt = sqlite.TimePtr(trigger), sqlite.TimePtr(from), sqlite.TimePtr(next)
	return m, err
}

func (m Message) args() []any {
	return append(m.Args(), m.Content, m.Action, sqlite.MillisPtr(m.TriggerAt), m.CronExpr, m.RRule, m.fromCompletion,
		m.Zone, m.zoneMode, m.Enabled, sqlite.MillisPtr(m.EffectiveFrom), sqlite.MillisPtr(m.NextFireAt))
}
