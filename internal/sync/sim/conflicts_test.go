package sim

import (
	"encoding/json"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

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
	if err != nil && (c.Stands.UpdatedBy == "" || w.poisoned(c)) {
		w.tell("%s cannot bring back a version of a row that is not here, or that cannot be sent", n)
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

// poisoned reports whether the version that lost is one that no other node can take.
func (w *world) poisoned(c sync.Conflict) bool {
	for _, h := range w.rows {
		for _, v := range h.versions {
			if v.poison != "" && v.at == c.Lost.UpdatedAt && v.by == c.Lost.UpdatedBy {
				return true
			}
		}
	}
	return false
}

// checkConflicts is invariant 6: each version that lost to one which had not seen it
// is in conflicts, exactly once.
func (w *world) checkConflicts() {
	told := map[loser]sync.UID{}
	for _, n := range w.nodes {
		for _, f := range all(n, scanConflict, `SELECT uid, body FROM facts WHERE kind = 'conflict'`) {
			if f.loser == nil {
				w.fail("invariant 6: %s tells a conflict of nothing", n)
			}
			if other, twice := told[*f.loser]; twice && other != f.uid {
				w.fail("invariant 6: %s is in conflicts twice", w.lost(*f.loser))
			}
			told[*f.loser] = f.uid
			if !w.nodes[0].ought.conflicts[*f.loser] && !w.nodes[1].ought.conflicts[*f.loser] {
				w.fail("invariant 6: %s is in conflicts of %s, and lost to nothing that had not seen it", w.lost(*f.loser), n)
			}
		}
	}
	for _, n := range w.nodes {
		for l := range n.ought.conflicts {
			if _, ok := told[l]; !ok && !w.expired[l] && !w.nodes[0].forked && !w.nodes[1].forked {
				w.fail("invariant 6: %s lost at %s and is not in conflicts", w.lost(l), n)
			}
		}
	}
}

func (w *world) lost(l loser) string {
	h := w.byUID[l.uid]
	for _, v := range h.versions {
		if v.at == l.at && v.by == l.by {
			return h.name + ", " + v.String()
		}
	}
	return h.name
}

type conflictFact struct {
	uid   sync.UID
	loser *loser
}

func scanConflict(r sqlite.Row) (f conflictFact, err error) {
	var body string
	if err = r.Scan(&f.uid, &body); err != nil {
		return f, err
	}
	var l lost
	err = json.Unmarshal([]byte(body), &l)
	f.loser = l.loser()
	return f, err
}
