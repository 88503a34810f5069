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
	n.wrote(h, found[0])
	w.tell("%s brings back what %s was: %v", n, h.name, found[0].version())
}
