package sim

import (
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// manyRows has very many rows come, and later go.
func (w *world) manyRows() {
	if w.mass == 0 {
		w.addMany()
		return
	}
	w.deleteMany()
}

// many is above what the breaker lets through without a question.
const many = 60

// addMany makes very many rows at once.
func (w *world) addMany() {
	w.mass++
	n := w.pick()
	n.write(func(tx *sqlite.Tx) error {
		for range many {
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
	w.tell("%s adds %d rows", n, many)
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
