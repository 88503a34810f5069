// Package when answers one question: when does this ring? It reads what people
// write about time, refuses what it cannot mean, and turns a rule into instants.
// Everything here is pure: no clock, no database, and nothing of the zone that
// the process happens to run in.
//
// A rule is worked out on the wall clock of its zone and only then turned into an
// instant. A wall time that the clocks skip uses the offset before the change, so
// 02:30 rings at 03:30 (RFC 5545, 3.3.5); one that comes twice rings the first
// time. A rule whose minutes or hours are wildcards or steps means elapsed time
// instead: it rings whenever the clock on the wall shows a match, which is both
// times round when the hour repeats.
package when

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"tandem/internal/fault"
)

// Rule is a schedule as a person wrote it and as a row holds it. Exactly one of
// At, Cron and RRule is given.
type Rule struct {
	At    time.Time // one instant; the zero time is none
	Cron  string    // five fields, or a name such as @daily
	RRule string    // RFC 5545, with or without a DTSTART line
	Zone  string    // IANA name that Cron and RRule are read in; At needs none
}

// Occurrence is one time at which a schedule rings.
type Occurrence struct {
	At time.Time // UTC
	// Key is the same on every node. Of a rule that names its times it is the local wall
	// time and the fold bit, so that an owner who moves west does not hear the morning
	// twice; of a one-shot, and of a rule that means elapsed time, it is the instant in
	// milliseconds, so that nothing is taken for what rang before under that wall time.
	Key string
}

// Schedule is a rule that was understood. The zero value never rings.
type Schedule struct {
	once     time.Time
	loc      *time.Location
	walls    walls
	elapsed  bool  // match the clock on the wall, rather than place wall times
	until    int64 // the last second that may ring
	warnings []Warning
}

// walls are the wall times of a rule in a zone without clock changes.
type walls interface {
	// next returns the first wall time that is not before from; false means that
	// there is none, or none within the bound of the search.
	next(from wall) (wall, bool)
}

// latest is the last second of the year 9999: nothing rings after it.
const latest = 253402300799

// longest bounds the text of a rule, in bytes. The longest sensible rule lists
// every minute of an hour.
const longest = 1000

// Parse checks the grammar of a rule. Whether a rule is wise is for Check.
//
// Its faults are Invalid: invalid_schedule, invalid_cron, invalid_rrule,
// schedule_zone_prefix and unknown_zone.
func Parse(r Rule) (Schedule, error) {
	given := 0
	for _, is := range []bool{!r.At.IsZero(), r.Cron != "", r.RRule != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return Schedule{}, fault.New(fault.Invalid, "invalid_schedule", "Give one instant, or a cron line, or an rrule: exactly one of the three.")
	}
	if !r.At.IsZero() {
		return Schedule{once: r.At.UTC().Truncate(time.Millisecond)}, nil
	}
	if len(r.Cron+r.RRule) > longest {
		return Schedule{}, fault.New(fault.Invalid, "invalid_schedule", "Keep the rule below %d characters.", longest)
	}
	return parsed.get(r)
}

// parsed are the schedules that were read lately: the same few rules are asked for
// with each answer, each page and each ringing, and the worst of them takes tens of
// milliseconds to read.
var parsed = cache{read: map[Rule]Schedule{}}

// cache keeps schedules, which nobody changes once they are read. What cannot be
// read is not kept, nor what lists more times than a day has minutes.
type cache struct {
	mu   sync.Mutex
	read map[Rule]Schedule
}

// most bounds the cache; each entry has a rule of at most longest bytes.
const most = 1024

func (c *cache) get(r Rule) (Schedule, error) {
	c.mu.Lock()
	s, ok := c.read[r]
	c.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := read(r)
	if long, is := s.walls.(*recurrence); err != nil || is && len(long.times) > day/minute {
		return s, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.read) >= most {
		clear(c.read)
	}
	c.read[r] = s
	return s, nil
}

func read(r Rule) (Schedule, error) {
	loc, err := Zone(r.Zone)
	if err != nil {
		return Schedule{}, err
	}
	if r.Cron != "" {
		return parseCron(r.Cron, loc)
	}
	return parseRRule(r.RRule, loc)
}

// unzoned refuses a zone in front of a rule. The parser would take it, and panic
// where nothing follows.
func unzoned(rule string) error {
	upper := strings.ToUpper(strings.TrimSpace(rule))
	if strings.HasPrefix(upper, "TZ=") || strings.HasPrefix(upper, "CRON_TZ=") {
		return fault.New(fault.Invalid, "schedule_zone_prefix", "Take the zone out of the rule and give it in the field for the zone.")
	}
	return nil
}

// Next returns the first occurrence strictly after after; false means that the
// schedule is finished or never rings. The search is bounded, by a hundred years
// and by work, so a rule made to keep it busy also ends in false.
func (s Schedule) Next(after time.Time) (Occurrence, bool) {
	if s.walls == nil {
		if s.once.IsZero() || !s.once.After(after) {
			return Occurrence{}, false
		}
		return Occurrence{At: s.once, Key: strconv.FormatInt(s.once.UnixMilli(), 10)}, true
	}
	from := max(min(after.Unix(), latest)+1, 0)
	for last := min(s.until, latest); from <= last; {
		st := stretchAt(s.loc, from)
		at, resume := s.first(st, from)
		if at <= last {
			return Occurrence{At: time.Unix(at, 0).UTC(), Key: s.key(st, at)}, true
		}
		from = resume
	}
	return Occurrence{}, false
}

func (s Schedule) key(st stretch, at int64) string {
	if s.elapsed {
		return strconv.FormatInt(at*1000, 10)
	}
	return st.key(at)
}

// never is later than every instant.
const never = math.MaxInt64

// first returns the first instant of the stretch, from on, at which s rings. If
// that is never, the search resumes at the second instant.
func (s Schedule) first(st stretch, from int64) (at, resume int64) {
	at, resume = never, never
	shown := st.shows(from)
	if !s.elapsed { // what this stretch repeats has rung in the one before
		shown = max(shown, st.opens())
	}
	w, ok := s.walls.next(shown)
	switch {
	case !ok:
	case st.instant(w) < st.end:
		at = st.instant(w)
	default: // no zone shifts w back by more than widest
		resume = max(st.end, st.instant(w)-widest)
	}
	if skipped := wall(from + st.before); !s.elapsed && skipped < wall(st.start+st.off) {
		if g, ok := s.walls.next(skipped); ok && g < wall(st.start+st.off) {
			at = min(at, int64(g)-st.before)
		}
	}
	return at, resume
}
