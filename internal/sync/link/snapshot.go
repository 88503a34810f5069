package link

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
)

// snapshot returns the status of the link to the node called name, with so much in
// quarantine here.
func (s *status) snapshot(name string, aside map[string]int) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{
		Peer: name, State: OK, HeardAt: s.heard, FetchedAt: s.fetched, OfferedAt: s.offered, ToFetch: s.toFetch, ToOffer: s.toOffer,
		Version: s.theirs.Version, Scheduler: s.theirs.Scheduler, Skew: s.skew, Quarantine: aside, Aside: slices.Clone(s.theirs.Aside),
		Parked: slices.Clone(s.parked), ParkedThere: slices.Clone(s.theirs.Parked), Reset: s.reset, ResetAt: s.resetAt, Compared: s.compared,
		OneFile: s.oneFile,
	}
	out.Clock, out.Clocks = clocks(name, s.skew)
	out.Warnings = out.warnings()
	switch err := s.failedLocked(); {
	case err != nil:
		f := fault.From(err)
		out.State, out.Code, out.Detail, out.Reason = Attention, f.Code, f.Detail, reason(f)
		switch f.Code {
		case ErrPeerAway.Code, errSilent.Code:
			out.State = Offline
		case ErrPeerVersion.Code:
			out.State = Paused
		}
	case s.heard == 0:
		out.State, out.Detail = CatchingUp, "This node has started and not heard of the other one yet."
	case s.passEnd > 0:
		out.State = CatchingUp
	case len(out.Warnings) > 0:
		first := out.Warnings[0]
		out.State, out.Code, out.Detail, out.Mend = Attention, first.Code, first.Detail, first.Mend
	}
	return out
}

// reason is the particular one of a fault, as far as people can use it.
func reason(f *fault.Error) string {
	why := f.Unwrap()
	if call, ok := errors.AsType[*url.Error](why); ok {
		why = call.Err
	}
	if why == nil {
		return ""
	}
	return cut(why.Error(), longReason)
}

// warnings are the Warnings, what is most urgent first.
func (s *Status) warnings() (all []Warning) {
	held, aside, heldThere, there := s.Quarantine[sync.HeldDelete], 0, 0, 0
	for kind, n := range s.Quarantine {
		if kind != sync.HeldDelete {
			aside += n
		}
	}
	for _, q := range s.Aside {
		if q.Kind == sync.HeldDelete {
			heldThere++
		} else {
			there++
		}
	}
	const decide = "An admin decides there: POST /v1/sync/held/decision."
	if held > 0 {
		all = append(all, Warning{CodeHeld, fmt.Sprintf("%d deletes that came from %s at once are held back here, until an admin says whether they were meant.", held, s.Peer), decide, ""})
	}
	if heldThere > 0 {
		all = append(all, Warning{CodeHeld, fmt.Sprintf("%s deletes of this node are held back at %s, until an admin says there whether they were meant.", most(heldThere), s.Peer), decide, s.Peer})
	}
	const find = "An admin finds there why: GET /v1/sync/quarantine."
	if aside > 0 {
		all = append(all, Warning{CodeAside, fmt.Sprintf("%d entries could not be taken or sent by this node. All others cross.", aside), find, ""})
	}
	if there > 0 {
		all = append(all, Warning{CodeAside, fmt.Sprintf("%s entries could not be taken or sent by %s. All others cross.", most(there), s.Peer), find, s.Peer})
	}
	for _, at := range []struct {
		node string
		list []letters.Parked
	}{{"this node", s.Parked}, {s.Peer, s.ParkedThere}} {
		waits := slices.DeleteFunc(slices.Clone(at.list), func(p letters.Parked) bool { return !p.Waits() })
		if len(waits) > 0 {
			all = append(all, Warning{CodeLetters, fmt.Sprintf("%d letters ask for what %s cannot do yet.", len(waits), at.node), waits[0].Mend(at.node), ""})
		}
	}
	if s.Clock == Red {
		all = append(all, Warning{Code: CodeSkew, Detail: s.Clocks})
	}
	return all
}

// most is a number of what a greeting tells of, which is not always all.
func most(n int) string {
	if n >= toldOf {
		return fmt.Sprintf("%d or more", n)
	}
	return strconv.Itoa(n)
}

// clocks says how far the peer's clock is off, in a word and, where that matters, in
// a sentence.
func clocks(peer string, skew time.Duration) (level, detail string) {
	way, off := "ahead of", skew.Abs().Round(time.Second)
	if skew < 0 {
		way = "behind"
	}
	const mend = " Turn on time synchronisation on both machines."
	detail = fmt.Sprintf("The clock of %s is %v %s this one.", peer, off, way)
	switch off = skew.Abs(); {
	case off >= skewRed:
		return Red, detail + " Of two edits the wrong one may win." + mend
	case off >= skewAmber:
		return Amber, detail + mend
	}
	return Green, ""
}
