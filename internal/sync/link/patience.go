package link

import (
	"maps"
	"time"

	"tandem/internal/fault"
)

// What answers polls and does not mean it. The operator reads these.
var (
	ErrPeerHasty = fault.New(fault.Unavailable, "peer_does_not_wait", "What answers at peer.url says at once that there is nothing new, and should hold the call until there is. So this node asks only every half minute, and what is written there comes late. A proxy that answers from its cache or cuts long calls does that: have it pass /peer/ on without caching, and let a call take 75 seconds.")
	ErrPeerAnew  = fault.New(fault.Unavailable, "peer_begins_anew", "Each time that this node asks, the log of the other one begins anew, so this node reads it only every half minute. A proxy that answers from its cache does that: have it pass /peer/ on without caching. So does whatever puts the data folder of the other node back again and again.")
)

const (
	prompt     = time.Second // a poll that brings nothing is answered later than that
	freely     = 3           // so many that are not, and so many logs that begin anew, are chance
	anewWithin = time.Minute // two that are further apart have nothing to do with each other
)

// patience tells a peer that has nothing to say from one that says nothing all the time:
// to poll that one at once again would go on for ever. It belongs to the fetch loop.
type patience struct {
	hollow int // polls in a row that were answered at once, and with nothing
	anew   int // logs that began anew, one soon after the other
	anewAt time.Time
	sets   map[string]string // what the last answer named
	lost   bool              // the last answer was one too many
}

// judge returns what is wrong with an answer that took so long to a poll that was to be
// held for wait; nil: nothing, or it may be chance.
func (p *patience) judge(got *arrival, wait, took time.Duration) error {
	news := len(got.Entries) > 0 && got.Cursor != got.from || len(got.named) > 0 && !maps.Equal(got.named, p.sets)
	p.sets = got.named
	var err error
	switch {
	case got.Reset != "":
		now := time.Now()
		if now.Sub(p.anewAt) > anewWithin {
			p.anew = 0
		}
		p.anewAt = now
		if p.anew++; p.anew > freely {
			err = ErrPeerAnew
		}
	case news, wait > 0 && took >= prompt:
		p.hollow = 0
	default:
		if wait > 0 || got.More { // who did not want to wait hears at once that there is nothing
			p.hollow++
		}
		if p.hollow > freely {
			err = ErrPeerHasty
		}
	}
	p.lost = err != nil
	return err
}
