package when

import (
	"slices"
	"time"
)

// dayRule says which days a recurrence may ring on. What is empty allows every
// day; the rest must all hold.
type dayRule struct {
	months             uint64 // bit 1 is January
	monthDays, fromEnd uint64 // bit 1 is the first, and the last, of a month
	yearDays           yearSet
	weeks              []int  // ISO weeks, from 1, or from -1 at the end
	week               uint64 // bit 0 is Monday
	nth                []nthDay
	inYear             bool  // nth counts within the year rather than the month
	byWkst             int64 // the weekday that weeks begin on
}

// nthDay is the n-th weekday of a month or year, from the end when n is negative.
type nthDay struct {
	weekday int64
	n       int
}

// matches reports whether a day, counted from 1 January 1970, is allowed.
func (r *dayRule) matches(d int64) bool {
	w := weekdayOf(d)
	named := r.week>>w&1 == 1
	if len(r.nth) == 0 { // spares most days the calendar
		if r.week != 0 && !named {
			return false
		}
		if r.months|r.monthDays|r.fromEnd == 0 && !r.yearDays.named && len(r.weeks) == 0 {
			return true
		}
	}
	t := wall(d * day).asUTC()
	y, m, md := t.Date()
	if r.months != 0 && r.months>>m&1 == 0 {
		return false
	}
	length := daysIn(y, m)
	if r.monthDays|r.fromEnd != 0 && r.monthDays>>md&1 == 0 && r.fromEnd>>(length-md+1)&1 == 0 {
		return false
	}
	yd, yearLength := t.YearDay(), 337+daysIn(y, time.February)
	if r.yearDays.named && !r.yearDays.has(yd, yearLength) {
		return false
	}
	if len(r.weeks) > 0 {
		week, back := r.weekOf(d)
		if !slices.Contains(r.weeks, week) && !slices.Contains(r.weeks, back) {
			return false
		}
	}
	if len(r.nth) == 0 || named {
		return true
	}
	if r.inYear {
		md, length = yd, yearLength
	}
	return slices.ContainsFunc(r.nth, func(of nthDay) bool {
		return of.weekday == w && (of.n == (md-1)/7+1 || of.n == -((length-md)/7+1))
	})
}

// weekOf returns the number of the week that holds day d, from the start of its
// year and from the end. A week belongs to the year that has four of its days.
func (r *dayRule) weekOf(d int64) (week, back int) {
	middle := d - (weekdayOf(d)-r.byWkst+7)%7 + 3
	t := wall(middle * day).asUTC()
	rest := 337 + daysIn(t.Year(), time.February) - t.YearDay()
	return (t.YearDay()-1)/7 + 1, -(rest/7 + 1)
}

// weekdayOf returns 0 for Monday to 6 for Sunday. Day 0 was a Thursday.
func weekdayOf(d int64) int64 { return ((d+3)%7 + 7) % 7 }

func daysIn(year int, m time.Month) int {
	switch {
	case m == time.February && year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return 29
	case m == time.February:
		return 28
	case m == time.April || m == time.June || m == time.September || m == time.November:
		return 30
	}
	return 31
}

// yearSet is a set of days of the year. A rule may name hundreds, and is asked of
// tens of thousands of days: each look is one bit.
type yearSet struct {
	named           bool
	forward, behind [6]uint64 // from 1, and counted from 1 at the end
}

func yearSetOf(days []int) yearSet {
	s := yearSet{named: len(days) > 0}
	for _, d := range days { // within a year, as newRecurrence has seen to or refuses
		switch {
		case d > 0 && d <= 366:
			s.forward[d/64] |= 1 << (d % 64)
		case d < 0 && d >= -366:
			s.behind[-d/64] |= 1 << (-d % 64)
		}
	}
	return s
}

func (s *yearSet) has(day, yearLength int) bool {
	back := yearLength + 1 - day
	return s.forward[day/64]>>(day%64)&1 == 1 || s.behind[back/64]>>(back%64)&1 == 1
}
