package when

import (
	"errors"
	"testing"
	"time"

	"tandem/internal/fault"
)

// The shortest intervals that callers ask for.
const (
	people    = time.Minute
	assistant = 5 * time.Minute
)

func TestCheckRefusesWhatRingsTooOften(t *testing.T) {
	now := instant(t, "2026-01-31T12:00:00Z")
	for _, c := range []struct {
		id       string
		rule     Rule
		every    time.Duration
		accepted bool
	}{
		{"R:A17 each minute, from people", Rule{Cron: "* * * * *"}, people, true},
		{"R:A17 each minute, from the assistant", Rule{Cron: "* * * * *"}, assistant, false},
		{"each five minutes", Rule{Cron: "*/5 * * * *"}, assistant, true},
		{"two minutes of one hour", Rule{Cron: "0,1 9 * * *"}, assistant, false},
		{"around the hour", Rule{Cron: "*/7 * * * *"}, assistant, false},
		{"around midnight, on two days of a year", Rule{Cron: "0,58 0,23 1,2 1 *"}, assistant, false},
		{"the same on one day", Rule{Cron: "0,58 0,23 1 1 *"}, assistant, true},
		{"each second", Rule{RRule: "FREQ=SECONDLY"}, people, false},
		{"each second of a minute", Rule{RRule: "FREQ=SECONDLY;INTERVAL=60"}, people, true},
		{"two seconds of a day", Rule{RRule: "FREQ=DAILY;BYSECOND=10,20"}, people, false},
		{"each fourth minute", Rule{RRule: "FREQ=MINUTELY;INTERVAL=4"}, assistant, false},
		{"hourly", Rule{RRule: "FREQ=HOURLY"}, assistant, true},
		{"once", Rule{RRule: "DTSTART:20270101T090000\nRRULE:FREQ=SECONDLY;COUNT=1"}, assistant, true},
		{"an instant", Rule{At: now.Add(time.Second)}, assistant, true},
	} {
		t.Run(c.id, func(t *testing.T) {
			if c.rule.Zone = "America/New_York"; c.accepted {
				if err := parse(t, c.rule).Check(now, c.every); err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, parse(t, c.rule).Check(now, c.every), "schedule_too_frequent")
		})
	}
}

// On 29 March 02:30 rings at 03:30, ten minutes before 03:40; no other day has
// less than seventy between them.
func TestCheckOverlooksWhatAClockChangeBringsTogether(t *testing.T) {
	s := parse(t, Rule{RRule: "DTSTART:20260101T000000\nRRULE:FREQ=DAILY;BYHOUR=2,3;BYMINUTE=30,40;BYSETPOS=1,4", Zone: "Europe/Berlin"})
	now := instant(t, "2026-03-29T00:00:00Z")
	a, _ := s.Next(now)
	b, _ := s.Next(a.At)
	equal(t, b.At.Sub(a.At), 10*time.Minute)
	if err := s.Check(now, time.Hour); err != nil {
		t.Error(err)
	}
	refused(t, s.Check(now, 71*time.Minute), "schedule_too_frequent")
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	now := instant(t, "2026-01-31T12:00:00Z")
	err := parse(t, Rule{Cron: "* * * * *", Zone: "UTC"}).Check(now, assistant)
	equal(t, fault.From(err).Detail, "This rings again after 1 minute; the shortest interval allowed here is 5 minutes.")
	err = parse(t, Rule{RRule: "FREQ=SECONDLY;INTERVAL=90", Zone: "UTC"}).Check(now, assistant)
	equal(t, fault.From(err).Detail, "This rings again after 90 seconds; the shortest interval allowed here is 5 minutes.")
	err = parse(t, Rule{At: now}).Check(now, people)
	equal(t, errors.Is(err, ErrPast), true)
	err = parse(t, Rule{Cron: "0 9 30 2 *", Zone: "UTC"}).Check(now, people)
	equal(t, errors.Is(err, ErrNeverFires), true)
}
