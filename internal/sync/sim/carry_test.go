package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"tandem/internal/sync"
)

// entry is what the simulator reads of a row or a fact on the wire.
type entry struct {
	Table string   `json:"table"`
	UID   sync.UID `json:"uid"`

	Origin    int64     `json:"origin"`
	ID        int64     `json:"id"`
	UpdatedAt int64     `json:"updated_at"`
	UpdatedBy string    `json:"updated_by"`
	DeletedAt *int64    `json:"deleted_at"`
	AliasOf   *sync.UID `json:"alias_of"`
	Content   string    `json:"content"`
	TZ        string    `json:"tz"`

	Kind string `json:"kind"`
	At   int64  `json:"at"`
	Body lost   `json:"body"`
}

// lost is what a conflict says of the version that lost.
type lost struct {
	Lost *struct {
		UID       sync.UID `json:"uid"`
		UpdatedAt int64    `json:"updated_at"`
		UpdatedBy string   `json:"updated_by"`
	} `json:"lost"`
}

func (l lost) loser() *loser {
	if l.Lost == nil {
		return nil
	}
	return &loser{l.Lost.UID, l.Lost.UpdatedAt, l.Lost.UpdatedBy}
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
	switch {
	case e.Table == sync.FactsTable:
		return carried{fact: e.UID, at: e.At, conflict: e.Body.loser()}
	case e.AliasOf != nil:
		n.w.met["alias"]++
		return carried{}
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
	return carried{row: h, ref: sync.Ref{Origin: e.Origin, ID: e.ID}, held: held}
}

// entries says what a page carries.
func (w *world) entries(list []carried) string {
	var out []string
	for _, c := range list {
		switch {
		case c.row != nil:
			out = append(out, c.row.name+" "+c.row.versions[c.held.version].String())
		case c.conflict != nil:
			out = append(out, "conflict "+w.byUID[c.conflict.uid].name)
		case c.at != 0:
			out = append(out, "fact")
		default:
			out = append(out, "alias")
		}
	}
	if len(out) > 8 {
		out = append(out[:4:4], "…")
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// day is a UTC day in ms.
const day = 86_400_000

// factsFrom is since when a node keeps facts.
func (n *node) factsFrom() int64 { return (n.now()/day - 90) * day }

// meets tells the model that the node has applied a page.
func (n *node) meets(p page) {
	if p.reset && p.to != "" && !n.w.line.counted[p.to] && p.to == n.cursor() {
		n.w.line.counted[p.to] = true
		n.w.count.resets[1-n.origin]++
		n.w.met["reset"]++
	}
	aside := n.quarantine()
	n.checkBreaker(p, aside)
	for _, c := range p.entries {
		switch {
		case c.row == nil && c.at >= n.factsFrom():
			n.ought.facts[c.fact] = true
			if c.conflict != nil {
				n.w.met["conflict"]++
				n.ought.conflicts[*c.conflict] = true
			}
		case c.row != nil:
			n.meetsRow(c, aside)
		}
	}
	n.settle(aside)
}

// meetsRow tells the model of one row that came: it was taken, or set aside.
func (n *node) meetsRow(c carried, aside map[sync.UID]setAside) {
	v := c.row.versions[c.held.version]
	q, ok := aside[c.row.uid]
	switch {
	case !ok || q.kind == sync.Unencodable:
		n.ought.meet(c.row, c.held, n.tie(c.row))
		n.ought.keys[given{c.row.table, c.ref}] = c.row.uid
	case q.at == v.at:
		n.justify(q, c)
		n.ought.aside[c.row.uid] = c.held
	case v.poison == "" && n.has(c.row.table): // what is aside is another version of it
		n.ought.meet(c.row, c.held, n.tie(c.row))
	}
}

// has reports whether the node's version knows a table.
func (n *node) has(table string) bool {
	return slices.ContainsFunc(n.tables(), func(t *sync.Table) bool { return t.Name == table })
}

// settle has the model meet what has left quarantine, unless a newer version has
// taken its place.
func (n *node) settle(aside map[sync.UID]setAside) {
	for _, h := range n.w.rows {
		held, was := n.ought.aside[h.uid]
		if !was {
			continue
		}
		if q, still := aside[h.uid]; still && q.at == h.versions[held.version].at {
			continue
		}
		delete(n.ought.aside, h.uid)
		mine, ok := n.ought.rows[h.uid]
		if !ok || !h.versions[mine.version].over(h.versions[held.version]) || mine.has(held.version) {
			n.ought.meet(h, held, n.tie(h))
		}
	}
}

// justify fails unless an entry is in quarantine for a reason that holds: a good row
// arrives whatever else is in the page (invariant 11).
func (n *node) justify(q setAside, c carried) {
	v, why := c.row.versions[c.held.version], false
	n.w.met["aside as "+q.kind]++
	switch q.kind {
	case sync.Malformed, sync.Refused:
		why = v.poison != "" || !n.has(c.row.table)
	case sync.IDReuse:
		holder := all(n, scanRow, n.selectRow(c.row.table)+` WHERE origin = ? AND id = ? AND uid <> ?`, c.ref.Origin, c.ref.ID, c.row.uid[:])
		why = len(holder) > 0 && (n.w.reused > 0 || n.w.gaveBoth(given{c.row.table, c.ref}, n.w.byUID[holder[0].UID], c.row))
	case sync.HeldDelete:
		why = v.deletedAt != 0 && n.w.mass > 0
	}
	if !why {
		n.w.fail("invariant 11: %s sets %s, %v, aside as %s", n, c.row.name, v, q.kind)
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
