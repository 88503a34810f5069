package when

import (
	"testing"
	"time"
)

// S:60. What rings daily keeps its wall time over both changes of the clock: where
// that does not exist it rings as long after, where it comes twice at the first.
func TestDailyTimesKeepTheirWallTimeOverBothChanges(t *testing.T) {
	for _, c := range []struct{ why, cron, zone, after, gap, second string }{
		{"in the gap, Berlin", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		{"twice, Berlin", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"in the gap, Auckland", "30 2 * * *", "Pacific/Auckland", "2026-09-26T00:00:00Z", "2026-09-26T14:30:00Z", "2026-09-27T13:30:00Z"},
		{"twice, Auckland", "30 2 * * *", "Pacific/Auckland", "2026-04-04T00:00:00Z", "2026-04-04T13:30:00Z", "2026-04-05T14:30:00Z"},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := parse(t, Rule{Cron: c.cron, Zone: c.zone})
			first, _ := s.Next(instant(t, c.after))
			second, _ := s.Next(first.At)
			equal(t, Format(first.At), c.gap)
			equal(t, Format(second.At), c.second)
		})
	}
	for _, zoneName := range []string{"Europe/Berlin", "Pacific/Auckland"} {
		s, loc := parse(t, Rule{Cron: "0 9 * * *", Zone: zoneName}), zone(t, zoneName)
		at := instant(t, "2026-01-01T00:00:00Z")
		for range 366 {
			o, _ := s.Next(at)
			if wall := o.At.In(loc).Format(time.TimeOnly); wall != "09:00:00" || o.At.Sub(at) > 26*time.Hour {
				t.Fatalf("%s: %s after %s", zoneName, wall, Format(at))
			}
			at = o.At
		}
	}
}
