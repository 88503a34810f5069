package sim

import "tandem/internal/sqlite"

// backUp copies a node's database, for a restore in the time to come.
func (w *world) backUp() {
	n := w.pick()
	n.backups = append(n.backups, n.snapshot())
	w.tell("%s is backed up (%d)", n, len(n.backups))
}

// restore puts a database of an earlier moment in the place of a node's.
func (w *world) restore() {
	n := w.pick()
	if len(n.backups) == 0 {
		return
	}
	i := w.rand.IntN(len(n.backups))
	w.tell("%s is restored from its backup %d", n, i+1)
	w.count.disasters++
	n.close()
	n.put(n.backups[i])
	n.open()
}

// wipe takes a node's database away.
func (w *world) wipe() {
	n := w.pick()
	w.tell("%s loses its disk", n)
	w.count.disasters++
	n.close()
	n.put(nil)
	n.open()
}

// loseTokens has a node forget which pages it gave out.
func (w *world) loseTokens() {
	n := w.pick()
	w.tell("%s loses its tokens", n)
	w.count.disasters++
	n.write(func(tx *sqlite.Tx) error { _, err := tx.Exec(`DELETE FROM sync_tokens`); return err })
}
