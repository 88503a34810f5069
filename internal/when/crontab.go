package when

import (
	"math/bits"
	"time"
)

// crontab is a cron line as sets: bit n of a set stands for the value n.
type crontab struct {
	minutes, hours, days, months, week uint64
	either                             bool // a day of the month or a weekday will do
}

// cronYears bounds the search. The rarest line, 29 February, pauses for eight
// years around 2100.
const cronYears = 12

func (c crontab) next(from wall) (wall, bool) {
	from += (minute - from%minute) % minute
	t := from.asUTC()
	since := t.Hour()*60 + t.Minute()
	for end := t.Year() + cronYears; t.Year() <= end; since = 0 {
		y, m, d := t.Date()
		if c.months>>m&1 == 0 {
			t = time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		}
		midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		if c.on(d, midnight.Weekday()) {
			if of, ok := c.minuteOfDay(since); ok {
				return wall(midnight.Unix()) + wall(of*minute), true
			}
		}
		t = midnight.AddDate(0, 0, 1)
	}
	return 0, false
}

func (c crontab) on(d int, w time.Weekday) bool {
	byDay, byWeek := c.days>>d&1 == 1, c.week>>w&1 == 1
	if c.either {
		return byDay || byWeek
	}
	return byDay && byWeek
}

// minuteOfDay returns the first match that is not before since, both counted from
// midnight.
func (c crontab) minuteOfDay(since int) (int, bool) {
	h, m := since/60, since%60
	if c.hours>>h&1 == 1 {
		if rest := c.minutes >> m; rest != 0 {
			return since + bits.TrailingZeros64(rest), true
		}
	}
	later := c.hours >> (h + 1)
	if later == 0 || c.minutes == 0 {
		return 0, false
	}
	return (h+1+bits.TrailingZeros64(later))*60 + bits.TrailingZeros64(c.minutes), true
}
