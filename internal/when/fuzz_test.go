package when

import (
	"fmt"
	"testing"
	"time"

	"tandem/internal/fault"
)

// R:A16 no text brings the process down, and what is taken can be worked with.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "TZ=0", "CRON_TZ=UTC", "TZ=UTC 0 9 * * *", "@every -5m", "@daily", "30 2 * * *", "*/15 1 * * *", "0 9 31 * 5-7/2", "0 9 L * 1#2",
		"FREQ=DAILY", "DTSTART;TZID=Europe/Berlin:20260131T090000\nRRULE:FREQ=MONTHLY;BYDAY=-53MO", "FREQ=SECONDLY;INTERVAL=60;BYSECOND=1",
		"FREQ=YEARLY;BYWEEKNO=-53;BYSETPOS=366;COUNT=9", "DTSTART=;FREQ=", "DTSTART:\n\n;=:", "FREQ=DAILY;UNTIL=99991231T235959Z",
	} {
		f.Add(text, "Europe/Berlin", int64(1772928000))
	}
	f.Add("0 0 * * *", "../../etc/localtime", int64(-1))
	f.Fuzz(func(t *testing.T, text, zone string, seconds int64) {
		now := time.Unix(seconds, 0)
		for _, rule := range []Rule{{Cron: text, Zone: zone}, {RRule: text, Zone: zone}} {
			s, err := Parse(rule)
			if err != nil {
				if !fault.Of(err, fault.Invalid) {
					t.Fatalf("%+v: %v is not the caller's fault", rule, err)
				}
				continue
			}
			walk(t, s, now, 3)
			s.Warnings()
			if err := s.Check(now, time.Minute); err != nil && !fault.Of(err, fault.Invalid) {
				t.Fatal(err)
			}
		}
		if rule, err := WithStart(text, now, zone); err == nil && within(now) {
			if again, err := WithStart(rule, now, zone); err != nil || again != rule {
				t.Fatalf("%q became %q and then %q, %v", text, rule, again, err)
			}
		}
		if m, _, err := Instant(text, zone); err == nil {
			if again, _, err := Instant(Format(m.At), ""); err != nil || !again.At.Equal(m.At) {
				t.Fatalf("%q is %v, and written again %v, %v", text, m, again, err)
			}
		}
		_ = CheckDate(text)
	})
}

func BenchmarkNext(b *testing.B) {
	for _, rule := range []Rule{
		{Cron: "0 9 * * *"}, {Cron: "*/15 * * * *"}, {Cron: "0 9 29 2 *"}, {Cron: "0 9 30 2 *"},
		{RRule: "FREQ=DAILY;BYHOUR=9"}, {RRule: "FREQ=MONTHLY;BYMONTHDAY=-1"}, {RRule: "DTSTART:20260101T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=500"},
	} {
		b.Run(rule.Cron+rule.RRule, func(b *testing.B) {
			rule.Zone = "America/New_York"
			s, now := parse(b, rule), instant(b, "2026-03-07T17:00:00Z")
			b.ReportAllocs()
			for b.Loop() {
				s.Next(now)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, rule := range []Rule{{Cron: "0 9 * * 1-5"}, {RRule: "DTSTART:20260101T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=500"}} {
		b.Run(rule.Cron+rule.RRule, func(b *testing.B) {
			rule.Zone = "America/New_York"
			for b.Loop() {
				parse(b, rule)
			}
		})
	}
}

// BenchmarkParseHostile reads the most work that a rule is known to make, anew each time.
func BenchmarkParseHostile(b *testing.B) {
	days := "-1"
	for d := 2; d < 200; d++ {
		days += fmt.Sprint(",-", d)
	}
	r := Rule{RRule: "FREQ=SECONDLY;INTERVAL=3599;BYSECOND=0;COUNT=10000;BYYEARDAY=" + days, Zone: "Europe/Berlin"}
	for b.Loop() {
		if _, err := read(r); err != nil {
			b.Fatal(err)
		}
	}
}
