package sim

import (
	"fmt"
	"maps"
	"math/bits"

	"tandem/internal/sync"
)

// version is one version of a row, by whichever life of a node it was written.
type version struct {
	at        int64 // with by: the stamp
	by        string
	deletedAt int64  // 0: it is no delete
	text      string // the content; no two versions that are no deletes share one
	priority  string // a field that only the newer version knows
	poison    string // why no other node can take it; "" for a sound one
	spoilt    bool   // its args are no JSON, whatever else it says
}

func (v version) String() string {
	switch {
	case v.deletedAt != 0:
		return fmt.Sprintf("delete@%d/%s", v.at, v.by)
	case v.poison != "":
		return fmt.Sprintf("%s@%d/%s", v.poison, v.at, v.by)
	}
	return fmt.Sprintf("%.12q@%d/%s", v.text, v.at, v.by)
}

// over reports whether v wins by its stamp; of one stamp neither does.
func (v version) over(o version) bool {
	return v.at > o.at || v.at == o.at && v.by > o.by
}

func (v version) sameStamp(o version) bool { return v.at == o.at && v.by == o.by }

// history is all that was ever written of one row.
type history struct {
	name     string // for the story
	table    string
	uid      sync.UID
	versions []version
}

// maxVersions bounds the versions of a row: knowledge of them is a set of bits.
const maxVersions = 60

// find returns the version that a row in a file or on the wire is.
func (h *history) find(v version) (int, bool) {
	for i, known := range h.versions {
		if known.sameStamp(v) && known.deletedAt == v.deletedAt && (v.deletedAt != 0 || known.text == v.text) {
			return i, true
		}
	}
	return 0, false
}

// holding is what a node has of one row: a version, and the set of all versions
// that went into it or were compared with it on the way. This is true causality,
// which the product has to know from its stamps alone.
type holding struct {
	version  int
	contains uint64
}

func (h holding) has(version int) bool { return h.contains&(1<<version) != 0 }

// loser names a version that lost to one that had not seen it.
type loser struct {
	uid sync.UID
	at  int64
	by  string
}

// state is what one node's file ought to hold. A backup keeps a copy of it.
type state struct {
	rows      map[sync.UID]holding
	aside     map[sync.UID]holding // in quarantine
	facts     map[sync.UID]bool
	conflicts map[loser]bool
	keys      map[given]sync.UID // each key that led to a row here
	own       map[sync.UID]int64 // what is in a column that does not replicate
}

func newState() *state {
	return &state{map[sync.UID]holding{}, map[sync.UID]holding{}, map[sync.UID]bool{}, map[loser]bool{}, map[given]sync.UID{}, map[sync.UID]int64{}}
}

func (s *state) clone() *state {
	return &state{maps.Clone(s.rows), maps.Clone(s.aside), maps.Clone(s.facts), maps.Clone(s.conflicts), maps.Clone(s.keys), maps.Clone(s.own)}
}

// beyond is how many versions and facts s has that o, to which it was put back, has not.
func (s *state) beyond(o *state) (n int) {
	for uid, held := range s.rows {
		if back, ok := o.rows[uid]; !ok || back.version != held.version {
			n++
		}
	}
	for uid := range s.facts {
		if !o.facts[uid] {
			n++
		}
	}
	return n
}

// says reports whether two versions say the same, so that neither loses anything
// to the other.
func (v version) says(o version) bool {
	return v.deletedAt != 0 && o.deletedAt != 0 || v.deletedAt == 0 && o.deletedAt == 0 && v.text == o.text && v.priority == o.priority
}

// meet is the rule, told by true causality: the version with the larger stamp
// stays, and one that loses to a version which does not contain it is a conflict.
// Tie is asked where two versions share their stamp.
func (s *state) meet(h *history, in holding, tie func(a, b int) int) {
	mine, known := s.rows[h.uid]
	if !known {
		s.rows[h.uid] = in
		return
	}
	both := mine.contains | in.contains
	if in.version == mine.version {
		s.rows[h.uid] = holding{mine.version, both}
		return
	}
	wins, loses := mine.version, in.version
	switch a, b := h.versions[in.version], h.versions[mine.version]; {
	case a.sameStamp(b):
		if tie(in.version, mine.version) == in.version {
			wins, loses = loses, wins
		}
	case a.over(b):
		wins, loses = loses, wins
	}
	if l := h.versions[loses]; !mine.has(in.version) && !in.has(mine.version) && !l.says(h.versions[wins]) {
		s.conflicts[loser{h.uid, l.at, l.by}] = true
	}
	s.rows[h.uid] = holding{wins, both}
}

// write is a new version on top of what the node holds.
func (s *state) write(h *history, v version) {
	i, again := h.find(v) // two lives of a node may write one and the same delete
	if !again {
		i = len(h.versions)
		h.versions = append(h.versions, v)
	}
	s.rows[h.uid] = holding{i, s.rows[h.uid].contains | 1<<i}
}

// newest returns which of the versions in a set wins.
func (h *history) newest(set uint64) int {
	best := bits.TrailingZeros64(set)
	for i := range h.versions {
		if set&(1<<i) != 0 && h.versions[i].over(h.versions[best]) {
			best = i
		}
	}
	return best
}
