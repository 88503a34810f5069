package when

import (
	"strings"
	"testing"

	"tandem/internal/fault"
)

func TestCronRefusesOtherDialectsWithAHint(t *testing.T) {
	for _, c := range []struct{ id, line, code, hint string }{
		{"R:A16", "TZ=0", "schedule_zone_prefix", "field for the zone"},
		{"R:A16", "CRON_TZ=UTC", "schedule_zone_prefix", "field for the zone"},
		{"R:A16", " TZ=Europe/Berlin 0 9 * * *", "schedule_zone_prefix", "field for the zone"},
		{"R:A16", "cron_tz=UTC 0 9 * * *", "schedule_zone_prefix", "field for the zone"},
		{"R:A17", "@every -5m", "invalid_cron", "*/15 * * * *"},
		{"R:A17", "@every 1s", "invalid_cron", "*/15 * * * *"},
		{"R:A17", "* * * * * *", "invalid_cron", "no field for seconds"},
		{"R:A18", "0 9 L * *", "invalid_cron", "BYMONTHDAY=-1"},
		{"R:A18", "0 9 * * 5L", "invalid_cron", "BYDAY=-1FR"},
		{"R:A18", "0 9 * * 1#2", "invalid_cron", "BYDAY=2MO"},
		{"R:A18", "0 9 15W * *", "invalid_cron", "BYSETPOS"},
		{"junk", "@reboot", "invalid_cron", "@daily"},
		{"junk", "every day at 9", "invalid_cron", "30 8 * * 1-5"},
		{"junk", "0 9 * *", "invalid_cron", "five fields"},
		{"junk", " ", "invalid_cron", "five fields"},
		{"junk", "60 9 * * *", "invalid_cron", "minute 0-59"},
		{"junk", "0 24 * * *", "invalid_cron", "hour 0-23"},
		{"junk", "0 9 0 * *", "invalid_cron", "day 1-31"},
		{"junk", "0 9 * 13 *", "invalid_cron", "month 1-12"},
		{"junk", "0 9 * * 8", "invalid_cron", "weekday 0-7"},
		{"junk", "0 9 * * 6-9", "invalid_cron", "weekday 0-7"},
		{"junk", "0 9 * * foo-sun", "invalid_cron", "weekday 0-7"},
		{"junk", "0 9 * * 1-7/0", "invalid_cron", "weekday 0-7"},
		{"junk", "*/0 9 * * *", "invalid_cron", "minute 0-59"},
		{"an empty list, which the parser takes and which never comes", ", 9 * * *", "invalid_cron", "In each field"},
		{"an empty item", "0,,5 9 * * *", "invalid_cron", "In each field"},
		{"a sign, which the parser takes", "+5 9 * * *", "invalid_cron", "In each field"},
		{"a star in a range, which the parser takes", "*-5 9 * * *", "invalid_cron", "In each field"},
		{"too long", strings.Repeat("1,", 600) + "1 9 * * *", "invalid_schedule", "1000"},
	} {
		t.Run(c.id+" "+c.line[:min(len(c.line), 30)], func(t *testing.T) {
			_, err := Parse(Rule{Cron: c.line, Zone: "UTC"})
			refused(t, err, c.code)
			if detail := fault.From(err).Detail; !strings.Contains(detail, c.hint) {
				t.Errorf("the hint %q does not say %q", detail, c.hint)
			}
		})
	}
}

// R:A18 7 means Sunday, wherever it stands.
func TestSundayIsZeroAndSeven(t *testing.T) {
	for field, want := range map[string]string{
		"7": "0", "0": "0", "sun": "0", "1,7": "0,1", "5-7": "0,5,6", "0-7": "0,1,2,3,4,5,6", "7-7": "0", "7-2": "0,1,2",
		"1-7/3": "0,1,4", "Fri-Sun": "0,5,6", "SUN-TUE": "0,1,2", "5-0": "0,5,6", "7/3": "0,3,6", "1-7/2,6": "0,1,3,5,6",
	} {
		t.Run(field, func(t *testing.T) {
			a := parse(t, Rule{Cron: "0 9 * * " + field, Zone: "UTC"})
			b := parse(t, Rule{Cron: "0 9 * * " + want, Zone: "UTC"})
			equal(t, a.walls.(crontab).week, b.walls.(crontab).week)
		})
	}
}

func TestCronNamesStandForLines(t *testing.T) {
	for name, line := range named {
		a := parse(t, Rule{Cron: " " + strings.ToUpper(name), Zone: "UTC"})
		b := parse(t, Rule{Cron: line, Zone: "UTC"})
		equal(t, a.walls, b.walls)
		equal(t, a.elapsed, b.elapsed)
	}
}

func TestWarningsTellWhatALineDoes(t *testing.T) {
	for _, c := range []struct{ id, line, codes, detail string }{
		{"R:A13", "0 9 31 * *", "skips_short_months ", "no 31st in February, April, June, September and November,"},
		{"R:A13", "0 9 30 * *", "skips_short_months ", "no 30th in February,"},
		{"R:A13", "0 9 31 5,6 *", "skips_short_months ", "no 31st in June,"},
		{"R:A13", "0 9 29 * *", "skips_short_months ", "no 29th in February of most years,"},
		{"R:A13", "0 9 31 1,3 *", "", ""},
		{"R:A13", "0 9 30 2 *", "", ""},
		{"R:A13", "0 9 28 * *", "", ""},
		{"days up to the end of the month are no surprise", "0 9 25-31 * *", "", ""},
		{"nor is every other day", "0 9 */2 * *", "", ""},
		{"R:A18", "0 9 13 * 5", "day_or_weekday ", "on the 13th, and every Friday"},
		{"R:A18", "0 9 1,22,31 1,3 7,1", "day_or_weekday ", "on the 1st, 22nd and 31st, and every Sunday and Monday, in January and March"},
		{"R:A18", "0 9 31 * 5", "skips_short_months day_or_weekday ", "no 31st"},
		{"R:A18", "0 9 * * 5", "", ""},
		{"R:A18", "0 9 13 * ?", "", ""},
	} {
		t.Run(c.id+" "+c.line, func(t *testing.T) {
			ws := parse(t, Rule{Cron: c.line, Zone: "Europe/London"}).Warnings()
			equal(t, codes(ws), c.codes)
			if len(ws) > 0 && !strings.Contains(ws[0].Detail, c.detail) {
				t.Errorf("got %q, want %q in it", ws[0].Detail, c.detail)
			}
			if len(ws) == 1 && ws[0].Code == "day_or_weekday" {
				equal(t, ws[0].Detail, c.detail)
			}
		})
	}
}
