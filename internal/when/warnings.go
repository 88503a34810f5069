package when

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Warning tells the maker of a schedule what it does that they may not expect.
type Warning struct {
	Code   string `json:"code"`   // stable, such as skips_short_months
	Detail string `json:"detail"` // for a person
}

// Warnings returns what is odd about a rule that is accepted all the same:
// skips_short_months, day_or_weekday. None is an empty list, and never nil.
func (s Schedule) Warnings() []Warning { return append([]Warning{}, s.warnings...) }

func cronWarnings(c crontab, dayField string) []Warning {
	var found []Warning
	if !strings.ContainsAny(dayField, "*?") { // a step over all days means no day in particular
		found = skippedMonths(c.days, c.months)
	}
	if c.either {
		days := make([]string, 0, 31)
		for d := range each(c.days) {
			days = append(days, ordinal(d))
		}
		var weekdays []string
		for w := range each(c.week) {
			weekdays = append(weekdays, time.Weekday(w).String())
		}
		detail := "on the " + list(days) + ", and every " + list(weekdays)
		if c.months != 1<<13-2 {
			detail += ", in " + list(monthNames(c.months))
		}
		found = append(found, Warning{Code: "day_or_weekday", Detail: detail})
	}
	return found
}

// skippedMonths warns of a day that some of the months do not have. A run of days
// up to the end, such as 28-31, rings in every month and means it so.
func skippedMonths(days, months uint64) []Warning {
	if months == 0 {
		months = 1<<13 - 2
	}
	var found []Warning
	for d := range each(days &^ (days << 1) >> 29 << 29) {
		var without uint64
		for m := range each(months) {
			if int64(daysIn(2027, time.Month(m))) < d {
				without |= 1 << m
			}
		}
		sometimes := d == 29 && without != 0
		if without == 0 || without == months && !sometimes {
			continue
		}
		where := "in " + list(monthNames(without))
		if sometimes {
			where = "in February of most years"
		}
		found = append(found, Warning{Code: "skips_short_months", Detail: fmt.Sprintf(
			"There is no %s %s, and it does not ring then. The last day of every month is the rrule FREQ=MONTHLY;BYMONTHDAY=-1.", ordinal(d), where)})
	}
	return found
}

func monthNames(set uint64) []string {
	var names []string
	for m := range each(set) {
		names = append(names, time.Month(m).String())
	}
	return names
}

func ordinal(n int64) string {
	suffix := "th"
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.FormatInt(n, 10) + suffix
}

// list joins words as a sentence does.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
