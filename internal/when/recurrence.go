package when

import (
	"iter"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/teambition/rrule-go"
)

// recurrence expands a rule on the wall clock. The library that reads the rule
// has an expansion of its own, which is not used: it walks from the start each
// time, and rules can be written for which it never comes back, or panics.
type recurrence struct {
	freq  rrule.Frequency
	every int64
	wkst  int64 // 0 is Monday
	start wall
	last  wall // no wall time after it belongs to the rule

	dayRule
	hours, minutes, seconds uint64  // the sets that BY parts name; 0 is all that freq reaches
	times                   []int64 // seconds within a member period that match, ascending
	picks                   []int   // BYSETPOS
}

// The search for a wall time ends this far ahead, or after so many periods.
const (
	horizon = 100 * 366 * day
	budget  = 20_000
)

func newRecurrence(o *rrule.ROption, start wall) (*recurrence, error) {
	r := &recurrence{freq: o.Freq, every: int64(max(o.Interval, 1)), wkst: int64(o.Wkst.Day()), start: start, last: math.MaxInt64}
	var err error
	set := func(part string, values []int, low, high int) uint64 {
		var bits uint64
		for _, v := range values {
			if v < low || v > high {
				err = rruleFault("%s takes numbers from %d to %d.", part, low, high)
				return 0
			}
			bits |= 1 << v
		}
		return bits
	}
	signed := func(part string, values []int, high int) []int {
		for _, v := range values {
			if v == 0 || v > high || v < -high {
				err = rruleFault("%s takes numbers from 1 to %d, and from -1 to -%d counted from the end.", part, high, high)
			}
		}
		return values
	}
	r.hours, r.minutes, r.seconds = set("BYHOUR", o.Byhour, 0, 23), set("BYMINUTE", o.Byminute, 0, 59), set("BYSECOND", o.Bysecond, 0, 59)
	r.months = set("BYMONTH", o.Bymonth, 1, 12)
	r.picks = signed("BYSETPOS", o.Bysetpos, 366)
	r.yearDays = yearSetOf(signed("BYYEARDAY", o.Byyearday, 366))
	r.weeks = signed("BYWEEKNO", o.Byweekno, 53)
	for _, d := range signed("BYMONTHDAY", o.Bymonthday, 31) {
		if d > 0 {
			r.monthDays |= 1 << d
		} else {
			r.fromEnd |= 1 << -d
		}
	}
	for _, d := range o.Byweekday {
		if d.N() == 0 {
			r.week |= 1 << d.Day()
			continue
		}
		signed("The number of a BYDAY", []int{d.N()}, 53)
		r.nth = append(r.nth, nthDay{weekday: int64(d.Day()), n: d.N()})
	}
	r.inYear = r.freq == rrule.YEARLY && r.months == 0
	r.byWkst = r.wkst
	r.fill()
	return r, err
}

// fill takes from the start what the rule leaves open, and lists the times.
func (r *recurrence) fill() {
	t := r.start.asUTC()
	open := r.monthDays|r.fromEnd|r.week == 0 && len(r.nth) == 0 && !r.yearDays.named
	switch {
	case open && len(r.weeks) > 0, open && r.freq == rrule.WEEKLY:
		r.week = 1 << weekdayOf(int64(floor(r.start, day)))
	case open && r.freq == rrule.YEARLY:
		if r.months == 0 {
			r.months = 1 << t.Month()
		}
		r.monthDays = 1 << t.Day()
	case open && r.freq == rrule.MONTHLY:
		r.monthDays = 1 << t.Day()
	}
	listed := func(set uint64, finest rrule.Frequency, from int) uint64 {
		if r.freq >= finest { // the period itself says which; it lies at 0
			return 1
		}
		if set == 0 {
			return 1 << from
		}
		return set
	}
	hours := listed(r.hours, rrule.HOURLY, t.Hour())
	minutes := listed(r.minutes, rrule.MINUTELY, t.Minute())
	seconds := listed(r.seconds, rrule.SECONDLY, t.Second())
	for h := range each(hours) {
		for m := range each(minutes) {
			for s := range each(seconds) {
				r.times = append(r.times, h*hour+m*minute+s)
			}
		}
	}
}

func (r *recurrence) next(from wall) (wall, bool) {
	from = max(from, r.start)
	end := min(from+horizon, r.last)
	k := r.period(from)
	for range budget {
		if r.opening(k) > end {
			break
		}
		m, after := r.members(k)
		if i := m.search(from); i < m.len() {
			w := m.at(i)
			return w, w <= r.last
		}
		k = after
	}
	return 0, false
}

// closeAfter ends the rule with its n-th wall time, or with the last one that the
// search reaches from the start.
func (r *recurrence) closeAfter(n int) {
	k, last := r.period(r.start), r.start-1
	for range budget {
		if r.opening(k) > r.start+horizon {
			break
		}
		m, after := r.members(k)
		i := m.search(r.start)
		if here := m.len() - i; here > 0 {
			last = m.at(i + min(n, here) - 1)
			if n -= here; n <= 0 {
				break
			}
		}
		k = after
	}
	r.last = last
}

// unit returns the length of a period of less than a day, in seconds.
func (r *recurrence) unit() int64 {
	switch r.freq {
	case rrule.HOURLY:
		return hour
	case rrule.MINUTELY:
		return minute
	case rrule.SECONDLY:
		return 1
	}
	return day
}

// period returns the number of the last period that opens no later than w.
// Periods count from 0, which holds the start; only each INTERVAL-th is numbered.
func (r *recurrence) period(w wall) int64 {
	a, b := r.start.asUTC(), w.asUTC()
	years := int64(b.Year() - a.Year())
	switch r.freq {
	case rrule.YEARLY:
		return years / r.every
	case rrule.MONTHLY:
		return (years*12 + int64(b.Month()-a.Month())) / r.every
	case rrule.WEEKLY:
		return int64(floor(w-r.opening(0), r.every*7*day))
	}
	return int64(floor(w-r.opening(0), r.every*r.unit()))
}

// opening returns the wall time at which period k begins.
func (r *recurrence) opening(k int64) wall {
	t, n := r.start.asUTC(), int(k*r.every)
	switch r.freq {
	case rrule.YEARLY:
		return wall(time.Date(t.Year()+n, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	case rrule.MONTHLY:
		return wall(time.Date(t.Year(), t.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Unix())
	case rrule.WEEKLY:
		d := int64(floor(r.start, day))
		return wall((d - (weekdayOf(d)-r.wkst+7)%7 + int64(n)*7) * day)
	}
	return floor(r.start, r.unit())*wall(r.unit()) + wall(int64(n)*r.unit())
}

// members returns the wall times of period k, and the number of the next period
// that can have any.
func (r *recurrence) members(k int64) (members, int64) {
	opens := r.opening(k)
	m := members{times: r.times}
	if r.freq >= rrule.HOURLY {
		if after, no := r.closed(opens); no {
			return m, max(k+1, r.period(after-1)+1)
		}
		m.bases = []wall{opens}
		return m.pick(r.picks), k + 1
	}
	first, last := int64(floor(opens, day)), int64(floor(opens, day))+1
	switch r.freq {
	case rrule.WEEKLY:
		last = first + 7
	case rrule.MONTHLY:
		last = int64(floor(wall(opens.asUTC().AddDate(0, 1, 0).Unix()), day))
	case rrule.YEARLY:
		last = int64(floor(wall(opens.asUTC().AddDate(1, 0, 0).Unix()), day))
	}
	for d := first; d < last; d++ {
		if r.matches(d) {
			m.bases = append(m.bases, wall(d*day))
		}
	}
	return m.pick(r.picks), k + 1
}

// closed reports whether the rule leaves out w, the opening of a period of less
// than a day, and the first wall time that is not left out for the same reason.
func (r *recurrence) closed(w wall) (until wall, is bool) {
	d := floor(w, day)
	second := int64(w - d*day)
	switch {
	case !r.matches(int64(d)):
		return (d + 1) * day, true
	case r.hours != 0 && r.hours>>(second/hour)&1 == 0:
		return (floor(w, hour) + 1) * hour, true
	case r.freq >= rrule.MINUTELY && r.minutes != 0 && r.minutes>>(second/minute%60)&1 == 0:
		return (floor(w, minute) + 1) * minute, true
	case r.freq >= rrule.SECONDLY && r.seconds != 0 && r.seconds>>(second%60)&1 == 0:
		return w + 1, true
	}
	return 0, false
}

// members are the wall times of one period: each base with each time after it, or
// the few that BYSETPOS picked. They are not listed, for a year may have millions.
type members struct {
	bases []wall
	times []int64
}

func (m members) len() int { return len(m.bases) * len(m.times) }

func (m members) at(i int) wall {
	return m.bases[i/len(m.times)] + wall(m.times[i%len(m.times)])
}

// search returns the place of the first member that is not before w.
func (m members) search(w wall) int {
	low, high := 0, m.len()
	for low < high {
		if mid := (low + high) / 2; m.at(mid) < w {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// pick keeps the members at the given positions, counted from 1, or from -1 at
// the end. No positions keep all.
func (m members) pick(positions []int) members {
	if len(positions) == 0 {
		return m
	}
	var picked []wall
	for _, p := range positions {
		i := p - 1
		if p < 0 {
			i = m.len() + p
		}
		if 0 <= i && i < m.len() {
			picked = append(picked, m.at(i))
		}
	}
	slices.Sort(picked)
	return members{bases: slices.Compact(picked), times: []int64{0}}
}

// floor divides and rounds down, also below zero.
func floor(w wall, by int64) wall {
	q := w / wall(by)
	if w%wall(by) < 0 {
		q--
	}
	return q
}

// each yields the values in a set, ascending.
func each(set uint64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for ; set != 0; set &= set - 1 {
			if !yield(int64(bits.TrailingZeros64(set))) {
				return
			}
		}
	}
}
