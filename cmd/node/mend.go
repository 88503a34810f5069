package main

import (
	"fmt"
	"strings"

	"tandem/internal/api"
	"tandem/internal/pairing"
	"tandem/internal/sync/link"
	"tandem/internal/users"
)

// endStatus is the link as whichever end of it is here knows it.
func (n *node) endStatus() link.Status {
	if n.parting.Parted() {
		return link.Status{Peer: n.Peer.Name, State: link.Alone, Code: link.CodeParted, Detail: pairing.ErrParted.Detail}
	}
	if n.client != nil {
		return n.client.Status()
	}
	return n.clashing(n.server.Status())
}

// clashing adds to the status of a link the accounts of the peer that could not come back
// to this node, since their addresses are other accounts' here.
func (n *node) clashing(s link.Status) link.Status {
	taken := n.users.Clashing()
	if len(taken) == 0 {
		return s
	}
	w := link.Warning{
		Code:   users.ErrPutBack.Code,
		Detail: fmt.Sprintf("%s has %d accounts whose addresses are other accounts' here, as after the folder of this node was lost. What they own belongs to nobody here.", n.Peer.Name, len(taken)),
		Mend:   n.pairThem() + " Both will have one account for each address: " + strings.Join(taken, ", ") + ".",
	}
	s.Warnings = append([]link.Warning{w}, s.Warnings...)
	if !s.Broken() && s.State != link.CatchingUp {
		s.State, s.Code, s.Detail = link.Attention, w.Code, w.Detail
	}
	return s
}

// linkState is the link as people read of it: with what it was before this process, and
// with what to do about it at this node and at that one.
func (n *node) linkState() api.SyncState {
	s, silent := n.contact.State()
	for i, w := range s.Warnings {
		if w.Code == link.CodeHeld {
			s.Warnings[i].Mend = n.decide(w.At)
		}
	}
	switch {
	case s.Code == "":
	case !s.Broken():
		s.Mend = s.Warnings[0].Mend
	default:
		s.Mend = n.mend(s.Code)
	}
	return api.SyncState{Status: s, Silent: silent}
}

// decide says where and how an admin decides about deletes that are held.
func (n *node) decide(at string) string {
	url := n.reachedAt()
	switch {
	case at != "" && n.client != nil:
		url = n.Peer.URL
	case at != "":
		url = "http://ADDRESS-OF-" + strings.ToUpper(at) // which is not known here
	}
	if at == "" {
		at = n.Node.Name
	}
	return fmt.Sprintf(`An admin decides at %s, with a login of that node: curl -X POST %s/v1/sync/held/decision -H "Authorization: Bearer TOKEN" -H "Content-Type: application/json" -d '{"verdict":"apply"}' (they were meant), or with "keep" (the rows come back on both nodes).`, at, url)
}

// reachedAt is the node's own address, as far as its configuration tells.
func (n *node) reachedAt() string {
	switch {
	case n.HTTP.PublicURL != "":
		return n.HTTP.PublicURL
	case n.HTTP.TLS.On():
		return "https://" + n.HTTP.Listen
	}
	return "http://" + n.HTTP.Listen
}

// line is what to type for a verb at this node.
func (n *node) line(verb string) string {
	o := options{configFile: n.configFile}
	return o.line(verb)
}

// there is what to type for a verb at the other node, whose configuration this one does
// not know.
func (n *node) there(verb string) string {
	return fmt.Sprintf("tandem %s --config FILE on the machine of %s (FILE: its configuration)", verb, n.Peer.Name)
}

// pairThem says how the two are made a pair.
func (n *node) pairThem() string { return "To make them a pair: " + n.pairLines() + "." }

func (n *node) pairLines() string {
	if n.client == nil {
		return fmt.Sprintf("%s prints a code here, for tandem pair --config FILE CODE on the machine of %s", n.line("pair"), n.Peer.Name)
	}
	return fmt.Sprintf("%s; it prints a code for %s CODE here", n.there("pair"), n.line("pair"))
}

// restart is said where the configuration of this node is to be changed.
func (n *node) restart() string {
	file := n.configFile
	if file == "" {
		file = "the configuration of this node"
	}
	return "in " + file + ", and restart this node"
}

// mend says what to do about what keeps the nodes apart.
func (n *node) mend(code string) string {
	peer := n.Peer.Name
	switch code {
	case link.CodeParted:
		return n.pairThem() + " To stay alone: take the section peer out " + n.restart() + "."
	case link.CodeStranger, link.ErrPeerRefused.Code, "accounts_not_joined", "accounts_put_back":
		return n.pairThem()
	case link.CodeTurnedAway:
		return n.pairThem() + " Or, where one of them goes by another name: correct peer.name " + n.restart() + "."
	case link.ErrPeerAlone.Code:
		return fmt.Sprintf("Add the section peer with name: %s to the configuration of %s, and restart it. %s If %s leads to this node itself: correct peer.url %s.",
			n.Node.Name, peer, n.pairThem(), n.Peer.URL, n.restart())
	case link.ErrPeerAway.Code:
		return fmt.Sprintf("Start %s if it does not run. peer.url leads to %s: if that is not where it listens, correct it %s.", peer, n.Peer.URL, n.restart())
	case link.CodeSilent:
		return fmt.Sprintf("Start %s if it does not run. If it does: %s says why it does not call; its peer.url has to lead to this node.", peer, n.there("doctor"))
	case link.ErrPeerName.Code:
		return fmt.Sprintf("Let peer.name of each node be node.name of the other, and restart the one that was changed: this node is %s and calls the other %s.", n.Node.Name, peer)
	case link.ErrPeerStranger.Code:
		return fmt.Sprintf("peer.url is %s: correct it %s; or have the proxy in front of %s pass /peer/ on as it is.", n.Peer.URL, n.restart(), peer)
	case link.ErrPeerFailed.Code:
		return fmt.Sprintf("See what is wrong there: %s. This node goes on trying.", n.there("doctor"))
	case link.ErrPeerFull.Code:
		return fmt.Sprintf("Free some space on the machine of %s.", peer)
	case link.ErrPeerTooLarge.Code:
		return fmt.Sprintf("Raise the limit of the proxy in front of %s to 2 MiB (nginx: client_max_body_size 2m).", peer)
	case link.ErrPeerHasty.Code, link.ErrPeerAnew.Code:
		return fmt.Sprintf("Have the proxy in front of %s pass /peer/ on without a cache, and wait 75 s for an answer.", peer)
	case link.ErrPeerSelf.Code:
		return fmt.Sprintf("If this node is the copy: give it a node.name and a node.origin of its own %s after %s. If %s is: the same there.", n.restart(), n.line("adopt"), peer)
	case link.ErrPeerTwin.Code:
		return "Stop the one of the two that ought not to run: the other goes on by itself within three minutes. Reminders may ring at both until then. " +
			"Keep its folder: what was written there since the copy crosses when it runs once more while the other is stopped."
	case link.ErrPeerVersion.Code:
		return "Put the newer tandem in the place of the older one and restart that node. Nothing is lost meanwhile."
	case "bad_directory", "bad_push_tokens":
		return fmt.Sprintf("Run the same version of tandem on both nodes, and restart %s. It is asked for again by itself.", peer)
	case "disk_full":
		return fmt.Sprintf("Free some space on this machine, where %s is.", n.Node.Data)
	}
	return fmt.Sprintf("The log of this node says more. Then see what is wrong there: %s.", n.there("doctor"))
}
