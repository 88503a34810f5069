package sim

import (
	"bytes"
	"os"
	"slices"
	"strings"

	"tandem/internal/sqlite"
)

// check holds the world to the invariants, by their numbers, once it is healed and
// at rest.
func (w *world) check() {
	w.compare()
	w.checkEqual()
	w.checkNewest()
	if moved, err := w.rounds(); moved != 0 || err != nil {
		w.fail("invariant 5: a quiet round moves %d entries: %v", moved, err)
	}
	for _, n := range w.nodes {
		n.checkCursor()
	}
	if w.count.resets > w.count.disasters {
		w.fail("invariant 8: %d resets after %d restores, wipes and lost token tables", w.count.resets, w.count.disasters)
	}
	if w.count.useful > 3*w.count.written {
		w.fail("invariant 12: %d entries sent, %d written", w.count.useful, w.count.written)
	}
	w.checkCanary()
}

// checkEqual is invariant 1.
func (w *world) checkEqual() {
	local, cloud := w.nodes[0].tables(), w.nodes[1].tables()
	for i := range max(len(local), len(cloud)) {
		if i >= len(local) || i >= len(cloud) || local[i] != cloud[i] {
			w.fail("invariant 1: the tables differ\n%s\n\n%s", strings.Join(local, "\n"), strings.Join(cloud, "\n"))
		}
	}
}

// tables is every row that replicates, as text, but for what is each node's own.
func (n *node) tables() (out []string) {
	for _, t := range tables() {
		columns := "extra"
		for _, c := range t.Columns {
			columns += ", " + c.Name
		}
		out = append(out, all(n, sqlite.Value[string], `
			SELECT printf('`+t.Name+` %d-%d %s %s %d/%s ', origin, id, hex(uid), owner, updated_at, updated_by) ||
				CASE WHEN deleted_at IS NULL THEN json_array(created_at, `+columns+`) ELSE deleted_at END
			FROM `+t.Name)...)
	}
	out = append(out, all(n, sqlite.Value[string], `SELECT 'fact ' || hex(uid) || ' ' || kind || ' ' || subject || ' ' || owner || ' ' || node || ' ' || at || ' ' || body FROM facts`)...)
	slices.Sort(out)
	return out
}

// checkNewest is invariants 2, 3 and 4, twice told: by the model, and by what was
// there when all was well again.
func (w *world) checkNewest() {
	for h, best := range w.best {
		for _, n := range w.nodes {
			r, ok := n.read(h)
			if !ok {
				w.fail("invariant 3: %s has no %s", n, h.name)
			}
			if h.versions[best].over(r.version()) {
				w.fail("invariant 2: %s holds %v of %s, older than %v", n, r.version(), h.name, h.versions[best])
			}
		}
	}
}

// checkCursor is invariant 7: all that stands before the place to which the peer has
// read this node's log, the peer has met.
func (n *node) checkCursor() {
	peer := n.peer()
	cursor := peer.cursor()
	if !n.issued(cursor) {
		return
	}
	seq := strings.Split(cursor, ".")[1]
	for _, t := range tables() {
		for _, r := range all(n, scanRow, selectRow(t.Name)+` WHERE seq <= CAST(? AS INTEGER)`, seq) {
			h := n.w.byUID[r.UID]
			i, _ := h.find(r.version())
			if !peer.ought.rows[r.UID].has(i) && !peer.ought.aside[r.UID].has(i) {
				n.w.fail("invariant 7: %s has read %s up to %s, and has not met %s, %v", peer, n, seq, h.name, r.version())
			}
		}
	}
}

// checkCanary is invariant 10.
func (w *world) checkCanary() {
	if strings.Contains(w.said.String(), canary) {
		w.fail("invariant 10: the peer secret is in the log")
	}
	for _, n := range w.nodes {
		for _, suffix := range copied {
			b, err := os.ReadFile(n.path() + suffix)
			if err == nil && bytes.Contains(b, []byte(canary)) {
				w.fail("invariant 10: the peer secret is in %s's database", n)
			}
		}
	}
}
