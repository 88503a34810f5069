package when

import "time"

// wall is a reading of the clock on the wall, in seconds since 1970 as if the
// zone were UTC. It becomes an instant only with an offset.
type wall int64

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour

	// widest is more than any clock was ever moved at once: Apia left out a day.
	widest = 26 * hour

	// unbounded stands for the start of a stretch that has none.
	unbounded = -1 << 50
)

// wallOf reads the clock that t carries.
func wallOf(t time.Time) wall {
	_, off := t.Zone()
	return wall(t.Unix() + int64(off))
}

// asUTC returns the time that shows w in UTC, for its calendar fields.
func (w wall) asUTC() time.Time { return time.Unix(int64(w), 0).UTC() }

// stretch is a span of instants, [start, end), through which a zone keeps one
// offset. All of it is in seconds.
type stretch struct {
	start, end int64
	off        int64
	before     int64 // the offset until start
}

// stretchAt returns the stretch that holds the instant t.
func stretchAt(loc *time.Location, t int64) stretch {
	at := time.Unix(t, 0).In(loc)
	_, off := at.Zone()
	st := stretch{start: unbounded, end: never, off: int64(off), before: int64(off)}
	start, end := at.ZoneBounds()
	if !start.IsZero() {
		_, before := start.Add(-time.Second).Zone()
		st.start, st.before = start.Unix(), int64(before)
	}
	if !end.IsZero() {
		st.end = end.Unix()
	}
	if st.end <= t { // in years past the zone's table ZoneBounds takes each to have 365 days
		st.end = time.Date(at.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return st
}

func (st stretch) shows(t int64) wall   { return wall(t + st.off) }
func (st stretch) instant(w wall) int64 { return int64(w) - st.off }

// opens returns the first wall time that was not already shown before start.
func (st stretch) opens() wall { return wall(st.start + max(st.off, st.before)) }

// key names the instant t by what the wall shows, and says after the slash
// whether it shows that for the second time.
func (st stretch) key(t int64) string {
	w, fold := st.shows(t), "/0"
	if w < st.opens() {
		fold = "/1"
	}
	return w.asUTC().Format("2006-01-02T15:04:05") + fold
}

// reading is how often a wall time is shown.
type reading int

const (
	shownOnce reading = iota
	shownNever
	shownTwice
)

// resolve returns the instant, in seconds, that w means in loc.
func resolve(w wall, loc *time.Location) (int64, reading) {
	at, how := int64(never), shownNever
	for st := stretchAt(loc, int64(w)-widest); ; st = stretchAt(loc, st.end) {
		if at == never && st.shows(st.start) > w {
			return int64(w) - st.before, shownNever
		}
		if t := st.instant(w); st.start <= t && t < st.end {
			if at != never {
				return at, shownTwice
			}
			at, how = t, shownOnce
		}
		if st.end > int64(w)+widest {
			return at, how
		}
	}
}
