package link

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	gosync "sync"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sync"
)

// The states of a link.
const (
	OK         = "ok"
	CatchingUp = "catching_up" // reading what was written before this pass began
	Offline    = "offline"     // the other node cannot be reached, or does not call
	Paused     = "paused"      // the nodes speak different protocols
	Attention  = "attention"   // somebody has to look
)

// The codes of a Status that asks for attention although everything crosses.
const (
	CodeHeld  = "deletes_held"
	CodeAside = "quarantine"
	CodeSkew  = "clock_skew"
)

// Clocks that are further apart than skewNoted are worth a word. Beyond skewBad a
// late edit looks like an early one.
const (
	skewNoted = 30 * time.Second
	skewBad   = 5 * time.Minute
)

// Status is how replication stands, for people. Times are Unix ms; 0: not yet.
type Status struct {
	Peer      string `json:"peer"`
	State     string `json:"state"`
	Code      string `json:"code,omitempty"`
	Detail    string `json:"detail,omitempty"`
	HeardAt   int64  `json:"heard_at,omitempty"`   // the last greeting
	FetchedAt int64  `json:"fetched_at,omitempty"` // when the peer's log was last read, or known to be read
	OfferedAt int64  `json:"offered_at,omitempty"` // when the peer last read this node's

	ToFetch *int64 `json:"to_fetch,omitempty"` // entries of the peer's log that are not here; nil: not known yet
	ToOffer *int64 `json:"to_offer,omitempty"` // entries of this node's log that the peer has not read

	Version    string             `json:"version,omitempty"`   // of the peer
	Scheduler  string             `json:"scheduler,omitempty"` // of the peer
	Skew       time.Duration      `json:"-"`                   // the peer's clock less this one's
	SkewMS     int64              `json:"skew_ms"`
	Clocks     string             `json:"clocks,omitempty"` // a sentence about the skew where it matters
	Quarantine map[string]int     `json:"quarantine"`       // what is set aside here, by kind
	Refused    []sync.Quarantined `json:"refused"`          // what is set aside at the peer, at most 100

	Reset   string `json:"reset,omitempty"` // why a log was last read from its start, here or there
	ResetAt int64  `json:"reset_at,omitempty"`

	Compared *Comparison `json:"compared,omitempty"` // the last one that was made
}

// line is one of the ways in which the nodes talk. Each may fail while the others
// go on.
type line int

const (
	lineHello line = iota
	lineFetch
	lineOffer
	lineLetters
	lines
)

// status is what an end remembers of its calls, in memory: after a restart the next
// call tells it anew.
type status struct {
	mu       gosync.Mutex
	errs     [lines]error // of the last round on each line
	theirs   Hello
	heard    int64
	skew     time.Duration
	fetched  int64
	offered  int64
	readUpTo *string // the peer's cursor into this node's log
	toFetch  *int64
	toOffer  *int64
	counts   map[string]int
	passEnd  int64 // where the pass that is being made ends; 0: none
	reset    string
	resetAt  int64
	compared *Comparison

	told  string // the code of what the log was told last
	since time.Time
}

// note keeps how the last round on a line went, and returns err.
func (s *status) note(l line, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs[l] = err
	return err
}

// met keeps what the peer said of itself, and what its clock showed less this one.
func (s *status) met(h Hello, at int64, skew time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs[lineHello], s.theirs, s.heard, s.skew = nil, h, at, skew
	if s.toFetch = h.Pending; s.toFetch != nil && *s.toFetch == 0 && s.fetched > 0 {
		s.fetched = at
	}
}

// anyAside reports whether anything is in quarantine here.
func (s *status) anyAside() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.counts) > 0
}

// peerIncarnation is the one that the peer last named; empty: it has not.
func (s *status) peerIncarnation() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.theirs.Incarnation
}

// refusedThere is what the peer has set aside, at most 100 entries of it.
func (s *status) refusedThere() []sync.Quarantined {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.theirs.Refused
}

// called keeps that the peer greeted, whatever it said.
func (s *status) called(at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = at
}

func (s *status) heardAt() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

// looked keeps what was found in this node's own log.
func (s *status) looked(counts map[string]int, pending *int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts, s.toOffer = counts, pending
}

// read is how far the peer has read this node's log, where that is known.
func (s *status) read() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readUpTo == nil {
		return "", false
	}
	return *s.readUpTo, true
}

// took keeps that the peer has read this node's log up to cursor, and whether that
// is all of it.
func (s *status) took(cursor string, at int64, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readUpTo, s.offered = &cursor, at
	if all {
		s.toOffer = new(int64)
	}
}

// brought keeps that entries of the peer's log were stored here, up to a place in
// it, and whether the log goes on. A pass ends where the log ended when it began: a
// log that grows as fast as it is read has been caught up with nonetheless.
func (s *status) brought(at, place int64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = at
	if !more {
		s.toFetch = new(int64)
	}
	if !more || place >= s.passEnd {
		s.passEnd = 0
	}
}

// begins keeps that a pass begins which ends at a place in the peer's log.
func (s *status) begins(end int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passEnd == 0 {
		s.passEnd = end
	}
}

// breaks keeps that the pass is over, whatever it brought.
func (s *status) breaks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passEnd = 0
}

func (s *status) passing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passEnd > 0
}

func (s *status) wasReset(why string, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset, s.resetAt = why, at
}

func (s *status) wasCompared(c Comparison) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compared = &c
}

// failedLocked returns what is wrong, the greeting first; nil: nothing.
func (s *status) failedLocked() error { return cmp.Or(s.errs[:]...) }

// snapshot returns the status of the link to the node called name.
func (s *status) snapshot(name string) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{
		Peer: name, State: OK, HeardAt: s.heard, FetchedAt: s.fetched, OfferedAt: s.offered, ToFetch: s.toFetch, ToOffer: s.toOffer,
		Version: s.theirs.Version, Scheduler: s.theirs.Scheduler, Skew: s.skew, SkewMS: s.skew.Milliseconds(), Clocks: clocks(name, s.skew),
		Quarantine: maps.Clone(s.counts), Refused: slices.Clone(s.theirs.Refused), Reset: s.reset, ResetAt: s.resetAt, Compared: s.compared,
	}
	switch err := s.failedLocked(); {
	case err != nil:
		f := fault.From(err)
		out.State, out.Code, out.Detail = Attention, f.Code, f.Detail
		switch f.Code {
		case ErrPeerAway.Code, errSilent.Code:
			out.State = Offline
		case ErrPeerVersion.Code:
			out.State = Paused
		}
	case s.passEnd > 0:
		out.State = CatchingUp
	default:
		out.warn()
	}
	return out
}

// warn says what deserves a look although everything crosses.
func (s *Status) warn() {
	held, aside := s.Quarantine[sync.HeldDelete], len(s.Refused)
	for kind, n := range s.Quarantine {
		if kind != sync.HeldDelete {
			aside += n
		}
	}
	switch {
	case held > 0:
		s.State, s.Code, s.Detail = Attention, CodeHeld, fmt.Sprintf("%d deletes that came from %s at once are held back until an admin says whether they were meant.", held, s.Peer)
	case aside > 0:
		s.State, s.Code, s.Detail = Attention, CodeAside, fmt.Sprintf("%d entries could not be taken, here or by %s. All others cross.", aside, s.Peer)
	case s.Skew.Abs() >= skewBad:
		s.State, s.Code, s.Detail = Attention, CodeSkew, s.Clocks
	}
}

// clocks says how far the peer's clock is off, where that is worth a word.
func clocks(peer string, skew time.Duration) string {
	way, off := "ahead of", skew.Abs().Round(time.Second)
	if skew < 0 {
		way = "behind"
	}
	switch {
	case off >= skewBad:
		return fmt.Sprintf("The clock of %s is %v %s this one. Of two edits the wrong one may win: turn on time synchronisation on both machines.", peer, off, way)
	case off >= skewNoted:
		return fmt.Sprintf("The clock of %s is %v %s this one. Turn on time synchronisation on both machines.", peer, off, way)
	}
	return ""
}

// tell writes one line to the log when the link breaks, when it breaks in another
// way, and when it is well again.
func (s *status) tell(ctx context.Context, log *slog.Logger, name string) {
	s.mu.Lock()
	err := s.failedLocked()
	code, was, since := "", s.told, s.since
	if err != nil {
		code = fault.From(err).Code
	}
	if code == was {
		s.mu.Unlock()
		return
	}
	s.told = code
	if was == "" {
		s.since = time.Now()
	}
	s.mu.Unlock()
	if err == nil {
		log.InfoContext(ctx, "the link to the peer works again", "peer", name, "after", time.Since(since).Round(time.Second))
		return
	}
	log.WarnContext(ctx, "the link to the peer does not work", "peer", name, "error", err)
}
