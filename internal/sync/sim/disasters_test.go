package sim

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// backUp copies a node's database, for a restore in the time to come.
func (w *world) backUp() { w.pick().backUp() }

// backUpBoth copies both databases, with whatever is on its way between them.
func (w *world) backUpBoth() {
	w.nodes[0].backUp()
	w.nodes[1].backUp()
}

func (n *node) backUp() {
	w := n.w
	s := n.snapshot()
	var err error
	s.highest, err = n.log.Highest(ctx)
	w.must(err)
	n.backups = append(n.backups, s)
	w.tell("%s is backed up (%d)", n, len(n.backups))
}

// restore puts a database of an earlier moment in the place of a node's: by the verb,
// which tells the fence; by hand, with the fence that stood there; or on a new disk,
// without one.
func (w *world) restore() { w.pick().restore() }

// restoreBoth puts both nodes back, each to some moment of its own.
func (w *world) restoreBoth() {
	w.nodes[0].restore()
	w.nodes[1].restore()
}

func (n *node) restore() {
	w := n.w
	if len(n.backups) == 0 {
		return
	}
	n.restoreFrom(w.rand.IntN(len(n.backups)))
	n.goesOn()
}

func (n *node) restoreFrom(i int) {
	w := n.w
	how := oneOf(w, "by the verb", "by hand, fence and all", "without its fence")
	w.tell("%s is restored from its backup %d, %s", n, i+1, how)
	n.replace(n.backups[i], how)
}

// goesOn has people write on at a node that was put back, and a call from before arrive,
// ere anybody tells the node what it has lost.
func (n *node) goesOn() {
	switch {
	case n.lost > 0 && n.lost < 40 && n.w.chance(0.4):
		n.catchesUp()
	default:
		for range n.w.rand.IntN(4) {
			n.addRow()
		}
	}
	for n.w.chance(0.3) {
		n.w.deliverAgain()
	}
}

// catchesUp has a node write as much as it had lost, and a poll from before ask for it:
// what that is answered with ends at a place where another page has ended.
func (n *node) catchesUp() {
	for range n.lost {
		n.addRow()
	}
	polls := slices.DeleteFunc(slices.Clone(n.w.line.sent), func(c call) bool { return c.method != http.MethodGet })
	if len(polls) > 0 {
		n.w.deliver(oneOf(n.w, polls...))
	}
}

// end is the last place in the node's log.
func (n *node) end() int64 {
	tables := []string{sync.FactsTable}
	for _, t := range n.tables() {
		tables = append(tables, t.Name)
	}
	return value[int64](n, `SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM `+strings.Join(tables, ` UNION ALL SELECT seq FROM `)+`)`)
}

// loseTail puts a node back to a moment ago: its disk had promised more than it kept.
func (w *world) loseTail() {
	n := w.pick()
	if n.before == nil {
		return
	}
	w.tell("%s loses what it wrote since %d", n, n.before.at%100_000)
	n.replace(n.before, "by hand, fence and all")
	n.goesOn()
}

// wipe takes a node's database away, with or without its fence.
func (w *world) wipe() {
	n := w.pick()
	how := oneOf(w, "by hand, fence and all", "without its fence")
	w.tell("%s loses its database, %s", n, how)
	n.replace(nil, how)
	n.goesOn()
}

// replace puts another database in the place of a node's, and opens it.
func (n *node) replace(s *snapshot, how string) {
	n.w.count.disasters++
	life, end := n.log.Incarnation(), n.end()
	n.close()
	switch how {
	case "by the verb":
		highest := map[string]int64{}
		for table, ids := range s.highest {
			highest[table] = ids[n.origin]
		}
		n.w.must(sync.ForceRestored(n.fence(), highest))
	case "without its fence":
		if err := os.Remove(n.fence()); err != nil && !os.IsNotExist(err) {
			n.w.must(err)
		}
		n.forgetful = n.forgetful || s == nil
	}
	had := n.ought
	n.put(s)
	n.w.count.again += had.beyond(n.ought)
	n.open()
	n.before, n.lost = nil, end-n.end()
	if n.log.Incarnation() == life { // nobody had read what was lost, or within the second that the fence is late
		n.forgetful = true
		n.forked = n.forked || n.lostWhatIsKept()
		n.w.add(", and goes on with its life")
	}
}

// lostWhatIsKept reports whether the peer, a backup, or a call that may still arrive, has
// a version of this node's that the node has lost.
func (n *node) lostWhatIsKept() bool {
	for _, c := range n.w.line.sent {
		for _, e := range c.page.entries {
			if e.row != nil && e.row.versions[e.held.version].by == n.name && !n.ought.rows[e.row.uid].has(e.held.version) {
				return true
			}
		}
	}
	kept := []*state{n.peer().ought}
	for _, b := range n.backups {
		kept = append(kept, b.ought)
	}
	for _, h := range n.w.rows {
		for i, v := range h.versions {
			for _, s := range kept {
				if v.by == n.name && s.rows[h.uid].has(i) && !n.ought.rows[h.uid].has(i) {
					return true
				}
			}
		}
	}
	return false
}

// copyPeer puts a copy of the peer's whole folder in the place of a node's. It is
// refused until it has been adopted.
func (w *world) copyPeer() {
	n := w.pick()
	if n.newer != n.peer().newer {
		return // no version opens a file of a newer one
	}
	w.tell("%s gets a copy of %s's folder, and adopts it", n, n.peer())
	w.count.disasters++
	s := n.peer().snapshot()
	fence, err := os.ReadFile(n.peer().fence())
	w.must(err)
	n.close()
	n.put(s)
	w.must(os.WriteFile(n.fence(), fence, 0o600))
	n.dirty = n.dirty || n.peer().dirty
	w.must(n.disk.open())
	if _, err := sync.NewLog(ctx, n.db, sync.Options{Node: n.name, Origin: n.origin, Tables: n.tables(), Fence: n.fence()}); !errors.Is(err, sync.ErrAnotherNode) {
		w.fail("%s opens a copy of its peer's folder: %v", n, err)
	}
	w.must(sync.Adopt(ctx, n.db, n.fence(), n.name, n.origin))
	n.ought.aside = map[sync.UID]holding{}
	n.before = nil
	n.begin()
}

// loseTokens has a node forget which pages it gave out.
func (w *world) loseTokens() {
	n := w.pick()
	w.tell("%s loses its tokens", n)
	w.count.disasters++
	n.write(func(tx *sqlite.Tx) error { _, err := tx.Exec(`DELETE FROM sync_tokens`); return err })
}
