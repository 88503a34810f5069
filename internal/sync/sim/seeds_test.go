package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	gosync "sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seed  = flag.Uint64("seed", 0, "tell this seed alone")
	seeds = flag.Uint64("seeds", 0, "how many seeds; 0: 2,000, or as many as four minutes give")
	from  = flag.Uint64("from", 1, "the first seed")
	stop  = flag.Uint64("failures", 3, "stop after so many failures")
)

// budget bounds a run that does not say how many seeds it wants.
const (
	budget = 4 * time.Minute
	fewest = 200 // worlds that it must come to
)

// TestSeeds tells thousands of short stories of two nodes to which all goes wrong
// that can, lets all be well again, and holds them to the invariants of replication.
// A seed that fails is told again with go test -run TestSeeds -seed N.
func TestSeeds(t *testing.T) {
	if *seed != 0 {
		tell(t, *seed)
		return
	}
	count, until := *seeds, time.Time{}
	if count == 0 {
		count, until = 2000, time.Now().Add(budget)
		if testing.Short() {
			count = fewest
		}
	}
	var next, done, failed atomic.Uint64
	var mu gosync.Mutex
	met := map[string]int{}
	next.Store(*from)
	began := time.Now()
	t.Cleanup(func() { enough(t, met, done.Load()) })
	for i := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint("worker", i), func(t *testing.T) {
			t.Parallel()
			disks := newDisks(t)
			for failed.Load() < *stop && (until.IsZero() || time.Now().Before(until)) {
				s := next.Add(1) - 1
				if s >= *from+count {
					return
				}
				w, wrong := run(s, disks, false)
				mu.Lock()
				for what := range w.met {
					met[what]++
				}
				mu.Unlock()
				if wrong != "" {
					failed.Add(1)
					t.Errorf("seed %d: %s\n%s", s, wrong, w.told())
				}
				if n := done.Add(1); n%1000 == 0 {
					fmt.Fprintf(os.Stderr, "%d seeds, %.0f/s, %d failed\n", n, float64(n)/time.Since(began).Seconds(), failed.Load())
				}
			}
		})
	}
}

// enough fails unless the worlds together met all that they are for.
func enough(t *testing.T, met map[string]int, worlds uint64) {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(met)) {
		list = append(list, fmt.Sprintf("%6d %s", met[what], what))
	}
	t.Logf("in how many of %d worlds what happened:\n%s", worlds, strings.Join(list, "\n"))
	if *seeds == 0 && worlds < fewest {
		t.Errorf("%d worlds in %v prove nothing; at least %d", worlds, budget, fewest)
	}
	if worlds < 1000 {
		return // what is rare may not have come up
	}
	want := []string{
		"alias", "conflict", "reset", "comparison that repairs", "held deletes meant: true", "held deletes meant: false",
		"aside as malformed", "aside as id_reuse", "aside as held_delete", "left aside as unencodable",
		"look ahead", "calls cross", "call lost", "call cut", "call twice", "answer lost", "answer cut", "answered 413", "answered 429", "answered 503",
	}
	for _, point := range []string{"fetched", "stored", "offering", "offered", "served", "applied", "applying"} {
		want = append(want, "died at sync."+point)
	}
	for _, s := range steps {
		want = append(want, "step "+s.name)
	}
	for _, what := range want {
		if met[what] == 0 {
			t.Errorf("in %d worlds it never happened: %s", worlds, what)
		}
	}
}

// newDisks are two, in memory where there is room for that.
func newDisks(t *testing.T) (disks [2]*disk) {
	dir, err := os.MkdirTemp(scratch(), "sim")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"local", "cloud"} {
		disks[i] = &disk{dir: filepath.Join(dir, name)}
	}
	t.Cleanup(func() {
		for _, d := range disks {
			_ = d.close()
		}
		_ = os.RemoveAll(dir)
	})
	return disks
}

// tell tells one seed, with the model compared after each step, so that the story
// ends where it first goes wrong.
func tell(t *testing.T, seed uint64) {
	w, wrong := run(seed, newDisks(t), true)
	if wrong != "" {
		t.Errorf("seed %d: %s\n%s\nwhat the nodes logged:\n%s", seed, wrong, w.told(), w.said.String())
		return
	}
	t.Logf("seed %d is as it ought to be\n%s", seed, w.told())
}

// A seed is one story and no other, on new disks and on used ones, or a failure could
// not be told again.
func TestASeedTellsOneStory(t *testing.T) {
	used := newDisks(t)
	for s := uint64(1); s <= 15; s++ {
		a, _ := run(s, newDisks(t), false)
		b, _ := run(s, used, false)
		if a.told() != b.told() {
			t.Errorf("seed %d tells two stories:\n%s\n\n%s", s, a.told(), b.told())
		}
	}
}
