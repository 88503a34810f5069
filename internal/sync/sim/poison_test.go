package sim

import (
	"strings"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// poisons are what no node can take, put into a file past the API: by a bug, an
// import, or somebody's hand.
var poisons = []string{"no UTF-8", "NUL", "too large", "no JSON"}

// poison writes a version that cannot cross.
func (w *world) poison() {
	n, kind := w.pick(), oneOf(w, poisons...)
	if kind == "no JSON" {
		h := n.some(func(h *history, v version) bool { return h.table == "scheduled_messages" && v.deletedAt == 0 })
		if h != nil {
			n.spoil(h, kind, w.word(), `, content = ?, args = '{"a":'`)
		}
		return
	}
	h := n.some(func(h *history, v version) bool { return h.table != "settings" && v.deletedAt == 0 })
	if h == nil {
		return
	}
	text := w.word()
	switch kind {
	case "no UTF-8":
		n.spoil(h, kind, text+"\xff", `, content = ?`)
	case "NUL":
		n.spoil(h, kind, text+"\x00b", `, content = ?`)
	case "too large":
		n.spoil(h, kind, text+strings.Repeat("x", 300<<10), `, content = ?`)
	}
}

// spoil writes a new version of a row with what set says.
func (n *node) spoil(h *history, kind, text, set string) {
	r, _ := n.read(h)
	before := r.version()
	n.write(func(tx *sqlite.Tx) error {
		r, _, _ = sqlite.One(tx, scanRow, n.selectRow(h.table)+` WHERE uid = ?`, h.uid[:])
		n.log.EditTx(tx, &r.Head)
		return update(tx, h.table, r.Head, set, text)
	})
	r.text = text
	v := r.version()
	v.poison, v.spoilt = kind, kind == "no JSON" || h.versions[n.ought.rows[h.uid].version].spoilt
	n.ought.write(h, v)
	n.w.count.written++
	n.w.tell("%s has %s poisoned: %v over %v", n, h.name, v, before)
}

// cure has a person write a sound version over each poisoned one that a node holds,
// but for those that are left to be explained, and returns how many.
func (w *world) cure() (cured int) {
	for _, h := range w.rows {
		for _, n := range w.nodes {
			held, ok := n.ought.rows[h.uid]
			if ok && h.versions[held.version].poison != "" && w.chance(0.6) && len(h.versions) < maxVersions+4 {
				n.cure(h)
				cured++
			}
		}
	}
	return cured
}

func (n *node) cure(h *history) {
	r, _ := n.read(h)
	text := n.w.word()
	n.write(func(tx *sqlite.Tx) error {
		n.log.EditTx(tx, &r.Head)
		if h.table == "scheduled_messages" {
			return update(tx, h.table, r.Head, `, content = ?, args = NULL`, text)
		}
		return update(tx, h.table, r.Head, `, content = ?`, text)
	})
	r.text = text
	n.wrote(h, r)
	n.w.tell("%s has %s mended: %v", n, h.name, r.version())
}

// setAside is an entry in a node's quarantine.
type setAside struct {
	table, kind string
	uid         sync.UID
	at          int64
}

func (n *node) quarantine() map[sync.UID]setAside {
	out := map[sync.UID]setAside{}
	for _, q := range all(n, func(r sqlite.Row) (q setAside, err error) {
		return q, r.Scan(&q.table, &q.uid, &q.kind, &q.at)
	}, `SELECT tbl, uid, kind, updated_at FROM sync_quarantine`) {
		out[q.uid] = q
	}
	return out
}
