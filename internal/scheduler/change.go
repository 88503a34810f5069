package scheduler

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/internal/fault"
	"tandem/internal/sync"
	"tandem/internal/when"
)

const (
	// MaxContent is how long a message may be, in bytes.
	MaxContent = 64 << 10
	// shortest is the least time between two ringings of one message.
	shortest = time.Minute
)

// ErrNotFound is returned for a message that is not there, was deleted, or is
// somebody else's: which of these is nobody's business.
var ErrNotFound = fault.New(fault.NotFound, "scheduled_message_not_found", "There is no such reminder.")

// errInvalid is what each refusal of a content starts from.
var errInvalid = fault.New(fault.Invalid, "scheduled_message_invalid", "The reminder was not saved: something in it is not right.")

// Draft is what a message is made of: a content, and one of TriggerAt, CronExpr and
// RRule. TriggerAt is RFC 3339 with an offset, or a local time that is read in
// Zone, or in the owner's own.
type Draft struct {
	Content   string
	TriggerAt string
	CronExpr  string
	RRule     string
	Zone      string
	Disabled  bool       // kept for later: it does not ring until it is enabled
	Asked     sync.Asked // by which request, where it has a key
}

// Change is what to alter; nil leaves a field as it is, and an empty text takes it
// away. A schedule of one kind replaces one of another that the change is silent of.
type Change struct {
	Content   *string
	TriggerAt *string
	CronExpr  *string
	RRule     *string
	Zone      *string
	Enabled   *bool
}

// change returns d as a change of nothing. What was not given takes nothing away.
func (d Draft) change() Change {
	enabled := !d.Disabled
	return Change{Content: &d.Content, TriggerAt: optional(d.TriggerAt), CronExpr: optional(d.CronExpr),
		RRule: optional(d.RRule), Zone: optional(d.Zone), Enabled: &enabled}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// apply alters m and checks what it alters. What was sent by another version and
// is not touched is not judged: a person can correct a text without answering for
// a schedule that this node does not understand.
func (c Change) apply(m *Message, now time.Time) ([]when.Warning, error) {
	before := m.scheduleHash()
	wasOn := m.Enabled
	if c.Content != nil {
		m.Content = strings.TrimSpace(*c.Content)
		if err := checkContent(m.Content); err != nil {
			return nil, err
		}
	}
	if c.Enabled != nil {
		m.Enabled = *c.Enabled
	}
	warnings, err := c.applySchedule(m, now)
	if err != nil {
		return nil, err
	}
	made := m.UID == (sync.UID{})
	if made || m.scheduleHash() != before || m.Enabled && !wasOn {
		if err := m.check(now); err != nil {
			return nil, err
		}
		m.EffectiveFrom = &now
	}
	return append(append([]when.Warning{}, warnings...), m.Warnings()...), nil
}

func checkContent(s string) error {
	why := ""
	switch {
	case s == "":
		why = "must not be empty"
	case len(s) > MaxContent:
		why = "is too long"
	case !utf8.ValidString(s):
		why = "is not valid UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		why = "has a NUL character in it"
	default:
		return nil
	}
	return errInvalid.In("content", why)
}

// applySchedule alters when m rings.
func (c Change) applySchedule(m *Message, now time.Time) (warnings []when.Warning, err error) {
	if c.Zone != nil {
		m.Zone = optional(*c.Zone)
		if m.Zone != nil {
			if _, err := when.Zone(*m.Zone); err != nil {
				return nil, err
			}
		}
	}
	if text(c.TriggerAt)+text(c.CronExpr)+text(c.RRule) != "" {
		m.TriggerAt, m.CronExpr, m.RRule = nil, nil, nil // what c names is set below
	}
	if c.TriggerAt != nil {
		if warnings, err = m.setTrigger(*c.TriggerAt); err != nil {
			return nil, err
		}
	}
	if c.CronExpr != nil {
		m.CronExpr = optional(strings.TrimSpace(*c.CronExpr))
	}
	if c.RRule != nil {
		if m.RRule = optional(strings.TrimSpace(*c.RRule)); m.RRule != nil {
			// Strictly after now, since an occurrence that is now has passed.
			whole, err := when.WithStart(*m.RRule, now.Add(time.Millisecond), m.EffectiveZone())
			if err != nil {
				return nil, err
			}
			m.RRule = &whole
		}
	}
	return warnings, nil
}

// setTrigger reads an instant. A local time is read in the message's zone.
func (m *Message) setTrigger(given string) ([]when.Warning, error) {
	m.TriggerAt = nil
	if given == "" {
		return nil, nil
	}
	zone := m.chosenZone()
	at, warnings, err := when.Instant(given, zone)
	if zone == "" && errors.Is(err, when.ErrUnknownZone) { // no offset, and nobody to ask
		at, warnings, err = when.Instant(given, utc)
		warnings = append(warnings, noZone)
	}
	if err != nil {
		return nil, err
	}
	m.TriggerAt = &at.At
	return warnings, nil
}

// check refuses a schedule that this node could not keep, or that nobody means.
func (m Message) check(now time.Time) error {
	if m.Action != Notify {
		return nil // what it asks for is judged where it is understood
	}
	s, err := m.plan()
	if err != nil {
		return err
	}
	if err := s.Check(now, shortest); !errors.Is(err, when.ErrPast) {
		return err
	}
	return when.ErrPast.In("trigger_at", "is in the past")
}
