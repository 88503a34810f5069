package when

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"
	"pgregory.net/rapid"

	"tandem/internal/fault"
)

// R:A13
func TestLastDayOfTheMonthDoesNotDrift(t *testing.T) {
	loc := zone(t, "America/New_York")
	start := time.Date(2026, 1, 31, 23, 30, 0, 0, loc)
	for _, text := range []string{"FREQ=MONTHLY;BYMONTHDAY=-1", "RRULE:freq=monthly;bymonthday=-1;byhour=23;byminute=30"} {
		rule, err := WithStart(text, start, loc.String())
		if err != nil {
			t.Fatal(err)
		}
		s := parse(t, Rule{RRule: rule, Zone: loc.String()})
		var shown []string
		for _, o := range walk(t, s, start, 3) {
			shown = append(shown, o.At.In(loc).Format("01-02 15:04"))
		}
		equal(t, strings.Join(shown, ", "), "02-28 23:30, 03-31 23:30, 04-30 23:30")
		equal(t, codes(s.Warnings()), "")
	}
	equal(t, codes(parse(t, Rule{RRule: "DTSTART:20260131T090000\nRRULE:FREQ=MONTHLY", Zone: "UTC"}).Warnings()), "skips_short_months ")
}

func TestWithStartAddsTheLineThatIsMissing(t *testing.T) {
	start := instant(t, "2026-01-31T15:00:00.001Z")
	for _, c := range []struct{ rule, want string }{
		{"FREQ=DAILY;COUNT=3", "DTSTART:20260131T100100\nRRULE:FREQ=DAILY;COUNT=3"}, // not a minute that has begun: three rings are three
		{"RRULE:FREQ=DAILY", "DTSTART:20260131T100100\nRRULE:FREQ=DAILY"},
		{"DTSTART:20250101T090000\nRRULE:FREQ=DAILY", "DTSTART:20250101T090000\nRRULE:FREQ=DAILY"},
		{"DTSTART=20250101T090000;FREQ=DAILY", "DTSTART=20250101T090000;FREQ=DAILY"},
	} {
		got, err := WithStart(c.rule, start, "America/New_York")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, got, c.want)
		again, _ := WithStart(got, start.Add(time.Hour), "Asia/Tokyo")
		equal(t, again, got)
	}
	_, err := WithStart("FREQ=DAILY", start, "")
	refused(t, err, "unknown_zone")
	_, err = WithStart("TZ=0", start, "UTC") // R:A16
	refused(t, err, "schedule_zone_prefix")
	_, err = WithStart("DTSTART:", start, "UTC")
	refused(t, err, "invalid_rrule")
}

func TestRuleIsReadInEachOfItsForms(t *testing.T) {
	want := parse(t, Rule{RRule: "DTSTART:20260131T090000\nRRULE:FREQ=DAILY;INTERVAL=2", Zone: "Europe/Berlin"})
	after := instant(t, "2026-02-01T00:00:00Z")
	for _, text := range []string{
		"DTSTART:20260131T090000\r\nRRULE:FREQ=DAILY;INTERVAL=2\r\n",
		`DTSTART:20260131T090000\nRRULE:FREQ=DAILY;INTERVAL=2`, // from a shell
		"dtstart:20260131t090000\nfreq=daily;interval=2",
		"RRULE:FREQ=DAILY;INTERVAL=2\nDTSTART:20260131T090000",
		"FREQ=DAILY;INTERVAL=2;DTSTART=20260131T090000",
		"DTSTART;TZID=Europe/Berlin:20260131T090000\nRRULE:FREQ=DAILY;INTERVAL=2",
		"DTSTART;VALUE=DATE-TIME:20260131T080000Z\nRRULE:FREQ=DAILY;INTERVAL=2",
		"DTSTART;VALUE=DATE:20260131\nRRULE:FREQ=DAILY;INTERVAL=2;BYHOUR=9",
	} {
		s := parse(t, Rule{RRule: text, Zone: "Europe/Berlin"})
		if got, want := walk(t, s, after, 5), walk(t, want, after, 5); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestRRuleRefusesWhatItCannotMean(t *testing.T) {
	for _, c := range []struct{ rule, code, hint string }{
		{"CRON_TZ=UTC", "schedule_zone_prefix", "field for the zone"}, // R:A16
		{"TZ=0", "schedule_zone_prefix", "field for the zone"},        // R:A16
		{"DTSTART;TZID=Asia/Tokyo:20260131T090000\nRRULE:FREQ=DAILY", "schedule_zone_prefix", "TZID"},
		{"junk", "invalid_rrule", "FREQ=WEEKLY"},
		{"\n", "invalid_rrule", "FREQ=DAILY"},
		{"DTSTART:20260131T090000", "invalid_rrule", "FREQ=DAILY"},
		{"BYHOUR=9", "invalid_rrule", "FREQ=WEEKLY"},
		{"FREQ=DAILY;", "invalid_rrule", "FREQ=WEEKLY"},
		{"FREQ=FORTNIGHTLY", "invalid_rrule", "FREQ=WEEKLY"},
		{"FREQ=DAILY;SKIP=OMIT", "invalid_rrule", "FREQ=WEEKLY"},
		{"FREQ=DAILY;BYDAY=XX", "invalid_rrule", "FREQ=WEEKLY"},
		{"FREQ=DAILY;FREQ=WEEKLY", "invalid_rrule", "once"},
		{"FREQ=DAILY\nFREQ=WEEKLY", "invalid_rrule", "one RRULE line"},
		{"FREQ=DAILY\nEXDATE:20260131T090000", "invalid_rrule", "EXDATE"},
		{"DTSTART:20260131T090000\nDTSTART:20260131T090000\nFREQ=DAILY", "invalid_rrule", "one DTSTART"},
		{"DTSTART:20260131T090000\nFREQ=DAILY;DTSTART=20260131T090000", "invalid_rrule", "once"},
		{"DTSTART;X=1:20260131T090000\nFREQ=DAILY", "invalid_rrule", "TZID"},
		{"DTSTART:2026-01-31T09:00\nFREQ=DAILY", "invalid_rrule", "DTSTART as"},
		{"DTSTART:19691231\nFREQ=DAILY", "invalid_rrule", "DTSTART as"},
		{"FREQ=DAILY;UNTIL=soon", "invalid_rrule", "FREQ=WEEKLY"},
		{"FREQ=DAILY;UNTIL=19000101T000000", "invalid_rrule", "UNTIL as"},
		{"FREQ=DAILY;UNTIL=19000101T000000Z", "invalid_rrule", "UNTIL as"},
		{"FREQ=DAILY;COUNT=2;UNTIL=20270101", "invalid_rrule", "not with both"},
		{"FREQ=DAILY;COUNT=0", "invalid_rrule", "COUNT is"},
		{"FREQ=DAILY;COUNT=10001", "invalid_rrule", "UNTIL"},
		{"FREQ=DAILY;INTERVAL=0", "invalid_rrule", "INTERVAL is"},
		{"FREQ=DAILY;INTERVAL=-1", "invalid_rrule", "INTERVAL is"},
		{"FREQ=DAILY;INTERVAL=9223372036854775807", "invalid_rrule", "INTERVAL is"},
		{"FREQ=DAILY;BYHOUR=24", "invalid_rrule", "from 0 to 23"},
		{"FREQ=DAILY;BYHOUR=-1", "invalid_rrule", "from 0 to 23"},
		{"FREQ=MONTHLY;BYMONTHDAY=0", "invalid_rrule", "from 1 to 31"},
		{"FREQ=MONTHLY;BYMONTHDAY=-32", "invalid_rrule", "from 1 to 31"},
		{"FREQ=YEARLY;BYDAY=54MO", "invalid_rrule", "from 1 to 53"},
		{"FREQ=YEARLY;BYDAY=MO,-0TU", "invalid_rrule", "from 1, or from -1"},
		{"FREQ=WEEKLY;BYDAY=2MO", "invalid_rrule", "numbered weekday"},
		{"FREQ=YEARLY;BYWEEKNO=3;BYDAY=2MO", "invalid_rrule", "numbered weekday"},
		{"FREQ=WEEKLY;WKST=2MO", "invalid_rrule", "WKST"},
		{"FREQ=MONTHLY;BYWEEKNO=3", "invalid_rrule", "FREQ=YEARLY"},
		{"FREQ=WEEKLY;BYMONTHDAY=3", "invalid_rrule", "FREQ=MONTHLY"},
		{"FREQ=MONTHLY;BYYEARDAY=3", "invalid_rrule", "FREQ=YEARLY"},
		{"FREQ=MONTHLY;BYSETPOS=1", "invalid_rrule", "BYSETPOS"},
		{"FREQ=YEARLY;BYEASTER=1000", "invalid_rrule", "BYEASTER"},
		{"FREQ=DAILY;BYHOUR=" + strings.Repeat("1,", 600) + "1", "invalid_schedule", "1000"},
	} {
		t.Run(c.rule[:min(len(c.rule), 50)], func(t *testing.T) {
			_, err := Parse(Rule{RRule: c.rule, Zone: "Europe/Berlin"})
			refused(t, err, c.code)
			if detail := fault.From(err).Detail; !strings.Contains(detail, c.hint) {
				t.Errorf("the hint %q does not say %q", detail, c.hint)
			}
		})
	}
}

// Each of these keeps the expansion of the library busy for ever or for minutes,
// makes it panic, or asks it for gigabytes.
func TestHostileRulesEndSoon(t *testing.T) {
	sixty := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(span(0, 59, 1))), ","), "[]")
	now := instant(t, "2026-02-01T00:00:00Z")
	for _, rule := range []string{
		"FREQ=SECONDLY;INTERVAL=60;BYSECOND=1",
		"FREQ=SECONDLY;INTERVAL=2;BYSECOND=1;BYMINUTE=5",
		"FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1",
		"FREQ=HOURLY;INTERVAL=24;BYHOUR=1",
		"FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
		"FREQ=YEARLY;BYYEARDAY=366;BYMONTH=1",
		"FREQ=MONTHLY;BYDAY=-53MO",
		"FREQ=MONTHLY;BYDAY=53MO",
		"FREQ=YEARLY;INTERVAL=1000000",
		"FREQ=DAILY;COUNT=10000;BYMONTH=2;BYMONTHDAY=29",
		"FREQ=SECONDLY;COUNT=10000;INTERVAL=7;BYSECOND=1,2",
		"FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=-1;BYMINUTE=" + sixty + ";BYSECOND=" + sixty,
	} {
		t.Run(rule[:min(len(rule), 50)], func(t *testing.T) {
			began := time.Now()
			s := parse(t, Rule{RRule: "DTSTART:20260101T090000\nRRULE:" + rule, Zone: "America/New_York"})
			walk(t, s, now, 3)
			_ = s.Check(now, time.Minute)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestSparseRuleIsFound(t *testing.T) {
	now := instant(t, "2096-03-01T00:00:00Z")
	for rule, want := range map[Rule]string{
		{Cron: "0 9 29 2 *"}: "2104-02-29T09:00:00Z",
		{RRule: "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=9"}:                            "2112-02-29T09:00:00Z",
		{RRule: "DTSTART:20000101T090000\nRRULE:FREQ=MINUTELY;INTERVAL=7;BYHOUR=9;BYMINUTE=0"}:     "2096-03-03T09:00:00Z",
		{RRule: "DTSTART:20000101T090000\nRRULE:FREQ=YEARLY;INTERVAL=90"}:                          "2180-01-01T09:00:00Z",
		{RRule: "DTSTART:29990101T090000\nRRULE:FREQ=YEARLY"}:                                      "2999-01-01T09:00:00Z",
		{RRule: "DTSTART:20000101T090000\nRRULE:FREQ=YEARLY;BYWEEKNO=53;BYDAY=SU"}:                 "2100-01-03T09:00:00Z",
		{RRule: "DTSTART:20000101T090000\nRRULE:FREQ=YEARLY;BYWEEKNO=-1;BYDAY=MO;WKST=SU"}:         "2096-12-24T09:00:00Z",
		{RRule: "DTSTART:20000101T090000\nRRULE:FREQ=YEARLY;BYDAY=-1FR"}:                           "2096-12-28T09:00:00Z",
		{RRule: "DTSTART:20000101T090000\nRRULE:FREQ=YEARLY;BYYEARDAY=-1,100"}:                     "2096-04-09T09:00:00Z",
		{RRule: "DTSTART:20000101T090000\nRRULE:FREQ=HOURLY;INTERVAL=3;BYMINUTE=5,50;BYSETPOS=-1"}: "2096-03-01T00:50:00Z",
	} {
		rule.Zone = "UTC"
		o, ok := parse(t, rule).Next(now)
		equal(t, ok, true)
		if Format(o.At) != want {
			t.Errorf("%s%s: got %s, want %s", rule.Cron, rule.RRule, Format(o.At), want)
		}
	}
}

// drawRRule draws a rule that the library expands as RFC 5545 has it. It leaves
// out where the library differs: plain and numbered weekdays together, BYSETPOS in
// the first week, and weeks of the year, and where it may not come back.
func drawRRule(t *rapid.T) string {
	freq := rapid.SampledFrom([]string{"YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"}).Draw(t, "freq")
	parts := []string{"FREQ=" + freq}
	interval := rapid.IntRange(1, 5).Draw(t, "interval")
	add := func(key string, likely bool, values ...string) bool {
		if !likely || rapid.IntRange(0, 2).Draw(t, key) > 0 {
			return false
		}
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 3, rapid.ID).Draw(t, key)
		parts = append(parts, key+"="+strings.Join(some, ","))
		return true
	}
	long := freq == "YEARLY" || freq == "MONTHLY"
	by := add("BYMONTH", true, "1", "2", "6", "10", "12")
	by = add("BYMONTHDAY", freq != "WEEKLY", "1", "13", "28", "29", "31", "-1", "-2", "-31") || by
	by = add("BYYEARDAY", freq == "YEARLY", "1", "60", "366", "-1", "-100") || by
	if !add("BYDAY", true, "MO", "TU", "FR", "SU") {
		by = add("BYDAY", long, "1MO", "2TU", "-1FR", "5SU", "-5WE") || by
	} else {
		by = true
	}
	if freq == "HOURLY" || freq == "MINUTELY" {
		interval = 1
	}
	by = add("BYHOUR", true, "0", "2", "9", "23") || by
	by = add("BYMINUTE", true, "0", "1", "30", "59") || by
	add("BYSECOND", true, "0", "15")
	add("BYSETPOS", by && freq != "WEEKLY", "1", "2", "-1", "-3")
	add("WKST", freq == "WEEKLY", "SU", "MO", "WE")
	parts = append(parts, fmt.Sprintf("INTERVAL=%d", interval))
	if rapid.Bool().Draw(t, "counted") {
		parts = append(parts, fmt.Sprintf("COUNT=%d", rapid.IntRange(1, 30).Draw(t, "count")))
	}
	text := strings.Join(parts, ";")
	if i := strings.Index(text, "WKST="); i >= 0 { // one weekday only
		rest := text[i:]
		end := strings.Index(rest, ";")
		first, _, _ := strings.Cut(rest[:end], ",")
		text = text[:i] + first + rest[end:]
	}
	return text
}

func TestExpansionAgreesWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawRRule(t)
		start := time.Unix(rapid.Int64Range(0, 2_000_000_000).Draw(t, "start"), 0).UTC()
		s, err := Parse(Rule{RRule: "DTSTART:" + start.Format("20060102T150405") + "\n" + text, Zone: "UTC"})
		if err != nil {
			t.Fatal(err)
		}
		ours := walk(t, s, start.Add(-time.Second), 30)
		if len(ours) == 0 {
			return // the library would look for it until the year 9999
		}
		options, err := rrule.StrToROption(text)
		if err != nil {
			t.Fatal(err)
		}
		options.Dtstart, options.Until = start, time.Unix(latest, 0) // its own bound is 292 years
		theirs, err := rrule.NewRRule(*options)
		if err != nil {
			t.Fatal(err)
		}
		next := theirs.Iterator()
		for i, o := range ours {
			if want, ok := next(); !ok || !want.Equal(o.At) {
				t.Fatalf("%s from %s, number %d: got %s, want %s", text, Format(start), i, Format(o.At), Format(want))
			}
		}
		if counted := strings.Contains(text, "COUNT="); counted && len(ours) < 30 {
			if more, ok := next(); ok && more.Before(start.AddDate(100, 0, 0)) {
				t.Fatalf("%s from %s: stopped after %d, before %s", text, Format(start), len(ours), Format(more))
			}
		}
	})
}

// R:A20 for rrules, in zones whose clocks change.
func TestRRuleNeverStandsStill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, now := drawNow(t)
		s, err := Parse(Rule{RRule: drawRRule(t), Zone: loc.String()})
		if err != nil {
			t.Fatal(err)
		}
		walk(t, s, now, 50)
	})
}
