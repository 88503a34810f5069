package link

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"tandem/internal/sync"
	"tandem/internal/sync/letters"
)

// What the peer says of itself is shown to people, and kept. Whoever speaks for it may
// say anything, of any length.
const (
	longName   = 200     // bytes of what names something
	longReason = 500     // of a sentence
	longCursor = 4 << 10 // of a place in a log
	manyTables = 1000
	mostRows   = 1 << 53
)

// bound cuts a greeting to what a node can have to say.
func (h *Hello) bound() {
	for _, text := range []*string{&h.Node, &h.Peer, &h.Incarnation, &h.Version, &h.Scheduler, &h.SecretAt} {
		*text = cut(*text, longName)
	}
	h.Now = within(h.Now, -sync.LastTime, sync.LastTime)
	h.Process.bound()
	if h.Twin != nil {
		h.Twin.bound()
	}
	h.Aside = slices.Clone(h.Aside[:min(len(h.Aside), toldOf)])
	for i := range h.Aside {
		boundAside(&h.Aside[i])
	}
	h.Parked = slices.Clone(h.Parked[:min(len(h.Parked), toldOf)])
	for i := range h.Parked {
		boundParked(&h.Parked[i])
	}
	if c := h.Compared; c != nil {
		c.At, c.Line = within(c.At, 0, sync.LastTime), cut(c.Line, longReason)
		for _, n := range []*int{&c.Differing, &c.Repaired, &c.Explained, &c.Lasting} {
			*n = within(*n, 0, mostRows)
		}
	}
	if h.Pending != nil && (*h.Pending < 0 || *h.Pending > mostRows) {
		h.Pending = nil // nobody knows
	}
	if h.Read != nil && len(*h.Read) > longCursor {
		h.Read = nil
	}
	if len(h.Highest) > manyTables {
		h.Highest = nil
	}
	maps.DeleteFunc(h.Highest, func(table string, _ [2]int64) bool { return len(table) > longName })
}

func (p *Process) bound() {
	p.ID, p.Host, p.Folder, p.At = cut(p.ID, longName), cut(p.Host, longName), cut(p.Folder, longReason), within(p.At, 0, sync.LastTime)
}

func boundAside(q *sync.Quarantined) {
	for _, text := range []*string{&q.Table, &q.Kind} {
		*text = cut(*text, longName)
	}
	q.Reason = cut(q.Reason, longReason)
	q.UpdatedAt, q.At = within(q.UpdatedAt, 0, sync.LastTime), within(q.At, 0, sync.LastTime)
}

func boundParked(p *letters.Parked) {
	for _, text := range []*string{&p.Key, &p.Owner, &p.Kind, &p.Code} {
		*text = cut(*text, longName)
	}
	p.Detail, p.At = cut(p.Detail, longReason), within(p.At, 0, sync.LastTime)
}

func within[N int | int64](n, least, most N) N { return max(least, min(n, most)) }

// cut returns at most so many bytes of a text in one line, whole letters, and a mark
// where something is missing.
func cut(s string, most int) string {
	const mark = "…"
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-len(mark)], "") + mark
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) { // a terminal would obey it
			return ' '
		}
		return r
	}, s)
}

// apart is how much later one time is than another, both in Unix ms and neither beyond
// the calendar; a duration has less room than that.
func apart(one, other int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(within(one-other, -most, most)) * time.Millisecond
}
