package far

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"
)

// Segment is what one packet carries, in bytes: 1500 less the headers.
const Segment = 1460

const (
	initialWindow = 10      // segments, RFC 6928
	largestWindow = 4 << 20 // bytes in flight; what Linux lets a socket grow to
	slack         = 200 * time.Millisecond
)

// Line is a long way: how long one direction takes, and which part of the
// segments it loses.
type Line struct {
	Delay time.Duration // one direction; a round trip is two
	Loss  float64       // 0.01 is one in a hundred
	Seed  uint64        // of what is lost
}

// flow is one direction of one connection: a model of the sender's congestion
// window and of the line, without any bytes. Times are since any fixed moment and
// never go back.
type flow struct {
	Line
	chance *rand.Rand

	window    float64 // segments that may be unacknowledged
	threshold float64 // slow start ends here
	sent      int64   // segments
	calm      int64   // losses of segments before this one belong to the last halving
	arrived   time.Duration
	last      time.Duration // of the last segment sent
	events    events
	unacked   int
}

// event is what the sender learns of a segment: that it came, or that it did not.
type event struct {
	at      time.Duration
	segment int64
	lost    bool
}

func newFlow(l Line, direction uint64) *flow {
	return &flow{Line: l, chance: rand.New(rand.NewPCG(l.Seed, direction)), window: initialWindow, threshold: math.Inf(1)}
}

func (f *flow) roundTrip() time.Duration { return 2 * f.Delay }

// timeout is how long a sender waits that nothing tells of a loss.
func (f *flow) timeout() time.Duration { return f.roundTrip() + slack }

// ready is the earliest time, from now on, at which the window admits a segment.
func (f *flow) ready(now time.Duration) time.Duration {
	f.learn(now)
	if f.unacked == 0 && f.sent > 0 && now-f.last > f.timeout() {
		f.window = min(f.window, initialWindow) // what was known of the line is old (RFC 2861, Linux' default)
	}
	at := now
	for f.unacked > 0 && float64(f.unacked+1) > f.window {
		at = f.events[0].at
		f.learn(at)
	}
	return at
}

// send gives a segment to the line at a time that ready has returned, and returns
// when the far end can read it: in order, so that a lost one holds up all that
// follow. Whoever has nothing more to send hears of a loss only by a probe.
func (f *flow) send(at time.Duration, more bool) time.Duration {
	segment := f.sent
	f.sent++
	f.unacked++
	f.last = at
	came := at + f.Delay
	if f.chance.Float64() < f.Loss {
		heard := at + f.roundTrip() // three duplicate acknowledgements, or as good
		if !more {
			heard += f.roundTrip()
		}
		heap.Push(&f.events, event{heard, segment, true})
		came = heard + f.Delay
		for f.chance.Float64() < f.Loss { // the retransmission too: only time tells
			came += f.timeout()
		}
	}
	heap.Push(&f.events, event{came + f.Delay, segment, false})
	f.arrived = max(f.arrived, came)
	return f.arrived
}

// learn takes what the sender has heard by now into the window: one segment more
// for each that came while the line is being sounded, one more for each windowful
// afterwards, and half after a loss, once for all that were under way with it.
func (f *flow) learn(now time.Duration) {
	for len(f.events) > 0 && f.events[0].at <= now {
		e := heap.Pop(&f.events).(event)
		switch {
		case e.lost && e.segment >= f.calm:
			f.threshold = max(f.window/2, 2)
			f.window, f.calm = f.threshold, f.sent
		case e.lost:
		default:
			f.unacked--
			if f.window < f.threshold {
				f.window++
			} else {
				f.window += 1 / f.window
			}
			f.window = min(f.window, float64(largestWindow)/Segment)
		}
	}
}

// events is a heap, the earliest first.
type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
