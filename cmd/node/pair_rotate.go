package main

import (
	"context"
	"net/http"

	"tandem/internal/config"
	"tandem/internal/sync/link"
)

// rotation is one of the two calls that change the secret. Both carry the one that
// is to stay or to be replaced as their secret.
type rotation struct {
	Finish bool `json:"finish"` // the secret presented is the only one from now on
}

type rotated struct {
	Secret string `json:"secret,omitempty"` // the new one, accepted beside the other
}

// answerRotate is the cloud's half. Asked for a new secret again it gives the one
// it gave before, since that answer may have been lost.
func (n *node) answerRotate(_ context.Context, presented string, in rotation) (rotated, error) {
	if err := n.pairable(); err != nil {
		return rotated{}, err
	}
	accept := n.keys.Accept()
	if in.Finish {
		return rotated{}, n.replaceSecret(config.Secret(presented))
	}
	if len(accept) == 2 && string(accept[0]) == presented {
		return rotated{string(accept[1])}, nil
	}
	next := config.NewSecret()
	err := n.replaceSecret(config.Secret(presented), next)
	n.out.crash("rotate.second")
	return rotated{string(next)}, err
}

// pairRotate changes the secret from home. At each moment the one that home sends is
// one that the cloud accepts, so that a kill anywhere leaves a pair; done again, it
// goes on from there.
func (n *node) pairRotate(ctx context.Context, _ struct{}) (pairPlan, error) {
	plan := pairPlan{Peer: n.Peer.Name}
	err := n.pairable()
	if err == nil && n.client == nil {
		err = errNotHome
	}
	if err == nil && len(n.keys.Accept()) == 2 { // killed between the steps
		err = n.finishRotation(ctx)
	}
	if err != nil {
		return plan, err
	}
	var next rotated
	if err := n.peer.Call(ctx, http.MethodPost, "secret", rotation{}, &next); err != nil {
		return plan, err
	}
	if next.Secret == "" {
		return plan, link.ErrPeerStranger
	}
	n.out.crash("rotate.heard")
	if err := n.replaceSecret(config.Secret(next.Secret), n.keys.Accept()[0]); err != nil {
		return plan, err
	}
	n.out.crash("rotate.first")
	return plan, n.finishRotation(ctx)
}

// finishRotation leaves the secret that home sends as the only one, first there.
func (n *node) finishRotation(ctx context.Context) error {
	if err := n.peer.Call(ctx, http.MethodPost, "secret", rotation{Finish: true}, &rotated{}); err != nil {
		return err
	}
	n.out.crash("rotate.only")
	return n.replaceSecret(n.keys.Accept()[0])
}
