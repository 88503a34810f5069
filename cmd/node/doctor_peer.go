package main

import (
	"fmt"
	"time"

	"tandem/internal/config"
)

const (
	peerSilent = time.Minute      // a peer that has not called for so long, three greetings, is away
	skewNoted  = 30 * time.Second // clocks further apart are worth a word
	skewBad    = 5 * time.Minute  // and so far apart, a late edit looks like an early one
)

// judge says how the two nodes go together. Both clocks are in milliseconds.
func (n *node) judge(theirs string, skew int64, version string) finding {
	apart := (time.Duration(skew) * time.Millisecond).Abs().Round(time.Second)
	mine := n.Scheduler.Mode
	switch {
	case mine == config.Off && config.Mode(theirs) == config.Off:
		return finding{"peer", fail, "both schedulers are off: nobody rings", "Set scheduler.mode to active on one node."}
	case mine != config.Active && config.Mode(theirs) != config.Active:
		return finding{"peer", fail, fmt.Sprintf("no scheduler is active (here %s, there %s): nobody rings", mine, theirs), "Set scheduler.mode to active on one node."}
	case mine == config.Active && config.Mode(theirs) == config.Active:
		return finding{"peer", fail, "both schedulers are active: each reminder would ring twice", "Set scheduler.mode to standby on one node."}
	case apart > skewBad:
		return finding{"peer", fail, fmt.Sprintf("the clocks are %v apart", apart), "Turn on time synchronisation on both machines."}
	case apart > skewNoted:
		return finding{"peer", warn, fmt.Sprintf("the clocks are %v apart", apart), "Turn on time synchronisation on both machines."}
	}
	return finding{"peer", fine, fmt.Sprintf("%s answers (version %s)", n.Peer.Name, version), ""}
}
