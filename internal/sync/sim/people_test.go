package sim

import (
	"fmt"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// read returns the row of a history as the node has it.
func (n *node) read(h *history) (row, bool) {
	r, ok, err := sqlite.ReadOne(ctx, n.db, scanRow, n.selectRow(h.table)+` WHERE uid = ?`, h.uid[:])
	n.w.must(err)
	return r, ok
}

// some is a row that the node holds and that may be written once more.
func (n *node) some(ok func(*history, version) bool) *history {
	var list []*history
	for _, h := range n.w.rows {
		if held, there := n.ought.rows[h.uid]; there && len(h.versions) < maxVersions && ok(h, h.versions[held.version]) {
			list = append(list, h)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return oneOf(n.w, list...)
}

func whatever(*history, version) bool { return true }
func live(_ *history, v version) bool { return v.deletedAt == 0 }

// insert writes a new row of a head that was given out.
func insert(tx *sqlite.Tx, table string, h sync.Head, text any) error {
	_, err := tx.Exec(`INSERT INTO `+table+` (`+sync.HeadColumns+`, `+textOf[table]+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(h.Args(), text)...)
	return err
}

// update writes a new version of a row, as its domain does.
func update(tx *sqlite.Tx, table string, h sync.Head, set string, args ...any) error {
	all := append([]any{h.UpdatedAt, h.UpdatedBy, h.DeletedAt, h.Seq, string(h.Seen)}, args...)
	changed, err := tx.Exec(`UPDATE `+table+` SET updated_at = ?, updated_by = ?, deleted_at = ?, seq = ?, seen = ?`+set+`
		WHERE origin = ? AND id = ?`, append(all, h.Origin, h.ID)...)
	if err == nil && changed != 1 {
		return fmt.Errorf("%s %s: %d rows changed", table, h.Ref, changed)
	}
	return err
}

func (w *world) addRow() { w.pick().addRow() }

func (n *node) addRow() {
	w := n.w
	table, text := oneOf(w, "todos", "todos", "scheduled_messages"), w.word()
	if n.newer && w.chance(0.3) {
		table = "labels"
	}
	var h sync.Head
	n.write(func(tx *sqlite.Tx) (err error) {
		if h, err = n.log.AddTx(tx, table, "ann"); err != nil {
			return err
		}
		return insert(tx, table, h, text)
	})
	r := w.row(table, h.UID)
	n.gave(r, h.Ref)
	n.wrote(r, row{Head: h, text: text})
	w.tell("%s adds %s as %s %s: %q", n, r.name, table, h.Ref, text)
}

// wrote tells the model of a version that the node has just written.
func (n *node) wrote(h *history, r row) {
	n.ought.write(h, r.version())
	n.w.count.written++
}

// edit writes a new version of a row, live or deleted, with new words or as a delete.
func (n *node) edit(h *history, text string, remove bool) {
	w := n.w
	before, ok := n.read(h)
	i, known := h.find(before.version())
	if want := n.ought.rows[h.uid]; !ok || !known || i != want.version {
		w.fail("%s has %v of %s where it ought to have %v", n, before.version(), h.name, h.versions[want.version])
	}
	r, remake := before, w.chance(0.5)
	n.write(func(tx *sqlite.Tx) error {
		r = before
		n.log.EditTx(tx, &r.Head)
		if r.DeletedAt = nil; remove {
			at := tx.Millis()
			r.DeletedAt = &at
			return update(tx, h.table, r.Head, "")
		}
		r.text = text
		if n.newer && h.table == "todos" && remake {
			r.priority = "p" + text
			return update(tx, h.table, r.Head, `, content = ?, priority = ?`, text, r.priority)
		}
		return update(tx, h.table, r.Head, `, `+textOf[h.table]+` = ?`, text)
	})
	v := r.version()
	switch old := h.versions[i]; { // what nobody mends stays in the row
	case remove:
		v.poison, v.spoilt = old.poison, old.spoilt
	case old.spoilt:
		v.poison, v.spoilt = "no JSON", true
	}
	n.ought.write(h, v)
	w.count.written++
	w.tell("%s writes %s: %v over %v", n, h.name, v, before.version())
}

func (w *world) editRow() {
	n := w.pick()
	if h := n.some(whatever); h != nil {
		n.edit(h, w.word(), false)
	}
}

// quarrel has people at both nodes write one row over and over. A node may be backed up
// between two of its versions, and put back there once the nodes have talked.
func (w *world) quarrel() {
	h := w.nodes[0].some(func(h *history, _ version) bool { _, ok := w.nodes[1].ought.rows[h.uid]; return ok })
	if h == nil {
		return
	}
	var kept *node
	for range 2 + w.rand.IntN(4) {
		n := w.pick()
		if len(h.versions) < maxVersions {
			n.edit(h, w.word(), w.chance(0.2))
		}
		if w.chance(0.3) {
			n.backUp()
			kept = n
		}
		w.now += int64(w.rand.IntN(40))
	}
	if kept == nil || w.chance(0.5) {
		return
	}
	w.round()
	kept.restoreFrom(len(kept.backups) - 1)
	kept.goesOn()
}

func (w *world) deleteRow() {
	n := w.pick()
	if h := n.some(live); h != nil {
		n.edit(h, "", true)
	}
}

// setSettings writes a row whose key and uid follow from its owner.
func (w *world) setSettings() {
	n, owner := w.pick(), oneOf(w, "ann", "bob")
	key, uid := settingsOf(owner)
	if h := w.byUID[uid]; h != nil {
		if len(h.versions) >= maxVersions {
			return
		}
		if _, ok := n.ought.rows[uid]; ok {
			n.edit(h, w.word(), false)
			return
		}
	}
	var h sync.Head
	text := w.word()
	n.write(func(tx *sqlite.Tx) error {
		h = n.log.AddAtTx(tx, owner, key, uid)
		return insert(tx, "settings", h, text)
	})
	r := w.row("settings", uid)
	n.wrote(r, row{Head: h, text: text})
	w.tell("%s makes the settings of %s, %s: %q", n, owner, r.name, text)
}

// stepClock sets a clock forward or back.
func (w *world) stepClock() {
	const minute, year = 60_000, 365 * 86_400_000
	n := w.pick()
	by := oneOf[int64](w, 1, -1, 400, -400, 5*minute, -5*minute, year, -year)
	n.clock += by
	w.years = w.years || by == year || by == -year
	w.tell("%s's clock steps by %d ms, and is %d ms off", n, by, n.clock)
}

// wait lets time pass on both nodes.
func (w *world) wait() {
	by := oneOf[int64](w, 1_000, 20_000, 3_700_000, 86_400_000)
	w.now += by
	w.tell("%d ms go by", by)
}
