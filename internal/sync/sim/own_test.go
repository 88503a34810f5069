package sim

import "tandem/internal/sqlite"

// setOwn writes a column that is the node's own.
func (w *world) setOwn() {
	n := w.pick()
	h := n.some(func(h *history, _ version) bool { return h.table == "scheduled_messages" })
	if h == nil {
		return
	}
	next := n.now() + 1
	n.write(func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`UPDATE scheduled_messages SET next_fire_at = ? WHERE uid = ?`, next, h.uid[:])
		return err
	})
	n.ought.own[h.uid] = next
	w.tell("%s notes for itself when %s rings", n, h.name)
}

// checkOwn holds the columns that do not replicate to what the node wrote there.
func (n *node) checkOwn() {
	for uid, want := range n.ought.own {
		got := value[int64](n, `SELECT coalesce(next_fire_at, 0) FROM scheduled_messages WHERE uid = ?`, uid[:])
		if got != want {
			n.w.fail("%s has lost what it noted for itself of %s", n, n.w.byUID[uid].name)
		}
	}
}
