package when

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// someZones change their clocks by half an hour, by two hours, at midnight, twice
// around Ramadan, by a whole day, backwards in summer, or not at all.
var someZones = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Kiritimati", "Africa/Casablanca",
	"Asia/Tehran", "America/Santiago", "Africa/Cairo", "Pacific/Apia", "Pacific/Chatham", "Europe/Dublin", "America/Havana",
	"America/St_Johns", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Beirut", "America/Asuncion", "America/Nuuk", "Asia/Gaza", "Antarctica/Casey",
}

// field draws the text of a cron field and the values that it means. Only the
// first three of the weekday's shapes have a star.
func field(t *rapid.T, label string, low, high int) (text string, means []int) {
	value := rapid.IntRange(low, high)
	switch rapid.IntRange(0, 4).Draw(t, label+" shape") {
	case 0:
		return "*", span(low, high, 1)
	case 1:
		step := rapid.IntRange(1, high).Draw(t, label+" step")
		return fmt.Sprintf("*/%d", step), span(low, high, step)
	case 2:
		a, b := value.Draw(t, label), value.Draw(t, label)
		a, b = min(a, b), max(a, b)
		return fmt.Sprintf("%d-%d", a, b), span(a, b, 1)
	case 3:
		a, b := value.Draw(t, label), value.Draw(t, label)
		return fmt.Sprintf("%d,%d", a, b), []int{a, b}
	}
	a := value.Draw(t, label)
	return fmt.Sprint(a), []int{a}
}

func span(from, to, step int) []int {
	var all []int
	for v := from; v <= to; v += step {
		all = append(all, v)
	}
	return all
}

// slowCron is a cron line that is looked up minute by minute.
type slowCron struct {
	line    string
	means   [5][]int
	anyDay  bool // one of the two day fields is *
	elapsed bool
}

func drawCron(t *rapid.T) slowCron {
	var c slowCron
	var texts []string
	for i, f := range []struct {
		label     string
		low, high int
	}{{"minute", 0, 59}, {"hour", 0, 23}, {"day", 1, 31}, {"month", 1, 12}, {"weekday", 0, 6}} {
		text, means := field(t, f.label, f.low, f.high)
		texts, c.means[i] = append(texts, text), means
	}
	c.line = strings.Join(texts, " ")
	bare := func(text string) bool { return text == "*" || text == "*/1" }
	c.anyDay = bare(texts[2]) || bare(texts[4])
	c.elapsed = strings.HasPrefix(texts[0], "*") || strings.HasPrefix(texts[1], "*")
	return c
}

// matches reads the calendar fields of shown, whatever its zone is.
func (c slowCron) matches(shown time.Time) bool {
	has := func(i, v int) bool { return slices.Contains(c.means[i], v) }
	day, weekday := has(2, shown.Day()), has(4, int(shown.Weekday()))
	return has(0, shown.Minute()) && has(1, shown.Hour()) && has(3, int(shown.Month())) &&
		(c.anyDay && day && weekday || !c.anyDay && (day || weekday))
}

// rings returns the instants after from and up to to at which c rings, by asking
// each minute of the clock.
func (c slowCron) rings(loc *time.Location, from, to time.Time) []int64 {
	var all []int64
	if c.elapsed {
		for at := from.Truncate(time.Minute); !at.After(to); at = at.Add(time.Minute) {
			if at.After(from) && c.matches(at.In(loc)) {
				all = append(all, at.Unix())
			}
		}
		return all
	}
	for w := from.Truncate(time.Minute).Add(-40 * time.Hour); w.Before(to.Add(40 * time.Hour)); w = w.Add(time.Minute) {
		if c.matches(w.UTC()) {
			if at := slowInstant(w.Unix(), loc); at > from.Unix() && at <= to.Unix() {
				all = append(all, at)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// slowInstant tries every offset that the zone has around a wall time. When none
// shows it, the offset before the change is the last that comes out too early.
func slowInstant(shown int64, loc *time.Location) int64 {
	first, before := int64(never), int64(0)
	for at := shown - 40*3600; at <= shown+40*3600; at += 900 {
		off := offsetAt(at, loc)
		if offsetAt(shown-off, loc) == off {
			first = min(first, shown-off)
		}
		if at+off <= shown {
			before = off
		}
	}
	if first != never {
		return first
	}
	return shown - before
}

func offsetAt(at int64, loc *time.Location) int64 {
	_, off := time.Unix(at, 0).In(loc).Zone()
	return int64(off)
}

// drawNow draws a zone and an instant: half of the time one within two days of a
// clock change.
func drawNow(t *rapid.T) (*time.Location, time.Time) {
	name := rapid.SampledFrom(someZones).Draw(t, "zone")
	loc, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(rapid.Int64Range(0, 3_000_000_000).Draw(t, "now"), 0).UTC()
	if _, change := now.In(loc).ZoneBounds(); !change.IsZero() && rapid.Bool().Draw(t, "near a change") {
		now = change.UTC().Add(time.Duration(rapid.IntRange(-2*day, 2*hour).Draw(t, "from the change")) * time.Second)
	}
	return loc, now
}

// walk calls Next n times and checks what must hold of any schedule: each
// occurrence is later than the instant asked about, and no key comes twice.
func walk(t interface{ Fatalf(string, ...any) }, s Schedule, now time.Time, n int) []Occurrence {
	var all []Occurrence
	seen := map[string]bool{}
	for range n {
		o, ok := s.Next(now)
		if !ok {
			break
		}
		if !o.At.After(now) || seen[o.Key] {
			t.Fatalf("after %s comes %s with the key %s, seen before: %v", Format(now), Format(o.At), o.Key, seen[o.Key])
		}
		seen[o.Key] = true
		all, now = append(all, o), o.At
	}
	return all
}

// R:A20
func TestCronAgreesWithAMinuteByMinuteClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, now := drawNow(t)
		c := drawCron(t)
		s, err := Parse(Rule{Cron: c.line, Zone: loc.String()})
		if err != nil {
			t.Fatal(err)
		}
		to := now.Add(60 * time.Hour)
		var got []int64
		for at := now; ; {
			o, ok := s.Next(at)
			if !ok || o.At.After(to) {
				break
			}
			got, at = append(got, o.At.Unix()), o.At
		}
		if want := c.rings(loc, now, to); !slices.Equal(got, want) {
			t.Fatalf("%q in %s after %s:\n got %s\nwant %s", c.line, loc, Format(now), instants(got), instants(want))
		}
		walk(t, s, now, 50)
	})
}

func instants(seconds []int64) string {
	var all []string
	for _, s := range seconds {
		all = append(all, Format(time.Unix(s, 0)))
	}
	return strings.Join(all, " ")
}

// R:A20 for the instants that people give.
func TestWallTimeAgreesWithASearchOfOffsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, now := drawNow(t)
		w := wallOf(now.In(loc)) + wall(rapid.IntRange(-3*hour, 3*hour).Draw(t, "shift"))
		at, how := resolve(w, loc)
		if want := slowInstant(int64(w), loc); at != want {
			t.Fatalf("%s in %s: got %s, want %s", w.asUTC().Format(time.DateTime), loc, instants([]int64{at}), instants([]int64{want}))
		}
		shown := wallOf(time.Unix(at, 0).In(loc)) == w
		if shown != (how != shownNever) {
			t.Fatalf("%s in %s: shown %v, but reading %d", w.asUTC().Format(time.DateTime), loc, shown, how)
		}
	})
}

// R:A20 the same instant asked for from anywhere before it has the same key, so
// that two nodes, or one after a restart, make one occurrence of it.
func TestOccurrenceDoesNotDependOnWhenItWasAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, now := drawNow(t)
		s, err := Parse(Rule{Cron: drawCron(t).line, Zone: loc.String()})
		if err != nil {
			t.Fatal(err)
		}
		first, ok := s.Next(now)
		if !ok {
			return
		}
		gap := int64(first.At.Sub(now) / time.Second)
		between := now.Add(time.Duration(rapid.Int64Range(0, gap-1).Draw(t, "later")) * time.Second)
		if again, _ := s.Next(between); again != first {
			t.Fatalf("asked at %s: %v; asked at %s: %v", Format(now), first, Format(between), again)
		}
	})
}
