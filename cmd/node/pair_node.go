package main

import (
	"context"

	"tandem/internal/pairing"
)

// What the verbs of pairing have the node do, in the shape that the control socket asks for.

func (n *node) openPairing(context.Context, struct{}) (pairing.Code, error) { return n.pairing.Open() }

func (n *node) pairLook(ctx context.Context, in pairing.Request) (pairing.Plan, error) {
	return n.pairing.Look(ctx, in)
}

func (n *node) pairJoin(ctx context.Context, in pairing.Request) (pairing.Plan, error) {
	return n.pairing.Join(ctx, in)
}

func (n *node) pairRotate(ctx context.Context, _ struct{}) (pairing.Plan, error) {
	return n.pairing.Rotate(ctx)
}

func (n *node) unpair(ctx context.Context, _ struct{}) (pairing.Unpaired, error) {
	return n.pairing.Unpair(ctx)
}

// keepPairing makes what this node needs to become one of a pair, or none any more.
func (n *node) keepPairing() {
	n.pairing = pairing.New(pairing.Options{
		Node: n.Node, Peer: n.Peer, Authority: n.authority(), Keys: n.keys, Parting: n.parting, Users: n.users, Todos: n.folder.todos, Log: n.log, Tokens: n.tokens,
		Hello: n.hello, Caller: n.peer, Transport: n.out.peer, Met: n.met, Changed: n.secretChanged, Now: n.out.now, Crash: n.out.crash, Logger: n.logger,
	})
}

// met is when the two were last in touch; 0 where they never were, or are parted.
func (n *node) met() int64 {
	s, _ := n.contact.State()
	return max(s.FetchedAt, s.OfferedAt)
}

// secretChanged has the peer be called by the secret that holds now, and at once; one
// that this node was parted from, no more.
func (n *node) secretChanged() {
	if n.peer == nil {
		return
	}
	n.peer.Present(n.keys.Send())
	n.unjoined.Present(n.keys.Send())
	n.client.Wake()
}
