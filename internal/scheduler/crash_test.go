package scheduler

import (
	"context"
	"testing"
)

// killed looks for what is due and dies at the point.
func (n *node) killed(point string) {
	n.Helper()
	n.crash = point
	defer func() {
		n.crash = ""
		if recover() == nil {
			n.Errorf("never came to %s", point)
		}
		n.restart()
	}()
	_ = n.scheduler.Tick(context.Background())
}

func TestAKillLosesNothingAndRepeatsNothing(t *testing.T) {
	for before, point := range []string{"scheduler.due", "scheduler.fired"} {
		t.Run(point, func(t *testing.T) {
			n := newNode(t, noon)
			once := n.add(Draft{Content: "once", TriggerAt: "2026-05-06T13:00:00Z"})
			daily := n.add(Draft{Content: "daily", CronExpr: "0 13 * * *"})
			n.wall = instant(t, "2026-05-06T13:00:05Z")
			n.killed(point)
			equal(t, len(n.rings()), 2*before)
			equal(t, len(n.facts(Fired)), 2*before)
			n.tick("2026-05-06T13:00:20Z")
			n.tick("2026-05-06T13:00:20Z") // done twice
			equal(t, len(n.rings()), 2)
			equal(t, len(n.facts(Fired)), 2)
			n.next(once, "")
			n.next(daily, "2026-05-07T13:00:00Z")
		})
	}
}

func TestAKillOnOneNodeIsMadeGoodByTheOther(t *testing.T) {
	for before, point := range []string{"scheduler.due", "scheduler.fired"} {
		t.Run(point, func(t *testing.T) {
			a, b := newNode(t, noon), newPeer(t, "cloud", 1, noon)
			a.add(Draft{Content: "x", TriggerAt: "2026-05-06T13:00:00Z"})
			exchange(a, b)
			a.wall = instant(t, "2026-05-06T13:00:00Z")
			a.killed(point)
			exchange(a, b)
			b.tick("2026-05-06T13:02:00Z")
			equal(t, len(b.rings()), 1-before)
			exchange(a, b)
			a.tick("2026-05-06T13:03:00Z")
			equal(t, len(a.rings())+len(b.rings()), 1)
		})
	}
}
