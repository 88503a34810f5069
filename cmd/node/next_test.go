package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// schedules are the shared vectors: a rule, and when it rings after a time.
func schedules(t testing.TB) (list []struct {
	Cron, RRule, Zone, After, Why string
	Next                          []string
}) {
	t.Helper()
	b, err := os.ReadFile("../../internal/when/testdata/schedules.json")
	must(t, err)
	must(t, json.Unmarshal(b, &list))
	if len(list) < 10 {
		t.Fatalf("only %d schedules", len(list))
	}
	return list
}

func TestNextRingsAsTheSchedulerWill(t *testing.T) { // R:A1, R:A2
	t.Parallel()
	for _, c := range schedules(t) {
		t.Run(c.Why, func(t *testing.T) {
			args := []string{"next", "--tz", c.Zone, "--from", c.After, "-n", fmt.Sprint(len(c.Next))}
			if c.Cron != "" {
				args = append(args, "--cron", c.Cron)
			} else {
				args = append(args, "--rrule", c.RRule)
			}
			text := verb(t, nil, "", args...)
			text.exits(t, exitOK)
			s := verb(t, nil, "", append(args, "--json")...)
			s.exits(t, exitOK)
			var a nextAnswer
			must(t, json.Unmarshal([]byte(s.out), &a))
			var at []string
			for _, f := range a.Fires {
				at = append(at, f.At)
				utc, err := time.Parse(time.RFC3339, f.At)
				must(t, err)
				local, err := time.Parse(time.RFC3339, f.Local)
				must(t, err)
				zone, err := time.LoadLocation(c.Zone)
				must(t, err)
				equal(t, "local", f.Local, utc.In(zone).Format(time.RFC3339))
				equal(t, "the same moment", local.Equal(utc), true)
				if !strings.Contains(text.out, f.At+"  "+f.Local+"\n") {
					t.Errorf("the text lacks %s:\n%s", f.At, text.out)
				}
			}
			for len(at) < len(c.Next) && len(at) > 0 {
				at = append(at, "") // it has ended
			}
			equal(t, "rings", fmt.Sprint(at), fmt.Sprint(c.Next))
		})
	}
}

func TestNextAnswersInTheShapeThatScriptsRelyOn(t *testing.T) {
	t.Parallel()
	args := []string{"next", "--cron", "30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07T12:00", "-n", "1", "--json"}
	verb(t, nil, "", args...).exits(t, exitOK, `{
  "fires": [
    {
      "at": "2026-03-08T07:30:00Z",
      "local": "2026-03-08T03:30:00-04:00"
    }
  ],
  "warnings": []
}
`)
	short := []string{"next", "--cron", "0 9 31 * *", "--tz", "UTC", "--from", "2026-01-01T00:00:00Z", "-n", "2"}
	verb(t, nil, "", short...).exits(t, exitOK, "2026-01-31T09:00:00Z  ", "2026-03-31T09:00:00Z  ", "(skips_short_months)")
	verb(t, nil, "", append(short, "--json")...).exits(t, exitOK, `"code": "skips_short_months"`)
	three := verb(t, nil, "", "next", "--rrule", "FREQ=DAILY", "--tz", "UTC")
	three.exits(t, exitOK)
	equal(t, "lines, where nobody says how many", strings.Count(three.out, "\n"), 3)
	ends := verb(t, nil, "", "next", "--rrule", "FREQ=DAILY;COUNT=2", "--tz", "UTC", "-n", "9")
	ends.exits(t, exitOK)
	equal(t, "lines of one that ends", strings.Count(ends.out, "\n"), 2)
}

func TestNextOfWhatNeverRingsExits1(t *testing.T) { // R:A14
	t.Parallel()
	for _, rule := range [][]string{
		{"--cron", "0 9 30 2 *"},
		{"--rrule", "DTSTART:20200101T090000\nRRULE:FREQ=DAILY;COUNT=1"},
		{"--rrule", "FREQ=DAILY;UNTIL=20200101T000000Z"},
	} {
		args := append([]string{"next", "--tz", "UTC"}, rule...)
		s := verb(t, nil, "", args...)
		s.exits(t, exitFailed, "never rings")
		equal(t, "on out", s.out, "")
		s = verb(t, nil, "", append(args, "--json")...)
		s.exits(t, exitFailed, "never rings")
		equal(t, "on out", s.out, "{\n  \"fires\": [],\n  \"warnings\": []\n}\n")
	}
}

func TestNextRefusesWhatTheServerRefuses(t *testing.T) { // R:A16, R:A18
	t.Parallel()
	for _, c := range []struct {
		args string
		says string
	}{
		{"--cron|TZ=UTC 0 9 * * *|--tz|UTC", "Take the zone out of the rule"},
		{"--cron|CRON_TZ=UTC 0 9 * * *|--tz|UTC", "Take the zone out of the rule"},
		{"--cron|* * * * * *|--tz|UTC", "seconds"},
		{"--cron|0 9 L * *|--tz|UTC", "BYMONTHDAY=-1"},
		{"--cron|0 9 * * *|--tz|Mars/Olympus", "zone"},
		{"--cron|0 9 * * *|--tz|Local", "zone"},
		{"--cron|0 9 * * *|--tz|", "zone"},
		{"--cron|0 9 * * *|--tz|UTC|--from|yesterday", "such as 2026-05-06T10:00"},
		{"--rrule|FREQ=SOMETIMES|--tz|UTC", "rule"},
	} {
		s := verb(t, nil, "", append([]string{"next"}, strings.Split(c.args, "|")...)...)
		s.exits(t, exitFailed, c.says)
		equal(t, "on out", s.out, "")
	}
}
