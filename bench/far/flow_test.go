package far

import (
	"testing"
	"time"
)

const delay = 50 * time.Millisecond

// filled sends so many segments as fast as the window lets them go, and returns
// when the last could be read.
func filled(f *flow, segments int) time.Duration {
	var at, came time.Duration
	for range segments {
		at = f.ready(at)
		came = f.send(at, true)
	}
	return came
}

func TestALineWithoutLossIsLateByItsDelayAlone(t *testing.T) {
	f := newFlow(Line{Delay: delay}, 1)
	if got := filled(f, initialWindow); got != delay {
		t.Errorf("the first window came after %v, want %v", got, delay)
	}
}

func TestWithoutLossTheWindowDoublesEachRoundTrip(t *testing.T) {
	f := newFlow(Line{Delay: delay}, 1)
	// 10 + 20 + 40 + 80 segments are under way when the fourth window has left.
	if got, want := filled(f, 150), 7*delay; got != want {
		t.Errorf("150 segments took %v, want %v", got, want)
	}
}

func TestTheWindowEndsWhereASocketDoes(t *testing.T) {
	f := newFlow(Line{Delay: delay}, 1)
	filled(f, 100_000)
	if f.window*Segment > largestWindow {
		t.Errorf("%.0f bytes may be under way", f.window*Segment)
	}
}

// Mathis, Semke, Mahdavi and Ott 1997: what TCP carries under random loss is about
// sqrt(3/2p) segments a round trip.
func TestUnderLossTheRateIsThatOfTCP(t *testing.T) {
	for _, loss := range []float64{0.0025, 0.01, 0.04} {
		want := map[float64]float64{0.0025: 24.5, 0.01: 12.2, 0.04: 6.1}[loss]
		const segments = 50_000
		took := filled(newFlow(Line{Delay: delay, Loss: loss, Seed: 7}, 1), segments)
		got := segments / (took.Seconds() / (2 * delay).Seconds())
		if got < 0.75*want || got > 1.25*want {
			t.Errorf("loss %g: %.1f segments a round trip, want about %.1f", loss, got, want)
		}
	}
}

func TestALostSegmentHoldsUpWhatFollowsItAndHalvesTheWindowOnce(t *testing.T) {
	f := newFlow(Line{Delay: delay, Loss: 0.2, Seed: 3}, 1)
	var came []time.Duration
	for i := range initialWindow {
		came = append(came, f.send(0, i < initialWindow-3))
	}
	losses := 0
	for _, e := range f.events {
		if e.lost {
			losses++
		}
	}
	if losses < 2 {
		t.Fatalf("%d losses: choose another seed", losses)
	}
	for i := 1; i < len(came); i++ {
		if came[i] < came[i-1] {
			t.Errorf("segment %d is read at %v, before the one ahead of it at %v", i, came[i], came[i-1])
		}
	}
	if last := came[len(came)-1]; last < 3*delay {
		t.Errorf("all came after %v though %d were lost", last, losses)
	}
	f.learn(5 * delay)
	if f.threshold < initialWindow/2 || f.threshold >= initialWindow { // what came before the first loss was heard of may have raised it
		t.Errorf("after %d losses of one window the threshold is %.1f", losses, f.threshold)
	}
}

func TestAfterAPauseTheWindowIsSmallAgain(t *testing.T) {
	f := newFlow(Line{Delay: delay}, 1)
	filled(f, 1000)
	if f.window <= initialWindow {
		t.Fatalf("window %.0f", f.window)
	}
	f.ready(f.arrived + time.Minute)
	if f.window != initialWindow {
		t.Errorf("window %.0f after a minute's silence", f.window)
	}
}
