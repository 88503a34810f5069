package link

import (
	"errors"
	"fmt"
)

// Protocol is the version of what crosses between the nodes. Nodes of one
// protocol understand each other whatever their own versions.
const Protocol = 1

// Hello is what each node says of itself.
type Hello struct {
	Node        string `json:"node"`
	Origin      int64  `json:"origin"`
	Incarnation string `json:"incarnation"`
	Protocol    int    `json:"protocol"`
	Version     string `json:"version"`
	Scheduler   string `json:"scheduler"` // active, standby or off
	Now         int64  `json:"now"`       // Unix ms
}

// Check returns why the node that said h cannot be the peer of the node that is me.
func (h Hello) Check(me Hello, name string) error {
	switch {
	case h.Node == "":
		return ErrPeerStranger.Because(errors.New("it does not say who it is"))
	case h.Node == me.Node || h.Origin == me.Origin:
		return ErrPeerSelf.Because(fmt.Errorf("it says that it is %.40q, origin %d", h.Node, h.Origin))
	case h.Node != name:
		return ErrPeerRefused.Because(fmt.Errorf("it says that it is %.40q, not %q", h.Node, name))
	case h.Protocol != me.Protocol:
		return ErrPeerVersion.Because(fmt.Errorf("it speaks %d, this node %d", h.Protocol, me.Protocol))
	}
	return nil
}
