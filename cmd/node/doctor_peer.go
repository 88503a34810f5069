package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tandem/internal/config"
	nodesync "tandem/internal/sync"
	"tandem/internal/sync/letters"
	"tandem/internal/sync/link"
)

// examinePeer tells what GET /v1/sync/status does: how the calls of this node to its
// peer go, or those of the peer to this one.
func (n *node) examinePeer() []finding {
	if n.contact == nil {
		return []finding{{"peer", fine, "none configured: this node is alone", ""}}
	}
	s := n.linkState().Status
	found := []finding{n.examineLink(s)}
	for _, w := range s.Warnings {
		switch {
		case w.Code == link.CodeSkew: // the clocks are looked at with the link
		case w.Code == link.CodeHeld && w.At == "": // nobody else can decide
			found = append(found, finding{"sync", fail, w.Detail, w.Mend})
		default:
			found = append(found, finding{"sync", warn, w.Detail, w.Mend})
		}
	}
	if s.OneFile {
		found = append(found, finding{"peer", warn, "both nodes keep their secret in one file, " + n.Peer.TokenFile + ": what one of them does to it, it does to the other",
			"Give each node a peer.token_file of its own, restart both, and pair them again. " + n.pairThem()})
	}
	return append(append(found, examineLetters("this node", s.Parked)...), examineLetters(n.Peer.Name, s.ParkedThere)...)
}

// examineLetters tells of letters that are lost for good; of others a warning tells.
func examineLetters(node string, parked []letters.Parked) []finding {
	lost := slices.DeleteFunc(slices.Clone(parked), letters.Parked.Waits)
	if len(lost) == 0 {
		return nil
	}
	return []finding{{"letters", warn, fmt.Sprintf("nothing came of %d letters at %s in the last 30 days; the newest: %s", len(lost), node, lost[0].Detail), lost[0].Mend(node)}}
}

// examineLink says whether the nodes talk, and how they go together.
func (n *node) examineLink(s link.Status) finding {
	const schedulers = "Set scheduler.mode to active on one node."
	mine, theirs, apart := n.Scheduler.Mode, config.Mode(s.Scheduler), s.Skew.Abs().Round(time.Second)
	switch {
	case s.Broken():
		code := s.Code
		if s.Reason != "" {
			code += ": " + s.Reason
		}
		level := fail
		if s.State == link.Offline || s.State == link.Alone { // each works without the other
			level = warn
		}
		return finding{"peer", level, fmt.Sprintf("%s: %s (%s)", s.State, s.Detail, code), s.Mend}
	case s.HeardAt == 0:
		return finding{"peer", warn, n.Peer.Name + " has not been heard of since the start", n.mend(link.CodeSilent)}
	case mine == config.Off && theirs == config.Off:
		return finding{"peer", fail, "both schedulers are off: nobody rings", schedulers}
	case mine != config.Active && theirs != config.Active:
		return finding{"peer", fail, fmt.Sprintf("no scheduler is active (here %s, there %s): nobody rings", mine, theirs), schedulers}
	case mine == config.Active && theirs == config.Active:
		return finding{"peer", fail, "both schedulers are active: each reminder would ring twice", "Set scheduler.mode to standby on one node."}
	case s.Clock == link.Red:
		return finding{"peer", fail, fmt.Sprintf("the clocks are %v apart", apart), "Turn on time synchronisation on both machines."}
	case s.Clock == link.Amber:
		return finding{"peer", warn, fmt.Sprintf("the clocks are %v apart", apart), "Turn on time synchronisation on both machines."}
	}
	return finding{"peer", fine, fmt.Sprintf("%s answers (version %s)", n.Peer.Name, s.Version), ""}
}

// examineStamps tells of rows that say they were written after tomorrow, whichever node's
// clock did it, and whether or not it is right by now.
func (n *node) examineStamps(ctx context.Context) []finding {
	ahead, err := n.log.Ahead(ctx)
	switch {
	case err != nil:
		return []finding{{"clock", fail, err.Error(), ""}}
	case ahead == 0:
		return nil
	}
	return []finding{{"clock", warn, nodesync.AheadInWords(ahead), "Turn on time synchronisation on the machine of each node. The entries can be edited as ever; this is said until the day that they name."}}
}
