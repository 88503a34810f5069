package link

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	gosync "sync"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
)

// The states of a link.
const (
	OK         = "ok"
	CatchingUp = "catching_up" // reading what was written before this pass began
	Offline    = "offline"     // the other node cannot be reached, or does not call
	Paused     = "paused"      // the nodes speak different protocols
	Attention  = "attention"   // somebody has to look
	Alone      = "alone"       // there is nobody at the other end: not yet, or not any more
)

// The codes of a Status that asks for attention although everything crosses.
const (
	CodeHeld  = "deletes_held"
	CodeAside = "quarantine"
	CodeSkew  = "clock_skew"

	CodeLetters = "letters_parked"
)

// The codes of a Status that is Alone, and that of a peer which does not call.
const (
	CodeParted   = "parted"
	CodeStranger = "not_paired"
	CodeSilent   = "peer_silent"

	CodeTurnedAway = "caller_refused" // the peer calls, and is not let in
)

// How far apart the clocks are.
const (
	Green = "green"
	Amber = "amber" // worth a word
	Red   = "red"   // a late edit may look like an early one
)

// Where Amber begins, and where Red does.
const (
	skewAmber = 30 * time.Second
	skewRed   = 5 * time.Minute
)

// Status is how replication stands, for people. Times are Unix ms; 0: not yet.
type Status struct {
	Peer      string
	State     string
	Code      string
	Detail    string
	Reason    string // the particular one, where it is known; for admins
	Mend      string // what to do about it; for admins
	HeardAt   int64  // the last greeting
	FetchedAt int64  // when the peer's log was last read, or known to be read
	OfferedAt int64  // when the peer last read this node's

	ToFetch *int64 // entries of the peer's log that are not here; nil: not known yet
	ToOffer *int64 // entries of this node's log that the peer has not read

	Version     string             // of the peer
	Scheduler   string             // of the peer
	Skew        time.Duration      // the peer's clock less this one's
	Clock       string             // what that comes to: Green, Amber or Red
	Clocks      string             // a sentence about it; empty where it is Green
	Quarantine  map[string]int     // what is set aside here, by kind
	Aside       []sync.Quarantined // what is set aside at the peer, at most 100
	Parked      []letters.Parked   // letters that could not be taken or sent here, the newest 100
	ParkedThere []letters.Parked   // and those at the peer
	Warnings    []Warning          // what deserves a look although everything crosses

	Reset   string // why a log was last read from its start, here or there
	ResetAt int64

	Compared *Comparison // the last one that was made

	OneFile bool // both nodes keep their secret in one file
}

// Warning is something that keeps nothing from crossing, and waits for a person. Mend
// is what that person may do, where Detail does not say it.
type Warning struct {
	Code, Detail, Mend string
	At                 string // the name of the node to do it at; empty: this one
}

// Broken reports whether Code says why calls fail, and not what else to look at.
func (s Status) Broken() bool {
	return s.Code != "" && !slices.ContainsFunc(s.Warnings, func(w Warning) bool { return w.Code == s.Code })
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
	parked   []letters.Parked
	passEnd  int64 // where the pass that is being made ends; 0: none
	reset    string
	resetAt  int64
	compared *Comparison
	oneFile  bool

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
	h.Highest = nil // it was read, and may be long
	s.errs[lineHello], s.theirs, s.heard, s.skew = nil, h, at, skew
	if h.Compared != nil { // only who calls compares, and tells
		s.compared = h.Compared
	}
	if s.toFetch = h.Pending; s.toFetch != nil && *s.toFetch == 0 && s.fetched > 0 {
		s.fetched = at
	}
}

// sharesFile keeps whether both nodes keep their secret in one file, and reports whether
// that is news.
func (s *status) sharesFile(does bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.oneFile
	s.oneFile = does
	return does && !was
}

// peerIncarnation is the one that the peer last named; empty: it has not.
func (s *status) peerIncarnation() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.theirs.Incarnation
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
func (s *status) looked(parked []letters.Parked, pending *int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked, s.toOffer = parked, pending
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

func (s *status) lastCompared() *Comparison {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compared
}

// failedLocked returns what is wrong, the greeting first; nil: nothing.
func (s *status) failedLocked() error { return cmp.Or(s.errs[:]...) }

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
