package when

import (
	"fmt"
	"time"

	"tandem/internal/fault"
)

// Check looks this many occurrences and this far ahead for the shortest interval.
const (
	checkedCount = 2000
	checkedSpan  = 5 * 366 * day
)

// The faults of a schedule that was understood and will not ring.
var (
	ErrPast       = fault.New(fault.Invalid, "trigger_at_past", "That time has passed. Give one that is still to come.")
	ErrNeverFires = fault.New(fault.Invalid, "schedule_never_fires", "This rule has no date that ever comes. Check its day, its month and its end.")
)

// Check is the policy apart from the grammar: the schedule must ring after now
// (ErrPast for an instant, ErrNeverFires for a rule), and never sooner than every
// after it rang (schedule_too_frequent). Intervals are measured on the wall clock,
// so that a clock change makes no good schedule bad.
func (s Schedule) Check(now time.Time, every time.Duration) error {
	_, ok := s.Next(now)
	switch {
	case !ok && s.walls == nil:
		return ErrPast
	case !ok:
		return ErrNeverFires
	case s.walls == nil:
		return nil
	}
	from := wallOf(now.In(s.loc))
	before, ok := s.walls.next(from)
	for n := 0; ok && n < checkedCount && before < from+checkedSpan; n++ {
		var w wall
		if w, ok = s.walls.next(before + 1); !ok {
			break
		}
		if gap := time.Duration(w-before) * time.Second; gap < every {
			return fault.New(fault.Invalid, "schedule_too_frequent", "This rings again after %s; the shortest interval allowed here is %s.", spoken(gap), spoken(every))
		}
		before = w
	}
	return nil
}

// spoken writes an interval in words, in minutes when it has no odd seconds.
func spoken(d time.Duration) string {
	n, unit := int64(d/time.Second), "second"
	if d%time.Minute == 0 {
		n, unit = int64(d/time.Minute), "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}
