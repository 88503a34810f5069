package scheduler

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// TestMain gives the properties one seed and few rounds, unless the command line
// says otherwise, so that a run can be repeated and is short.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.seed": "20261101", "rapid.checks": "10"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			_ = flag.Set(name, value)
		}
	}
	_ = flag.Set("rapid.nofailfile", "true")
	os.Exit(m.Run())
}

// Whatever happens to two nodes, each one-shot rings, nothing rings twice on one
// node, and what a node would ring next is what it would derive anew.
func TestNothingIsLostOrRungTwiceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		start := instant(t, "2026-10-30T12:00:00Z")
		a, b := newPeer(t, "local", 0, "2026-10-30T12:00:00Z"), newPeer(t, "cloud", 1, "2026-10-30T12:00:00Z")
		defer func() { a.must(a.db.Close()); b.must(b.db.Close()) }()
		a.quiet, b.quiet = true, true
		nodes := []*node{a, b}
		zones := rapid.SampledFrom([]string{"America/New_York", "Europe/Berlin", "Asia/Kolkata", "America/Santiago"})
		dues := map[sync.UID]time.Time{}
		newest := start
		for range rapid.IntRange(10, 25).Draw(r, "steps") {
			n := rapid.SampledFrom(nodes).Draw(r, "node")
			switch rapid.SampledFrom([]string{"once", "cron", "edit", "tick", "tick", "tick", "back", "restart", "exchange", "ban"}).Draw(r, "step") {
			case "once":
				at := n.wall.Add(time.Duration(rapid.IntRange(1, 100_000).Draw(r, "in")) * time.Second)
				m := n.add(Draft{Content: "once", TriggerAt: at.Format(time.RFC3339)})
				dues[m.UID] = *m.TriggerAt
			case "cron":
				line := fmt.Sprintf("%d %s * * *", rapid.IntRange(0, 59).Draw(r, "minute"), rapid.SampledFrom([]string{"*", "1", "2", "*/5"}).Draw(r, "hour"))
				n.add(Draft{Content: "cron", CronExpr: line, Zone: zones.Draw(r, "zone")})
			case "edit":
				if list := n.list(anna); len(list) > 0 {
					n.edit(rapid.SampledFrom(list).Draw(r, "message"), Change{Content: ptr(fmt.Sprint("text ", n.wall.Unix()))})
				}
			case "tick":
				n.wall = n.wall.Add(time.Duration(rapid.IntRange(1, 50_000).Draw(r, "passes")) * time.Second)
				newest = later(newest, n.wall)
				n.must(n.round())
				n.settled()
			case "back":
				n.wall = later(start, n.wall.Add(-time.Duration(rapid.IntRange(1, 10_000).Draw(r, "back"))*time.Second))
			case "restart":
				n.wall = n.wall.Add(time.Second)
				n.restart()
			case "exchange":
				exchange(a, b)
			case "ban":
				n.banned = map[bool][]string{true: {anna}}[len(n.banned) == 0]
			}
		}
		for _, n := range nodes {
			n.banned, n.wall = nil, newest.Add(48*time.Hour)
			n.must(n.round())
			n.settled()
		}
		exchange(a, b)
		for _, n := range nodes {
			n.must(n.round())
			n.settled()
		}
		told := map[sync.UID]bool{}
		for _, s := range a.facts(Fired) {
			told[s.Reminder] = true
		}
		for uid, at := range dues {
			if !told[uid] {
				t.Errorf("%s, due %v, never rang", uid, at)
			}
		}
		equal(t, len(a.facts(Fired)), len(a.rings())+len(b.rings()))
	})
}

// settled checks what holds after each tick of a node on duty.
func (n *node) settled() {
	n.Helper()
	stale := read(n, func(tx *sqlite.Tx) ([]sync.UID, error) {
		list, err := sqlite.All(tx, scan, selectMessage)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if m.NextFireAt != nil && !m.NextFireAt.After(n.wall) && len(n.banned) == 0 {
				n.Errorf("%s is due at %v and did not ring by %v", m.Ref, m.NextFireAt, n.wall)
			}
		}
		return staleTx(tx, list)
	})
	equal(n, len(stale), 0)
}
