package sim

import (
	"os"
	"path/filepath"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

func (n *node) fence() string { return filepath.Join(n.dir, "fence.json") }

// backUp copies a node's database, for a restore in the time to come.
func (w *world) backUp() {
	n := w.pick()
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
func (w *world) restore() {
	n := w.pick()
	if len(n.backups) == 0 {
		return
	}
	i := w.rand.IntN(len(n.backups))
	how := oneOf(w, "by the verb", "by hand, fence and all", "without its fence")
	w.tell("%s is restored from its backup %d, %s", n, i+1, how)
	n.replace(n.backups[i], how)
}

// loseTail puts a node back to a moment ago: its disk had promised more than it kept.
func (w *world) loseTail() {
	n := w.pick()
	if n.before == nil {
		return
	}
	w.tell("%s loses what it wrote since %d", n, n.before.at%100_000)
	n.replace(n.before, "by hand, fence and all")
}

// wipe takes a node's database away, with or without its fence.
func (w *world) wipe() {
	n := w.pick()
	how := oneOf(w, "by hand, fence and all", "without its fence")
	w.tell("%s loses its database, %s", n, how)
	n.replace(nil, how)
}

// replace puts another database in the place of a node's, and opens it.
func (n *node) replace(s *snapshot, how string) {
	n.w.count.disasters++
	life := n.log.Incarnation()
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
	n.put(s)
	n.open()
	n.before = nil
	if n.log.Incarnation() == life {
		n.forgetful = true // nobody had read what was lost
		n.w.add(", and goes on with its life")
	}
}

// loseTokens has a node forget which pages it gave out.
func (w *world) loseTokens() {
	n := w.pick()
	w.tell("%s loses its tokens", n)
	w.count.disasters++
	n.write(func(tx *sqlite.Tx) error { _, err := tx.Exec(`DELETE FROM sync_tokens`); return err })
}
