package link

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	gosync "sync"
	"time"

	"tandem/internal/fault"
)

// Process is one run of a node.
type Process struct {
	ID     string `json:"id"`               // drawn anew at each start
	Host   string `json:"host,omitempty"`   // the machine's name
	Folder string `json:"folder,omitempty"` // where its data is
	At     int64  `json:"at,omitempty"`     // when it started, Unix ms
}

// ThisProcess is the one that calls it, which started now.
func ThisProcess(now time.Time, folder string) Process {
	host, _ := os.Hostname() // without it people know by the folder and the time which one it is
	if path, err := filepath.Abs(folder); err == nil {
		folder = path
	}
	return Process{ID: rand.Text(), Host: host, Folder: folder, At: now.UnixMilli()}
}

func (p Process) String() string {
	return fmt.Sprintf("on %.40q in %.120q since %s", p.Host, p.Folder, time.UnixMilli(p.At).UTC().Format("2006-01-02 15:04 UTC"))
}

// ErrPeerTwin is that two processes run under one node's name, from two copies of its
// folder: neither knows what the other gives out and rings.
var ErrPeerTwin = fault.New(fault.Conflict, "peer_twin", "Two processes run as one node, from two copies of its folder, so nothing crosses.")

// twinOf is ErrPeerTwin, said of the node called name.
func twinOf(name string, one, other Process) error {
	return fault.New(ErrPeerTwin.Kind, ErrPeerTwin.Code, "Two processes run as %s: one %v and one %v. One of them runs from a copy of the folder, so nothing crosses.",
		name, one, other)
}

const (
	// A node that was started anew greets as another process, and the one from before
	// never again, unless a greeting of its comes late. One that comes back so often
	// was never gone.
	twinReturns = 2
	// twinKept is how long after the last return of either the two count as running:
	// it is longer than a node that fails waits between two greetings.
	twinKept = 2 * time.Minute
	// twinsKnown bounds how many earlier processes are remembered.
	twinsKnown = 8
)

// twins tells one process that greets after the other from two that run at once.
type twins struct {
	mu    gosync.Mutex
	now   *greeter
	known []*greeter // others that have greeted, the last of them first
	until time.Time  // two count as running until then
}

type greeter struct {
	Process
	returns int // how often it came back after another had greeted
	last    time.Time
}

// met keeps that a process greeted, and returns the other one where two run. A peer
// that does not name its process is never told from another.
func (t *twins) met(p Process, at time.Time) (other Process, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.ID == "" {
		return Process{}, false
	}
	if t.now == nil || t.now.ID != p.ID {
		t.follows(p, at)
	}
	if len(t.known) == 0 || !at.Before(t.until) {
		return Process{}, false
	}
	return t.known[0].Process, true
}

// follows has a process that is not the last one that greeted be it.
func (t *twins) follows(p Process, at time.Time) {
	next, others := &greeter{Process: p}, []*greeter{}
	if t.now != nil {
		others = append(others, t.now)
	}
	for _, g := range t.known {
		if g.ID != p.ID {
			others = append(others, g)
			continue
		}
		next = g
		if at.Sub(g.last) > twinKept {
			g.returns = 0
		}
		g.returns, g.last = g.returns+1, at
		if g.returns >= twinReturns {
			t.until = at.Add(twinKept)
		}
	}
	t.now, t.known = next, others[:min(len(others), twinsKnown)]
}
