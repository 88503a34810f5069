package sim

import (
	"slices"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// gave notes which row a key was given to. While either node has a row, a key that it
// knows it by is not given out again, but by a node that nothing tells what it gave out in
// an earlier life.
func (n *node) gave(h *history, ref sync.Ref) {
	key := given{h.table, ref}
	if all := n.w.keys[key]; len(all) > 0 {
		before := all[len(all)-1]
		if before != h && n.w.somebodyHas(before) {
			if !n.forgetful && n.w.knownBy(before, key) {
				n.w.fail("%s gives out %s %s, which is the key of %s, to %s", n, h.table, ref, before.name, h.name)
			}
			n.w.reused++
			n.w.met["key given out twice"]++
		}
	}
	n.w.keys[key] = append(n.w.keys[key], h)
	n.ought.keys[key] = h.uid
}

// gaveBoth reports whether a key was given to both of two rows. Nobody may have had the
// first one when the second got it, and yet it may come back: with a backup, a call from
// before, or the table that an old version did not know.
func (w *world) gaveBoth(key given, a, b *history) bool {
	return slices.Contains(w.keys[key], a) && slices.Contains(w.keys[key], b)
}

// knownBy reports whether either node has ever known the row that it has by a key. One
// that was lost before anybody had read it, with all that tells of it, is known nowhere,
// though the same request made the row once more under another.
func (w *world) knownBy(h *history, key given) bool {
	for _, n := range w.nodes {
		if _, ok := n.ought.rows[h.uid]; ok && n.ought.keys[key] == h.uid {
			return true
		}
	}
	return false
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
