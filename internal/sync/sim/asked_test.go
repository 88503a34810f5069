package sim

import (
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// ask makes a row under a request's key, which may be made at both nodes and more
// than once.
func (w *world) ask() {
	n, key, text := w.pick(), oneOf(w, "k1", "k2"), w.word()
	var h sync.Head
	var made sync.Ref
	var again bool
	by := sync.Asked{Route: "POST /v1/todos", Key: key}
	n.write(func(tx *sqlite.Tx) (err error) {
		if made, again, err = n.log.MadeTx(tx, "todos", "ann", by); err != nil || again {
			return err
		}
		if h, err = n.log.AddAskedTx(tx, "todos", "ann", by); err != nil {
			return err
		}
		return insert(tx, "todos", h, text)
	})
	if again {
		found := all(n, scanRow, n.selectRow("todos")+` WHERE origin = ? AND id = ?`, made.Origin, made.ID)
		if len(found) != 1 {
			w.fail("%s answers with %s, which is not there", n, made)
		}
		r := w.byUID[found[0].UID]
		w.tell("%s is asked under %s again, and answers with %s, %s", n, key, r.name, made)
		return
	}
	r := w.row("todos", h.UID)
	n.gave(r, h.Ref)
	n.wrote(r, row{Head: h, text: text})
	w.tell("%s is asked under %s and makes %s as todos %s: %q", n, key, r.name, h.Ref, text)
}

// somebodyHas reports whether a row is on either node.
func (w *world) somebodyHas(h *history) bool {
	_, local := w.nodes[0].ought.rows[h.uid]
	_, cloud := w.nodes[1].ought.rows[h.uid]
	return local || cloud
}

// given is a key that a node gave out.
type given struct {
	table string
	ref   sync.Ref
}
