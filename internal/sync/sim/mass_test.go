package sim

import (
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// manyRows is above what the breaker lets through without a question.
const manyRows = 60

// addMany makes very many rows at once.
func (w *world) addMany() {
	if w.mass > 1 {
		return
	}
	w.mass++
	n := w.pick()
	n.write(func(tx *sqlite.Tx) error {
		for range manyRows {
			h, err := n.log.AddTx(tx, "todos", "ann")
			if err != nil {
				return err
			}
			text := w.word()
			if err := insert(tx, "todos", h, text); err != nil {
				return err
			}
			r := w.row("todos", h.UID)
			n.gave(r, h.Ref)
			n.wrote(r, row{Head: h, text: text})
		}
		return nil
	})
	w.tell("%s adds %d rows", n, manyRows)
}

// deleteMany deletes most of what a node has, as a script that went wrong does.
func (w *world) deleteMany() {
	n := w.pick()
	type deletion struct {
		h *history
		r row
	}
	var done []deletion
	n.write(func(tx *sqlite.Tx) error {
		rows, err := sqlite.All(tx, scanRow, n.selectRow("todos")+` WHERE deleted_at IS NULL`)
		if err != nil {
			return err
		}
		for _, r := range rows {
			h := w.byUID[r.UID]
			if len(h.versions) >= maxVersions || w.chance(0.1) {
				continue
			}
			n.log.EditTx(tx, &r.Head)
			at := tx.Millis()
			r.DeletedAt = &at
			if err := update(tx, "todos", r.Head, ""); err != nil {
				return err
			}
			done = append(done, deletion{h, r})
		}
		return nil
	})
	for _, d := range done {
		n.wrote(d.h, d.r)
	}
	w.tell("%s deletes %d rows", n, len(done))
}

// bringBack makes a version that lost the newest one.
func (w *world) bringBack() {
	n := w.pick()
	list, err := n.log.Conflicts(ctx, "ann", nil, 50)
	w.must(err)
	if len(list) == 0 {
		return
	}
	c := oneOf(w, list...)
	var table string
	var ref sync.Ref
	err = n.db.Write(ctx, func(tx *sqlite.Tx) (err error) {
		table, ref, err = n.log.BringBackTx(tx, "ann", c.UID)
		return err
	})
	if err != nil && c.Stands.UpdatedBy == "" {
		w.tell("%s cannot bring back a version of a row that is not here", n)
		return
	}
	w.must(err)
	found := all(n, scanRow, n.selectRow(table)+` WHERE origin = ? AND id = ?`, ref.Origin, ref.ID)
	if len(found) != 1 {
		w.fail("%s brought back %s %s, which is not there", n, table, ref)
	}
	h := w.byUID[found[0].UID]
	if i, known := h.find(found[0].version()); known && i == n.ought.rows[h.uid].version {
		w.tell("%s brings %s back to what it is", n, h.name)
		return
	}
	n.wrote(h, found[0])
	w.tell("%s brings back what %s was: %v", n, h.name, found[0].version())
}

// checkBreaker fails where a page deleted so many rows that somebody ought to have
// been asked.
func (n *node) checkBreaker(p page, aside map[sync.UID]setAside) {
	live, doomed := 0, 0
	for uid, held := range n.ought.rows {
		if n.w.byUID[uid].versions[held.version].deletedAt == 0 {
			live++
		}
	}
	for _, c := range p.entries {
		if c.row == nil {
			continue
		}
		held, ok := n.ought.rows[c.row.uid]
		v := c.row.versions[c.held.version]
		if _, waits := aside[c.row.uid]; !waits && ok && v.deletedAt != 0 && c.row.versions[held.version].deletedAt == 0 && v.over(c.row.versions[held.version]) {
			doomed++
		}
	}
	if doomed > max(50, live/4) {
		n.w.fail("%s lets a page delete %d of its %d rows and asks nobody", n, doomed, live)
	}
}

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

// checkKeys follows each key by which a row was known here.
func (n *node) checkKeys() {
	for key, uid := range n.ought.keys {
		h := n.w.byUID[uid]
		if _, ok := n.ought.rows[uid]; !ok || n.w.reused > 0 || !n.has(h.table) {
			continue
		}
		var at sync.Ref
		n.write(func(tx *sqlite.Tx) (err error) {
			var moved bool
			if at, moved, err = n.log.AliasTx(tx, key.table, key.ref); err == nil && !moved {
				at = key.ref
			}
			return err
		})
		if r, ok := n.read(h); !ok || r.Ref != at {
			n.w.fail("the key %s of %s leads to %s at %s, where it is %s", key.ref, h.name, at, n, r.Ref)
		}
	}
}
