package sync_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// written is one version that a person made, as the model remembers it.
type written struct {
	at      int64
	by      string
	content string // "" is deleted
}

func (w written) over(other written) bool {
	return w.at > other.at || w.at == other.at && w.by > other.by
}

// world is two nodes and what is under way between them. Its clocks move only when
// it says so, also backwards.
type world struct {
	rt    *rapid.T
	nodes [2]*node
	now   [2]time.Time
	refs  []sync.Ref
	best  map[sync.Ref]written // the version that must win
	sent  [2][]sync.Page       // pages that each node has served, to be delivered whenever
	n     int
}

func newWorld(t *testing.T, rt *rapid.T) *world {
	w := &world{rt: rt, best: map[sync.Ref]written{}}
	w.nodes[0], w.nodes[1] = pair(t)
	for i, n := range w.nodes {
		w.now[i] = time.UnixMilli(1_000_000)
		n.now = func() time.Time { return w.now[i] }
	}
	return w
}

func (w *world) pick() int { return rapid.IntRange(0, 1).Draw(w.rt, "node") }

// note remembers the version that a node has just made.
func (w *world) note(i int, r sync.Ref, content string) {
	at := read[int64](w.nodes[i], `SELECT updated_at FROM todos WHERE origin = ? AND id = ?`, r.Origin, r.ID)
	if v := (written{at, w.nodes[i].name, content}); v.over(w.best[r]) {
		w.best[r] = v
	}
}

func (w *world) text() string {
	w.n++
	return rapid.SampledFrom([]string{"milk", "<b>", "日本", "a\u2028b", "\x01"}).Draw(w.rt, "text") + fmt.Sprint(w.n)
}

func (w *world) add(*rapid.T) {
	i, text := w.pick(), w.text()
	r := w.nodes[i].add(text)
	w.refs = append(w.refs, r)
	w.note(i, r, text)
}

// known is a row that node i has.
func (w *world) known(i int) (sync.Ref, bool) {
	if len(w.refs) == 0 {
		return sync.Ref{}, false
	}
	r := rapid.SampledFrom(w.refs).Draw(w.rt, "row")
	return r, read[int](w.nodes[i], `SELECT count(*) FROM todos WHERE origin = ? AND id = ?`, r.Origin, r.ID) > 0
}

func (w *world) edit(*rapid.T) {
	i := w.pick()
	r, ok := w.known(i)
	if !ok {
		return
	}
	if rapid.IntRange(0, 3).Draw(w.rt, "remove") == 0 {
		w.nodes[i].remove(r)
		w.note(i, r, "")
		return
	}
	text := w.text()
	w.nodes[i].edit(r, "content", text) // brings a deleted one back, too
	w.note(i, r, text)
}

func (w *world) clock(*rapid.T) {
	ms := rapid.SampledFrom([]int{0, 1, 1, 500, -400, -60_000, 3_600_000}).Draw(w.rt, "step")
	i := w.pick()
	w.now[i] = w.now[i].Add(time.Duration(ms) * time.Millisecond)
}

// serve has a node serve what its peer has not read, or its log from the start.
func (w *world) serve(*rapid.T) {
	i := w.pick()
	p := w.nodes[1-i].page(w.nodes[i])
	if rapid.Bool().Draw(w.rt, "from the start") {
		p.Entries = w.nodes[i].entries()
		p.Cursor = ""
	}
	if len(p.Entries) > 0 {
		w.sent[i] = append(w.sent[i], p)
	}
}

// deliver applies some page that was served, for the first time or again, with its
// cursor or without, in its order or another.
func (w *world) deliver(*rapid.T) {
	i := w.pick()
	if len(w.sent[i]) == 0 {
		return
	}
	p := rapid.SampledFrom(w.sent[i]).Draw(w.rt, "page")
	entries := rapid.Permutation(p.Entries).Draw(w.rt, "order")
	from := "elsewhere" // the cursor stays
	if p.Cursor != "" && rapid.Bool().Draw(w.rt, "with its cursor") && len(entries) == len(p.Entries) {
		if at, err := w.nodes[1-i].log.Cursor(w.nodes[i].t.Context(), w.nodes[i].name); err == nil && at == "" {
			from = "" // the first page of all
		}
	}
	if _, err := w.nodes[1-i].log.Apply(w.nodes[i].t.Context(), w.nodes[i].name, from, p.Cursor, entries); err != nil {
		w.rt.Fatal(err)
	}
}

func (w *world) restart(*rapid.T) { w.nodes[w.pick()].restart() }

// E07. Any order and any number of repeats end in one and the same state, which is
// that of the newest version of each row: nothing is lost and nothing comes back.
func TestEditsConvergeInAnyOrderAndAfterAnyRepeats(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rt)
		steps := []func(*rapid.T){w.add, w.edit, w.edit, w.edit, w.clock, w.serve, w.serve, w.deliver, w.deliver, w.deliver}
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			rapid.SampledFrom(steps).Draw(rt, "step")(rt)
		}
		if rapid.Bool().Draw(rt, "restart") {
			w.restart(rt)
		}
		a, b := w.nodes[0], w.nodes[1]
		moved := settle(t, a, b)
		if x, y := a.state(), b.state(); x != y {
			rt.Fatalf("after %d entries the nodes differ:\n%s\n\n%s", moved, x, y)
		}
		for r, v := range w.best {
			if got := a.content(r); got != v.content {
				rt.Fatalf("%s says %q; the newest version, of %d by %s, says %q", r, got, v.at, v.by, v.content)
			}
		}
		if n := round(a, b); n != 0 {
			rt.Fatalf("a quiet round moved %d entries", n)
		}
	})
}

// E05. Each node counts for itself; neither's row 42 gives way to the other's.
func TestBothNodesMayMakeTheSameNumber(t *testing.T) {
	local, cloud := pair(t)
	for i := range 42 {
		local.add(fmt.Sprint("l", i+1))
		cloud.add(fmt.Sprint("c", i+1))
	}
	settle(t, local, cloud)
	same(t, local, cloud)
	for _, n := range []*node{local, cloud} {
		equal(t, "0-42", n.content(sync.Ref{Origin: 0, ID: 42}), "l42")
		equal(t, "1-42", n.content(sync.Ref{Origin: 1, ID: 42}), "c42")
		equal(t, "rows", read[int](n, `SELECT count(*) FROM todos`), 84)
	}
}

// S:14. A tie to the millisecond between the nodes.
func TestSameMillisecondOnBothNodesEndsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		r := local.add("first")
		settle(t, local, cloud)
		time.Sleep(time.Second)
		local.edit(r, "content", "of local")
		cloud.edit(r, "content", "of cloud")
		for range 2 { // crosswise, twice
			p, q := local.page(cloud), cloud.page(local)
			must(t, local.apply(cloud, p))
			must(t, cloud.apply(local, q))
		}
		settle(t, local, cloud)
		equal(t, "local", local.content(r), "of local") // the larger name
		equal(t, "cloud", cloud.content(r), "of local")
		same(t, local, cloud)
	})
}

// S:15. One writer and one stamp, but two contents, as a clock that was restored
// with its file can make them.
func TestSameStampWithOtherContentEndsTheSame(t *testing.T) {
	a, b := pair(t)
	x := wire(t, map[string]any{"content": "this"})
	y := wire(t, map[string]any{"content": "that"})
	for _, n := range []*node{a, b} {
		n.tables[0].Applied = nil
	}
	apply := func(n *node, all ...[]byte) {
		for _, e := range all {
			_, err := n.log.Apply(t.Context(), "peer", "", "", entries(e))
			must(t, err)
		}
	}
	apply(a, x, y, x, x, y)
	apply(b, y, x, y)
	same(t, a, b)
	settle(t, a, b)
	same(t, a, b)
}

// S:15. Two edits within one millisecond are two versions.
func TestEditsWithinAMillisecondAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		r := local.add("0")
		for i := range 5 {
			before := read[int64](local, `SELECT updated_at FROM todos`)
			local.edit(r, "content", fmt.Sprint(i+1))
			equal(t, "stamp", read[int64](local, `SELECT updated_at FROM todos`), before+1)
			if i%2 == 0 {
				settle(t, local, cloud)
			}
		}
		settle(t, local, cloud)
		equal(t, "cloud", cloud.content(r), "5")
	})
}

// S:16. Who edits what he saw wins over it, whatever his clock says.
func TestEditUnderASlowClockWins(t *testing.T) {
	local, cloud := pair(t)
	local.skew = -5 * time.Minute
	r := cloud.add("of cloud")
	settle(t, local, cloud)
	local.edit(r, "content", "of local")
	settle(t, local, cloud)
	equal(t, "cloud", cloud.content(r), "of local")
	local.skew = -24 * time.Hour // set back once more, between two edits
	local.edit(r, "content", "of local again")
	local.remove(local.add("made and removed"))
	settle(t, local, cloud)
	equal(t, "cloud", cloud.content(r), "of local again")
	same(t, local, cloud)
}

// S:18. A clock that was a year ahead for one edit.
func TestStampFarAheadNeitherLocksTheRowNorSpreads(t *testing.T) {
	local, cloud := pair(t)
	local.skew = 365 * 24 * time.Hour
	r := local.add("from next year")
	local.skew = 0
	other := local.add("from today")
	settle(t, local, cloud)
	equal(t, "cloud has it", cloud.content(r), "from next year")
	cloud.edit(r, "content", "edited there")
	settle(t, local, cloud)
	equal(t, "an edit at the cloud wins", local.content(r), "edited there")
	local.edit(r, "content", "edited here")
	settle(t, local, cloud)
	equal(t, "an edit here wins", cloud.content(r), "edited here")
	local.edit(other, "content", "today still")
	if at := read[int64](local, `SELECT updated_at FROM todos WHERE id = ?`, other.ID); at > time.Now().Add(time.Hour).UnixMilli() {
		t.Error("another row was stamped", sqlite.Time(at))
	}
}

// S:1, S:19. No time is part of what says how far a log was read.
func TestClocksThatDifferHideNothing(t *testing.T) {
	local, cloud := pair(t)
	local.skew = time.Minute
	r := local.add("of local")
	settle(t, local, cloud)
	cloud.edit(r, "content", "of cloud")
	cloud.skew = -4 * time.Second
	late := cloud.add("made under a clock set back")
	settle(t, local, cloud)
	equal(t, "the edit", local.content(r), "of cloud")
	equal(t, "the new one", local.content(late), "made under a clock set back")
}

// A tombstone stays, and no older version brings the row back (S:28, S:35).
func TestDeletedRowStaysDeleted(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("milk")
	old := cloud.page(local)
	settle(t, local, cloud)
	cloud.remove(r)
	settle(t, local, cloud)
	equal(t, "local", local.content(r), "")
	for range 3 {
		must(t, cloud.apply(local, old))
		settle(t, local, cloud)
	}
	equal(t, "cloud after the old page", cloud.content(r), "")
	equal(t, "local after the old page", local.content(r), "")
	equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 1)
	local.edit(r, "content", "milk after all") // S:34: a new version, and it crosses
	settle(t, local, cloud)
	equal(t, "cloud", cloud.content(r), "milk after all")
	same(t, local, cloud)
}

// S:40. What is not listed is not deleted.
func TestEmptyPeerDeletesNothing(t *testing.T) {
	local, cloud := pair(t)
	for i := range 20 {
		local.add(fmt.Sprint(i))
	}
	settle(t, local, cloud)
	fresh := newNode(t, "cloud", 1) // the cloud lost its file
	settle(t, local, fresh)
	equal(t, "rows at local", read[int](local, `SELECT count(*) FROM todos WHERE deleted_at IS NULL`), 20)
	same(t, local, fresh)
}

// S:31. A number stands for one row for ever.
func TestNumbersAreNotGivenOutAgain(t *testing.T) {
	local, _ := pair(t)
	first := local.add("a")
	local.remove(first)
	second := local.add("b")
	local.exec(`DELETE FROM todos`) // not even when the rows are gone
	third := local.add("c")
	local.restart()
	fourth := local.add("d")
	equal(t, "refs", fmt.Sprint(first, second, third, fourth), "0-1 0-2 0-3 0-4")
}
