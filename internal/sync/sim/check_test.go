package sim

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
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
	w.checkConflicts()
	for _, n := range w.nodes {
		n.checkCursor()
		n.checkQuarantine()
		n.checkOwn()
		n.checkKeys()
	}
	w.checkLetters()
	w.checkCounts()
	w.checkCanary()
}

// checkEqual is invariant 1: the tables are equal, but for what quarantine explains.
// A fact that is older than facts are kept, by the clock of either node, is on its way
// out or never came in.
func (w *world) checkEqual() {
	local, cloud := w.nodes[0].dump(), w.nodes[1].dump()
	from := max(w.nodes[0].factsFrom(), w.nodes[1].factsFrom())
	for _, n := range w.nodes {
		for _, uid := range all(n, sqlite.Value[sync.UID], `SELECT uid FROM facts WHERE at < ?`, from) {
			delete(local, uid)
			delete(cloud, uid)
		}
	}
	w.alike(local, cloud)
}

// checkUnaided is invariant 1 before the nodes have compared: the digest is for what
// somebody broke by hand, and must have nothing to repair. Facts may lack where a
// clock was so wrong that they seemed too old.
func (w *world) checkUnaided() {
	if w.nodes[0].forked || w.nodes[1].forked || w.compared {
		return
	}
	local, cloud := w.nodes[0].dump(), w.nodes[1].dump()
	if w.years {
		isFact := func(_ sync.UID, line string) bool { return strings.HasPrefix(line, "fact") }
		maps.DeleteFunc(local, isFact)
		maps.DeleteFunc(cloud, isFact)
	}
	w.alike(local, cloud)
}

func (w *world) alike(local, cloud map[sync.UID]string) {
	for _, n := range w.nodes {
		for uid := range n.quarantine() {
			delete(local, uid)
			delete(cloud, uid)
		}
	}
	for _, uid := range slices.SortedFunc(maps.Keys(local), byBytes) {
		if local[uid] != cloud[uid] {
			w.fail("invariant 1: the tables differ\nlocal: %q\ncloud: %q", local[uid], cloud[uid])
		}
		delete(cloud, uid)
	}
	for _, line := range cloud {
		w.fail("invariant 1: local has not %q", line)
	}
}

func byBytes(a, b sync.UID) int { return bytes.Compare(a[:], b[:]) }

// dump is every row and fact that replicates, as text, but for what is each node's own.
func (n *node) dump() map[sync.UID]string {
	out := map[sync.UID]string{}
	take := func(r sqlite.Row) (_ struct{}, err error) {
		var uid sync.UID
		var line string
		err = r.Scan(&uid, &line)
		out[uid] = line
		return struct{}{}, err
	}
	for _, t := range n.tables() {
		columns, priority := "created_at", `extra ->> '$.priority'`
		for _, c := range t.Columns {
			if c.Name == "priority" {
				priority = `priority`
			} else {
				columns += ` || ' ' || quote(` + c.Name + `)`
			}
		}
		all(n, take, `
			SELECT uid, printf('`+t.Name+` %d-%d %s %s %d/%s ', origin, id, hex(uid), owner, updated_at, updated_by) ||
				CASE WHEN deleted_at IS NULL THEN `+columns+` || ' ' || quote(`+priority+`) ELSE deleted_at || quote(alias_of) END
			FROM `+t.Name)
	}
	all(n, take, `
		SELECT uid, printf('fact %s %s %s %s %s %d %s', hex(uid), kind, subject, owner, node, at, body) FROM facts WHERE at >= ?`, n.factsFrom())
	return out
}

// checkNewest is invariants 2, 3 and 4, twice told: by the model, and by what was
// there when all was well again.
func (w *world) checkNewest() {
	for h, best := range w.best {
		for _, n := range w.nodes {
			if _, aside := n.quarantine()[h.uid]; aside || n.lacks(h) {
				continue
			}
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

// lacks reports whether the node has no such table, or the peer cannot send what it
// holds.
func (n *node) lacks(h *history) bool {
	q, ok := n.peer().quarantine()[h.uid]
	return !n.has(h.table) || ok && q.kind == sync.Unencodable
}

// checkCursor is invariant 7: all that stands before the place to which the peer has
// read this node's log, the peer has met.
func (n *node) checkCursor() {
	peer := n.peer()
	cursor := peer.cursor()
	if !n.issued(cursor) {
		return
	}
	own := n.quarantine()
	seq := strings.Split(cursor, ".")[1]
	for _, t := range n.tables() {
		for _, r := range all(n, scanRow, n.selectRow(t.Name)+` WHERE seq <= CAST(? AS INTEGER) AND alias_of IS NULL`, seq) {
			h := n.w.byUID[r.UID]
			i, _ := h.find(r.version())
			kept, aside := peer.ought.aside[r.UID] // of two versions quarantine keeps the newer one
			aside = aside && (kept.has(i) || h.versions[kept.version].over(h.versions[i]))
			if !peer.ought.rows[r.UID].has(i) && !aside && own[r.UID].kind != sync.Unencodable {
				n.w.fail("invariant 7: %s has read %s up to %s, and has not met %s, %v", peer, n, seq, h.name, r.version())
			}
		}
	}
}

// checkQuarantine holds each entry that is still in quarantine to its reason.
func (n *node) checkQuarantine() {
	for uid, q := range n.quarantine() {
		h := n.w.byUID[uid]
		n.w.met["left aside as "+q.kind]++
		if h == nil || q.table == sync.FactsTable {
			continue
		}
		bad := false
		for _, v := range h.versions {
			bad = bad || v.at == q.at && v.poison != ""
		}
		if _, there := n.peer().ought.rows[uid]; q.kind == sync.IDReuse && !there {
			continue // the node that would give it another key has lost it once more: this is its only copy
		}
		if !bad && n.has(h.table) {
			n.w.fail("invariant 11: %s keeps %s aside as %s", n, h.name, q.kind)
		}
	}
}

// checkCounts is invariants 8 and 12. What replication itself tells and moves is
// written, too.
func (w *world) checkCounts() {
	if max(w.count.resets[0], w.count.resets[1]) > w.count.disasters {
		w.fail("invariant 8: %d resets of the two logs after %d restores, wipes and lost token tables", w.count.resets, w.count.disasters)
	}
	written := w.count.written + w.count.again + 4*w.reused // a key that is settled moves rows at both nodes
	for _, n := range w.nodes {
		written += len(n.ought.conflicts)
	}
	if w.count.useful > 3*written {
		w.fail("invariant 12: %d entries sent, %d written", w.count.useful, written)
	}
}

// checkCanary is invariant 10.
func (w *world) checkCanary() {
	if strings.Contains(w.said.String(), canary) {
		w.fail("invariant 10: the peer secret is in the log")
	}
	status, err := json.Marshal([]any{w.nodes[0].client.Status(), w.nodes[1].server.Status()})
	if w.must(err); strings.Contains(string(status), canary) {
		w.fail("invariant 10: the peer secret is in the status: %s", status)
	}
	if w.seed%8 != 0 { // to read whole files takes a while
		return
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
