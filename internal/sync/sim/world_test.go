package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"tandem/internal/sync"
)

// canary is the peer secret: it must be found nowhere.
const canary = "canary-5f0c2d6e9b7a41838c1d-do-not-tell-43-chars"

// failure is what a seed ends with when something is not as it ought to be.
type failure struct{ what string }

// world is two nodes, the line between them, and all that was ever written.
type world struct {
	seed     uint64
	rand     *rand.Rand
	odds     odds
	strict   bool // compare with the model after each step
	now      int64
	nodes    [2]*node
	line     *line
	rows     []*history
	byUID    map[sync.UID]*history
	ties     map[[3]any]int
	words    int
	posted   map[string]posted    // letters
	calls    int                  // in this step
	keys     map[given][]*history // to whom each key was given out, in order
	reused   int                  // keys that were given out twice
	mass     int                  // deletes of very many rows
	years    bool                 // a clock was off by a year
	compared bool                 // the nodes have repaired what was not alike
	expired  map[loser]bool       // conflicts that a node has let go as too old
	met      map[string]int       // what has happened here, by name: a world in which nothing does proves nothing
	healing  bool
	best     map[*history]int // from when it healed
	count    counts
	said     bytes.Buffer // what both nodes log
	story    []string
}

// counts are for the invariants that bound something.
type counts struct {
	written   int    // versions and facts, by people
	again     int    // versions and facts that a node has lost, and is sent once more
	useful    int    // entries sent in calls that went well, full passes apart
	moved     int    // all entries sent
	resets    [2]int // of the reading of each node's log
	disasters int    // restores, wipes, lost token tables
}

// newWorld makes both nodes on their disks, empty and paired.
func newWorld(seed uint64, disks [2]*disk, strict bool) *world {
	w := &world{
		seed: seed, rand: rand.New(rand.NewPCG(seed, 20260329)), strict: strict, now: 1_800_000_000_000,
		byUID: map[sync.UID]*history{}, ties: map[[3]any]int{}, keys: map[given][]*history{}, posted: map[string]posted{}, expired: map[loser]bool{}, met: map[string]int{},
	}
	w.odds = w.drawOdds()
	w.line = &line{w: w, counted: map[string]bool{}}
	newer := -1
	if w.chance(0.2) {
		newer = w.rand.IntN(2)
	}
	for i, name := range []string{"local", "cloud"} {
		n := &node{w: w, disk: disks[i], name: name, origin: int64(i), newer: i == newer, ought: newState()}
		n.disk.now = n.now
		n.disk.seed(seed, i, 0)
		w.nodes[i] = n
		w.must(n.blank())
		n.begin()
	}
	return w
}

// tell writes a line of the story.
func (w *world) tell(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%5d ", w.now%100_000)+fmt.Sprintf(format, args...))
}

// add appends to the last line of the story.
func (w *world) add(format string, args ...any) {
	w.story[len(w.story)-1] += fmt.Sprintf(format, args...)
}

func (w *world) fail(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

func (w *world) must(err error) {
	if err != nil {
		w.fail("unexpected error: %v", err)
	}
}

func (w *world) chance(p float64) bool { return p > 0 && w.rand.Float64() < p }

// pick is one of the nodes.
func (w *world) pick() *node { return w.nodes[w.rand.IntN(2)] }

func oneOf[T any](w *world, list ...T) T { return list[w.rand.IntN(len(list))] }

// word is a text that no other version has.
func (w *world) word() string {
	w.words++
	return fmt.Sprint(oneOf(w, "milk ", "<b>&", "日本", "a\u2028b", "\x01", "🥛", "\"\\", "") + fmt.Sprint("w", w.words))
}

// row returns the history of a uid, new or known.
func (w *world) row(table string, uid sync.UID) *history {
	h := w.byUID[uid]
	if h == nil {
		h = &history{name: fmt.Sprint("r", len(w.rows)+1), table: table, uid: uid}
		w.rows, w.byUID[uid] = append(w.rows, h), h
	}
	return h
}

// tie asks the file which of two versions of one stamp it kept; both nodes must
// answer alike.
func (n *node) tie(h *history) func(a, b int) int {
	return func(a, b int) int {
		r, ok := n.read(h)
		i, known := h.find(r.version())
		if !ok || !known || i != a && i != b {
			n.w.fail("%s holds neither of two versions of %s that share a stamp: %v, %v", n, h.name, h.versions[a], h.versions[b])
		}
		key := [3]any{h.uid, min(a, b), max(a, b)}
		if before, decided := n.w.ties[key]; decided && before != i {
			n.w.fail("%s keeps another one of %v and %v than was kept before", n, h.versions[a], h.versions[b])
		}
		n.w.ties[key] = i
		return i
	}
}

// run tells one seed, and returns what was not as it ought to be; "" where all was.
func run(seed uint64, disks [2]*disk, strict bool) (w *world, wrong string) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			wrong = f.what
		}
	}()
	w = newWorld(seed, disks, strict)
	for range 10 + w.rand.IntN(51) {
		w.step()
	}
	w.heal()
	w.check()
	return w, ""
}

// told is the story as a failure shows it.
func (w *world) told() string { return strings.Join(w.story, "\n") }
