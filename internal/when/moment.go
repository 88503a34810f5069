package when

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"tandem/internal/fault"
)

// Moment is an instant and the zone it is shown in.
type Moment struct {
	At   time.Time // UTC, whole milliseconds
	Zone string    // as it was given: empty only when the text had an offset
}

// stamp is a time as people may give it: RFC 3339, or the same without seconds or
// without an offset.
var stamp = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d)?(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?$`)

// Instant reads a time. An offset in the text decides, and zone is then only for
// display; without one, zone decides, and the warnings nonexistent_local_time and
// ambiguous_local_time tell of a clock change. Its faults are Invalid:
// invalid_time and unknown_zone. Below a millisecond the time is cut off.
func Instant(text, zone string) (Moment, []Warning, error) {
	parts := stamp.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil || parts[3] == "" && parts[4] != "" {
		return Moment{}, nil, timeFault()
	}
	date, clock, seconds, fraction, offset := parts[1], parts[2], parts[3], parts[4], strings.ToUpper(parts[5])
	if seconds == "" {
		seconds = ":00"
	}
	if offset == "" {
		return local(date+"T"+clock+seconds+fraction, zone)
	}
	if offset[0] != 'Z' && (offset[1:3] > "23" || offset[4:] > "59") {
		return Moment{}, nil, timeFault()
	}
	if zone != "" {
		if _, err := Zone(zone); err != nil {
			return Moment{}, nil, err
		}
	}
	t, err := time.Parse(time.RFC3339, date+"T"+clock+seconds+fraction+offset)
	if err != nil || !within(t) {
		return Moment{}, nil, timeFault().Because(err)
	}
	return Moment{At: t.UTC().Truncate(time.Millisecond), Zone: zone}, nil, nil
}

// local reads a wall time in zone.
func local(text, zone string) (Moment, []Warning, error) {
	loc, err := Zone(zone)
	if err != nil {
		return Moment{}, nil, err
	}
	shown, err := time.Parse("2006-01-02T15:04:05", text) // takes a fraction too
	if err != nil {
		return Moment{}, nil, timeFault().Because(err)
	}
	at, how := resolve(wall(shown.Unix()), loc)
	t := time.Unix(at, int64(shown.Nanosecond())).UTC().Truncate(time.Millisecond)
	if !within(t) {
		return Moment{}, nil, timeFault()
	}
	var warnings []Warning
	switch rings := t.In(loc); how {
	case shownNever:
		warnings = []Warning{{Code: "nonexistent_local_time", Detail: fmt.Sprintf(
			"The clocks of %s skip %s on %s; it is taken as %s.", zone, shown.Format("15:04"), shown.Format("2 January 2006"), rings.Format("15:04 on 2 January"))}}
	case shownTwice:
		warnings = []Warning{{Code: "ambiguous_local_time", Detail: fmt.Sprintf(
			"The clocks of %s show %s twice on %s; it is taken as the first (%s). Write the offset to choose.", zone, shown.Format("15:04"), shown.Format("2 January 2006"), rings.Format("-07:00"))}}
	}
	return Moment{At: t, Zone: zone}, warnings, nil
}

func timeFault() *fault.Error {
	return fault.New(fault.Invalid, "invalid_time", "Write a time between 1970 and 9999 such as 2026-05-06T10:00:00Z, or 2026-05-06T10:00 with a zone beside it.")
}

// within reports whether t lies in the years that are kept, 1970 to 9999.
func within(t time.Time) bool { return 0 <= t.Unix() && t.Unix() <= latest }

// CheckDate checks a day of the calendar, YYYY-MM-DD from 1970 to 9999: a text, the
// same in every zone, and never an instant. Its fault is invalid_date.
func CheckDate(text string) error {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || len(text) != len(time.DateOnly) || !within(t) {
		return fault.New(fault.Invalid, "invalid_date", "Write a day of the calendar between 1970 and 9999, such as 2026-03-29.").Because(err)
	}
	return nil
}

// Format writes t for machines: UTC with a Z, whole milliseconds, and a fraction
// only when it is not zero.
func Format(t time.Time) string {
	t = t.UTC().Truncate(time.Millisecond)
	b := t.AppendFormat(make([]byte, 0, len("2006-01-02T15:04:05.000Z")), time.RFC3339) // which time writes fastest
	if ms := t.Nanosecond() / int(time.Millisecond); ms != 0 {
		b = append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
	}
	return string(b)
}

// Local writes t for people: the time in loc with its offset, whole seconds.
func Local(t time.Time, loc *time.Location) string { return t.In(loc).Format(time.RFC3339) }
