package sync_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tandem/internal/sync"
)

// made is one version as the model knows it: who made it, in which life, over which
// others. Two versions are concurrent when neither is among what the other is made of.
type made struct {
	by, life string
	at       int64
	content  string // "" is a delete
}

// over is the rule, once more.
func (m made) over(other made) bool {
	return m.at > other.at || m.at == other.at && m.by > other.by
}

// causes is a node's version of a row, and all that went into it there: by that node's
// writes, and by whatever it has heard.
type causes struct {
	now made
	all map[made]bool
}

func (c causes) clone() causes { return causes{c.now, maps.Clone(c.all)} }

// history is the model: sets of versions where the product has one stamp a writer.
type history struct {
	rt    *rapid.T
	nodes [2]*node
	now   [2]time.Time
	has   [2]map[sync.Ref]causes
	pages [2][]sent         // served by each node, to be applied whenever
	lost  map[string]string // row, stamp and writer of each concurrent loser, to its text
	n     int
}

// sent is a page, and what its rows were made of when it was read.
type sent struct {
	page sync.Page
	has  map[sync.Ref]causes
}

func newHistory(t *testing.T, rt *rapid.T) *history {
	h := &history{rt: rt, lost: map[string]string{}}
	h.nodes[0], h.nodes[1] = fencedPair(t)
	for i, n := range h.nodes {
		h.now[i] = time.UnixMilli(1_800_000_000_000)
		n.now = func() time.Time { return h.now[i] }
		h.has[i] = map[sync.Ref]causes{}
	}
	return h
}

func (h *history) write(i int, r sync.Ref, content string) {
	n := h.nodes[i]
	at := read[int64](n, `SELECT updated_at FROM todos WHERE origin = ? AND id = ?`, r.Origin, r.ID)
	c := causes{made{n.name, n.log.Incarnation(), at, content}, map[made]bool{}}
	if before, ok := h.has[i][r]; ok {
		c.all = maps.Clone(before.all)
	}
	c.all[c.now] = true
	h.has[i][r] = c
}

func (h *history) step() {
	i := rapid.IntRange(0, 1).Draw(h.rt, "node")
	n := h.nodes[i]
	h.n++
	h.now[i] = h.now[i].Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 3, 2000, -5}).Draw(h.rt, "ms")) * time.Millisecond)
	switch rapid.SampledFrom([]string{"add", "edit", "edit", "edit", "serve", "serve", "apply", "apply", "apply", "new life", "lose tokens"}).Draw(h.rt, "step") {
	case "add":
		if len(h.has[0])+len(h.has[1]) < 6 {
			text := h.text()
			h.write(i, n.add(text), text)
		}
	case "edit":
		if refs := slices.SortedFunc(maps.Keys(h.has[i]), func(a, b sync.Ref) int { return strings.Compare(a.String(), b.String()) }); len(refs) > 0 {
			r := rapid.SampledFrom(refs).Draw(h.rt, "row")
			if rapid.IntRange(0, 4).Draw(h.rt, "remove") == 0 {
				n.remove(r)
				h.write(i, r, "")
				return
			}
			text := h.text()
			n.edit(r, "content", text)
			h.write(i, r, text)
		}
	case "serve":
		h.serve(i)
	case "apply":
		if len(h.pages[1-i]) > 0 {
			h.apply(i, rapid.SampledFrom(h.pages[1-i]).Draw(h.rt, "page"))
		}
	case "new life": // the fence is lost: another writer under the same name
		must(n.t, n.db.Close())
		must(n.t, os.Remove(n.fence))
		n.open()
	case "lose tokens":
		n.exec(`DELETE FROM sync_tokens`)
	}
}

// text is now and then one that was used before: two who write the same lose nothing.
func (h *history) text() string {
	return fmt.Sprint("t", h.n%rapid.SampledFrom([]int{2, 1000}).Draw(h.rt, "same"))
}

// serve has a node serve its log, from where its peer is or from the start.
func (h *history) serve(i int) {
	p := h.nodes[1-i].page(h.nodes[i])
	if rapid.Bool().Draw(h.rt, "from the start") {
		p.Entries = h.nodes[i].entries()
	}
	has := map[sync.Ref]causes{}
	for r, c := range h.has[i] {
		has[r] = c.clone()
	}
	h.pages[i] = append(h.pages[i], sent{p, has})
}

// apply has a node apply a page by itself, and the model its rows.
func (h *history) apply(i int, s sent) {
	h.nodes[i].took(s.page.Entries...)
	h.applied(i, s)
}

func (h *history) applied(i int, s sent) {
	for _, raw := range s.page.Entries {
		var e struct {
			Table  string
			Origin int64
			ID     int64
		}
		must(h.nodes[i].t, json.Unmarshal(raw, &e))
		r := sync.Ref{Origin: e.Origin, ID: e.ID}
		if e.Table == "todos" {
			h.meet(i, r, s.has[r])
		}
	}
}

// meet is what happens to a version that comes.
func (h *history) meet(i int, r sync.Ref, in causes) {
	mine, ok := h.has[i][r]
	if !ok {
		h.has[i][r] = in.clone()
		return
	}
	wins, loses := mine.now, in.now
	if in.now.over(mine.now) {
		wins, loses = in.now, mine.now
	}
	if !mine.all[in.now] && !in.all[mine.now] && wins.content != loses.content {
		h.lost[fmt.Sprint(r, " ", loses.at, " ", loses.by)] = loses.content
	}
	both := maps.Clone(mine.all)
	maps.Copy(both, in.all)
	h.has[i][r] = causes{wins, both}
}

// rest has both nodes read each other's logs until nothing moves, the model too.
func (h *history) rest() {
	for range 8 {
		moved := 0
		for i, n := range h.nodes {
			p := n.page(h.nodes[1-i])
			has := map[sync.Ref]causes{}
			for r, c := range h.has[1-i] {
				has[r] = c.clone()
			}
			if err := n.apply(h.nodes[1-i], p); err != nil {
				h.rt.Fatal(err)
			}
			moved += len(p.Entries)
			h.applied(i, sent{p, has})
		}
		if moved == 0 {
			return
		}
	}
	h.rt.Fatal("the nodes do not come to rest")
}

// E06. S:20, S:24. Exactly the versions that lost against one that had not seen them
// are conflicts, each once: none that was seen, and none missing, whatever the clocks,
// the order of pages, their repeats, and the lives of the nodes.
func TestConflictsAreExactlyTheVersionsThatNobodyHadSeen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(t, rt)
		for range rapid.IntRange(10, 40).Draw(rt, "steps") {
			h.step()
		}
		h.rest()
		if a, b := h.nodes[0].state(), h.nodes[1].state(); a != b {
			rt.Fatalf("the nodes differ:\n%s\n\n%s", a, b)
		}
		for i, n := range h.nodes {
			for r, c := range h.has[i] {
				if got := n.content(r); got != c.now.content {
					rt.Fatalf("%s at %s says %q, not %q", r, n.name, got, c.now.content)
				}
			}
			told := map[string]string{}
			for _, c := range n.conflicts("ann") {
				at := fmt.Sprint(c.Ref, " ", c.Lost.UpdatedAt, " ", c.Lost.UpdatedBy)
				if _, twice := told[at]; twice {
					rt.Fatalf("%s tells of %s twice", n.name, at)
				}
				var content string
				if c.Lost.DeletedAt == nil {
					must(t, json.Unmarshal(c.Lost.Fields["content"], &content))
				}
				told[at] = content
			}
			if !maps.Equal(told, h.lost) {
				rt.Fatalf("%s tells of\n%v\nlost were\n%v", n.name, told, h.lost)
			}
		}
	})
}
