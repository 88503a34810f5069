package link

import (
	"cmp"
	gosync "sync"
	"sync/atomic"
	"time"

	"tandem/internal/fault"
)

// Status is how replication stands, for people.
type Status struct {
	Peer      string        `json:"peer"`
	State     string        `json:"state"` // ok | offline | attention
	Code      string        `json:"code,omitempty"`
	Detail    string        `json:"detail,omitempty"`
	FetchedAt int64         `json:"fetched_at,omitempty"` // Unix ms of the last success
	OfferedAt int64         `json:"offered_at,omitempty"`
	Version   string        `json:"version,omitempty"`   // of the peer
	Scheduler string        `json:"scheduler,omitempty"` // of the peer
	Skew      time.Duration `json:"skew"`                // the peer's clock less this one's
}

// line is one of the ways in which the nodes talk. Each may fail while the others
// go on.
type line int

const (
	lineHello line = iota
	lineFetch
	lineOffer
	lines
)

// status is what a Client remembers of its calls, in memory: after a restart the
// next call tells it anew.
type status struct {
	fetched, offered atomic.Int64

	mu    gosync.Mutex
	errs  [lines]error // of the last round on each line
	hello Hello
	skew  time.Duration
}

// note keeps how the last round on a line went, and returns err.
func (s *status) note(l line, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs[l] = err
	return err
}

func (s *status) heard(h Hello, skew time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs[lineHello], s.hello, s.skew = nil, h, skew
}

// failedLocked returns what is wrong, the greeting first; nil: nothing.
func (s *status) failedLocked() error { return cmp.Or(s.errs[:]...) }

// Status returns how the last calls went.
func (c *Client) Status() Status {
	s := &c.status
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{
		Peer: c.peer.name, State: "ok", FetchedAt: s.fetched.Load(), OfferedAt: s.offered.Load(),
		Version: s.hello.Version, Scheduler: s.hello.Scheduler, Skew: s.skew,
	}
	if err := s.failedLocked(); err != nil {
		f := fault.From(err)
		out.State, out.Code, out.Detail = "attention", f.Code, f.Detail
		if f.Code == ErrPeerAway.Code {
			out.State = "offline"
		}
	}
	return out
}
