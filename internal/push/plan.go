package push

import "time"

const (
	// spareAttempts bounds the tries at a device that did not take what another
	// target took: its owner has been told.
	spareAttempts = 8
	// lookAgain is how long to wait after a list of targets could not be read.
	lookAgain = firstBackoff
)

// Reasons of our own; the others are the services' words.
const (
	NoChannel = "no_channel" // none is configured
	NoAddress = "no_address" // the owner has no device and no chat
	noLookup  = "no_lookup"  // the list of targets could not be read
	throttled = "throttled"  // the service asked for a pause
	expired   = "expired"    // its time was up
	disabled  = "disabled"   // the owner is told nothing for now
)

// found is where a route reaches the owner, as far as that could be read.
type found struct {
	channel    string
	perAddress bool
	targets    []Target
	err        error
}

// gate names what a pause of the target's channel is for.
func (f found) gate(t Target) spot {
	if f.perAddress {
		return spot{f.channel, t.place()}
	}
	return spot{f.channel, ""}
}

// view is all that a decision depends on.
type view struct {
	now, expires int64 // ms
	first        bool  // nothing was attempted yet
	disabled     bool  // the owner is told nothing for now; routes are none
	routes       []found
	rows         map[spot]targetRow
	gates        map[spot]int64 // shut until
}

// decision is what to do with an intent now: send, or settle in a state.
type decision struct {
	route   int
	targets []Target // to send to by that route; none: settle

	state State
	until int64  // for Retryable: when to look again; 0: by backoff
	code  string // why; empty: as before
}

// survey is what one look over the routes found.
type survey struct {
	route    int
	due      []Target // of the first route that has any
	earliest int64    // when another target may be tried; 0: none
	why      string   // what that one waits for, where that is news
	rejected bool     // a target will never take it
}

// decide follows the chain: each route's targets in turn, a later route only while
// no target has taken the notice. Once one has, only its neighbours on the same
// route that failed are tried again, for their own sake.
func (v view) decide() decision {
	took, unsure := "", false
	for at, row := range v.rows {
		if row.state == Accepted {
			took = at.channel
		}
		unsure = unsure || row.doubt != ""
	}
	s := v.look(took)
	over := v.now >= v.expires && !v.first
	switch {
	case len(s.due) > 0 && !over:
		return decision{route: s.route, targets: s.due}
	case took != "" && (s.earliest == 0 || over):
		return decision{state: Accepted}
	case over && unsure:
		return decision{state: Unknown}
	case over:
		return decision{state: Terminal}
	case s.earliest > 0 && v.expires > v.now:
		return decision{state: Retryable, until: min(s.earliest, v.expires), code: s.why}
	case s.earliest > 0:
		return decision{state: Retryable, until: s.earliest, code: s.why}
	case s.rejected:
		return decision{state: Terminal}
	case v.disabled:
		return decision{state: Retryable, code: disabled}
	case len(v.routes) == 0:
		return decision{state: Retryable, code: NoChannel}
	}
	return decision{state: Retryable, code: NoAddress}
}

// look goes over the routes, up to the first that has something to send now.
func (v view) look(took string) (s survey) {
	wait := func(at int64, why string) {
		if s.earliest == 0 || at < s.earliest {
			s.earliest, s.why = at, why
		}
	}
	for i, f := range v.routes {
		if took != "" && f.channel != took {
			continue
		}
		if f.err != nil {
			wait(v.now+lookAgain.Milliseconds(), noLookup)
		}
		for _, t := range f.targets {
			row, tried := v.rows[spot{f.channel, t.place()}]
			again := row.registration == t.registration // of the address that was tried
			switch {
			case row.state == Accepted,
				took != "" && (!tried || row.attempts >= spareAttempts):
				continue
			case row.state == Terminal && again:
				s.rejected = true
				continue
			}
			if row.state == Retryable && again && row.nextAt > v.now {
				wait(row.nextAt, "")
			} else if shut := v.gates[f.gate(t)]; shut > v.now {
				wait(shut, throttled)
			} else {
				s.due = append(s.due, t)
			}
		}
		if len(s.due) > 0 {
			s.route = i
			return s
		}
	}
	return s
}

// The backoff after a failure in which nothing was asked for.
const (
	firstBackoff   = 10 * time.Second
	longestBackoff = 5 * time.Minute
	firstPause     = time.Minute // of a channel, as Google asks
	longestPause   = time.Hour
)

// doubling is first, doubled with each failure after the first, up to longest.
func doubling(first, longest time.Duration, failures int) time.Duration {
	return min(first<<min(max(failures-1, 0), 16), longest)
}
