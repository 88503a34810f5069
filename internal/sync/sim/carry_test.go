package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"tandem/internal/sync"
)

// entry is what the simulator reads of a row or a fact on the wire.
type entry struct {
	Table     string   `json:"table"`
	UID       sync.UID `json:"uid"`
	UpdatedAt int64    `json:"updated_at"`
	UpdatedBy string   `json:"updated_by"`
	DeletedAt *int64   `json:"deleted_at"`
	Content   string   `json:"content"`
	TZ        string   `json:"tz"`
}

func (e entry) version() version {
	v := version{at: e.UpdatedAt, by: e.UpdatedBy, text: e.Content}
	if e.Table == "settings" {
		v.text = e.TZ
	}
	if e.DeletedAt != nil {
		v.deletedAt, v.text = *e.DeletedAt, ""
	}
	return v
}

// carries finds which version an entry is, and what the node that sends it knows.
func (n *node) carries(raw json.RawMessage) carried {
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		n.w.fail("%s sends what is no entry: %v: %s", n, err, raw)
	}
	if e.Table == sync.FactsTable {
		return carried{fact: e.UID}
	}
	h := n.w.byUID[e.UID]
	if h == nil {
		n.w.fail("%s sends a row that nobody made: %s", n, raw)
	}
	i, known := h.find(e.version())
	if !known {
		n.w.fail("%s sends a version of %s that nobody wrote: %s", n, h.name, raw)
	}
	held := n.ought.rows[e.UID]
	if held.version != i {
		n.w.fail("%s sends %v of %s where it ought to hold %v", n, h.versions[i], h.name, h.versions[held.version])
	}
	return carried{row: h, held: held}
}

// entries says what a page carries.
func (w *world) entries(list []carried) string {
	var out []string
	for _, c := range list {
		if c.row == nil {
			out = append(out, "fact")
		} else {
			out = append(out, c.row.name+" "+c.row.versions[c.held.version].String())
		}
	}
	if len(out) > 8 {
		out = slices.Insert(out[:4], 4, "…")
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// meets tells the model that the node has applied a page.
func (n *node) meets(p page) {
	if p.reset && p.to != "" && !n.w.line.counted[p.to] && p.to == n.cursor() {
		n.w.line.counted[p.to] = true
		n.w.count.resets++
	}
	for _, c := range p.entries {
		if c.row != nil {
			n.ought.meet(c.row, c.held, n.tie(c.row))
		} else {
			n.ought.facts[c.fact] = true
		}
	}
}

// cursor is how far the node has read its peer's log.
func (n *node) cursor() string {
	return value[string](n, `SELECT cursor FROM sync_cursors WHERE peer = ?`, n.peer().name)
}

// issued reports whether a cursor would be taken by the node's log as it is.
func (n *node) issued(cursor string) bool {
	parts := strings.Split(cursor, ".")
	return len(parts) == 3 && parts[0] == n.log.Incarnation() &&
		value[int](n, `SELECT count(*) FROM sync_tokens WHERE token = ?`, parts[2]) > 0
}
