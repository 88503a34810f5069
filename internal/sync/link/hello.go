package link

import (
	"encoding/json"
	"errors"
	"fmt"

	"tandem/internal/fault"
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
)

// Range is which protocols a version speaks.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Protocol is what this version speaks. Nodes that have a protocol in common
// understand each other whatever their own versions.
var Protocol = Range{1, 1}

// UnmarshalJSON reads a range, or one number for a range of one. From anything else,
// which a protocol to come might write, it reads one that fits nothing.
func (r *Range) UnmarshalJSON(b []byte) error {
	type plain Range
	if json.Unmarshal(b, (*plain)(r)) == nil {
		return nil
	}
	*r = Range{}
	if json.Unmarshal(b, &r.Max) == nil {
		r.Min = r.Max
	}
	return nil
}

// toldOf is how many entries in quarantine, and how many parked letters, a greeting
// tells of.
const toldOf = 100

// Hello is what each node says of itself, every 20 s.
type Hello struct {
	Node        string              `json:"node"`
	Peer        string              `json:"peer,omitempty"` // whom it takes the other for
	Origin      int64               `json:"origin"`
	Incarnation string              `json:"incarnation"`
	Protocol    Range               `json:"protocol"`
	Version     string              `json:"version"`
	Scheduler   string              `json:"scheduler"` // active, standby or off
	Now         int64               `json:"now"`       // Unix ms
	PageLimit   int                 `json:"page_limit"`
	Highest     map[string][2]int64 `json:"highest"`             // table to the largest id of each origin
	Aside       []sync.Quarantined  `json:"aside"`               // what it could not take or send, oldest first
	Parked      []letters.Parked    `json:"parked,omitempty"`    // letters that it could not take or send, newest first
	Compared    *Comparison         `json:"compared,omitempty"`  // the last one, from who makes them
	Compare     bool                `json:"compare,omitempty"`   // somebody there wants one, and the other is to make it
	Pending     *int64              `json:"pending,omitempty"`   // entries of its log that the other has not read
	SecretAt    string              `json:"secret_at,omitempty"` // tells the file of its secret from all others; empty: nobody knows
	Read        *string             `json:"read,omitempty"`      // how far it has read the other's log, as it stands in its file
	Process     Process             `json:"process,omitzero"`    // which run of the node it is
	aside       string              // how much is set aside, as asideOf has it; it does not cross
	Twin        *Process            `json:"twin,omitempty"` // another one that greets under the name of who greeted
}

// readHello reads a greeting as far as it can be read: one of another protocol may
// have another shape, and who says it is to be told apart from a stranger.
func readHello(b []byte) (h Hello, err error) {
	err = json.Unmarshal(b, &h)
	if _, shape := errors.AsType[*json.UnmarshalTypeError](err); shape && h.Node != "" && !h.Protocol.meets(Protocol) {
		err = nil
	}
	if err != nil {
		err = errShape
	}
	h.bound()
	return h, err
}

func (r Range) meets(o Range) bool { return r.Min <= o.Max && o.Min <= r.Max }

// Check returns why the node that said h cannot be the peer of the node that is me.
func (h Hello) Check(me Hello, name string) error {
	switch {
	case h.Node == "":
		return ErrPeerStranger.Because(errors.New("it does not say who it is"))
	case h.Node == me.Node || h.Origin == me.Origin || h.Incarnation == me.Incarnation && h.Incarnation != "":
		return ErrPeerSelf.Because(fmt.Errorf("it says that it is %.40q, origin %d", h.Node, h.Origin))
	case h.Node != name:
		return ErrPeerName.Because(fmt.Errorf("it says that it is %.40q, not %q", h.Node, name))
	case h.Peer != "" && h.Peer != me.Node:
		return ErrPeerName.Because(fmt.Errorf("it takes this node, %q, for %.40q", me.Node, h.Peer))
	case !h.Protocol.meets(me.Protocol):
		older, its := h, "there"
		if h.Protocol.Min > me.Protocol.Max {
			older, its = me, "here"
		}
		return fault.New(fault.Conflict, ErrPeerVersion.Code, "The two nodes speak different protocols, so nothing crosses. The older version is %s, %s on %s: upgrade it.",
			named(older.Version), its, older.Node).Because(fmt.Errorf("it speaks %d to %d, this node %d to %d", h.Protocol.Min, h.Protocol.Max, me.Protocol.Min, me.Protocol.Max))
	}
	return nil
}

func named(version string) string {
	if version == "" {
		return "one without a name"
	}
	return fmt.Sprintf("%.40q", version)
}
