package when

import (
	"strconv"
	"testing"
	"time"
)

func TestScheduleRingsWhenTheVectorsSay(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Why+" "+v.Zone, func(t *testing.T) {
			s, at := parse(t, Rule{Cron: v.Cron, RRule: v.RRule, Zone: v.Zone}), v.After
			for _, want := range v.Next {
				o, ok := s.Next(at)
				if want == nil {
					equal(t, ok, false)
					return
				}
				equal(t, Format(o.At), *want)
				at = o.At
			}
		})
	}
}

func TestOccurrenceKeyIsWhatTheWallShowsOrTheInstantWhereTimeElapses(t *testing.T) {
	for _, c := range []struct{ why, cron, after, key string }{
		{"an ordinary day", "30 2 * * *", "2026-03-01T00:00:00Z", "2026-03-01T02:30:00/0"},
		{"a time in the gap", "30 2 * * *", "2026-03-08T06:00:00Z", "2026-03-08T03:30:00/0"},
		{"a time that comes twice", "30 1 * * *", "2026-11-01T05:00:00Z", "2026-11-01T01:30:00/0"},
		{"the first time round", "*/30 1 * * *", "2026-11-01T05:00:00Z", "1793511000000"},
		{"the second time round", "*/30 1 * * *", "2026-11-01T06:00:00Z", "1793514600000"},
	} {
		t.Run(c.why, func(t *testing.T) {
			o, ok := parse(t, Rule{Cron: c.cron, Zone: "America/New_York"}).Next(instant(t, c.after))
			equal(t, ok, true)
			equal(t, o.Key, c.key)
		})
	}
}

func TestOneShotRingsOnceAtItsInstant(t *testing.T) {
	at := instant(t, "2026-05-06T10:00:00.5Z")
	s := parse(t, Rule{At: at.In(zone(t, "Asia/Tokyo"))})
	o, ok := s.Next(at.Add(-time.Millisecond))
	equal(t, ok, true)
	equal(t, o, Occurrence{At: at, Key: strconv.FormatInt(at.UnixMilli(), 10)})
	_, again := s.Next(at)
	equal(t, again, false)
	equal(t, len(s.Warnings()), 0)
}

func TestNextIsStrictlyAfterWithinTheSecond(t *testing.T) {
	s := parse(t, Rule{Cron: "0 9 * * *", Zone: "UTC"})
	for after, want := range map[string]string{
		"2026-05-01T08:59:59.999Z": "2026-05-01T09:00:00Z",
		"2026-05-01T09:00:00Z":     "2026-05-02T09:00:00Z",
		"2026-05-01T09:00:00.001Z": "2026-05-02T09:00:00Z",
	} {
		o, _ := s.Next(instant(t, after))
		equal(t, Format(o.At), want)
	}
}

func TestNothingRingsOutsideTheYearsThatAreKept(t *testing.T) {
	s := parse(t, Rule{Cron: "0 9 * * *", Zone: "Pacific/Kiritimati"})
	o, ok := s.Next(time.Time{})
	equal(t, ok, true)
	equal(t, Format(o.At), "1970-01-01T19:40:00Z") // the zone was 10:40 behind
	_, ok = s.Next(time.Unix(latest, 0).Add(-time.Hour))
	equal(t, ok, false)
	_, ok = s.Next(time.Unix(1<<62, 0))
	equal(t, ok, false)
	_, ok = Schedule{}.Next(time.Time{})
	equal(t, ok, false)
}

func TestRuleIsExactlyOneThing(t *testing.T) {
	at := time.Unix(1, 0)
	for _, r := range []Rule{
		{Zone: "UTC"},
		{At: at, Cron: "0 9 * * *", Zone: "UTC"},
		{Cron: "0 9 * * *", RRule: "FREQ=DAILY", Zone: "UTC"},
	} {
		_, err := Parse(r)
		refused(t, err, "invalid_schedule")
	}
}

// R:A15
func TestRuleWithoutADateNeverRings(t *testing.T) {
	now := instant(t, "2026-01-31T00:00:00Z")
	for _, r := range []Rule{
		{Cron: "0 9 30 2 *"},
		{Cron: "0 9 31 4,6,9,11 *"},
		{RRule: "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"},
		{RRule: "DTSTART:20200101T090000\nRRULE:FREQ=DAILY;COUNT=3"},
		{RRule: "FREQ=DAILY;UNTIL=20260130"},
	} {
		t.Run(r.Cron+r.RRule, func(t *testing.T) {
			r.Zone = "America/New_York"
			s := parse(t, r) // as it comes from the peer: it can be kept and shown
			o, ok := s.Next(now)
			equal(t, ok, false)
			equal(t, o, Occurrence{})
			refused(t, s.Check(now, time.Minute), "schedule_never_fires")
			if ws := s.Warnings(); ws == nil || len(ws) > 0 { // [] as JSON, never null
				t.Errorf("%#v", ws)
			}
		})
	}
}
