package pairing

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
func (p *Pairing) answerRotate(_ context.Context, presented string, in rotation) (rotated, error) {
	if err := p.pairable(); err != nil {
		return rotated{}, err
	}
	accept := p.Keys.Accept()
	if in.Finish {
		return rotated{}, p.replaceSecret(config.Secret(presented))
	}
	if len(accept) == 2 && string(accept[0]) == presented {
		return rotated{string(accept[1])}, nil
	}
	next := config.NewSecret()
	err := p.replaceSecret(config.Secret(presented), next)
	p.Crash("rotate.second")
	return rotated{string(next)}, err
}

// Rotate changes the secret from home. At each moment the one that home sends is
// one that the cloud accepts, so that a kill anywhere leaves a pair; done again, it
// goes on from there.
func (p *Pairing) Rotate(ctx context.Context) (Plan, error) {
	plan := Plan{Peer: p.Peer.Name}
	err := p.pairable()
	if err == nil && p.Caller == nil {
		err = errRotateNotHome
	}
	if err == nil && len(p.Keys.Accept()) == 2 { // killed between the steps
		err = p.finishRotation(ctx)
	}
	if err != nil {
		return plan, err
	}
	var next rotated
	if err := p.Caller.Call(ctx, http.MethodPost, "secret", rotation{}, &next); err != nil {
		return plan, p.away(err)
	}
	if next.Secret == "" {
		return plan, link.ErrPeerStranger
	}
	p.Crash("rotate.heard")
	if err := p.replaceSecret(config.Secret(next.Secret), p.Keys.Accept()[0]); err != nil {
		return plan, err
	}
	p.Crash("rotate.first")
	return plan, p.finishRotation(ctx)
}

// finishRotation leaves the secret that home sends as the only one, first there.
func (p *Pairing) finishRotation(ctx context.Context) error {
	if err := p.Caller.Call(ctx, http.MethodPost, "secret", rotation{Finish: true}, &rotated{}); err != nil {
		return p.away(err)
	}
	p.Crash("rotate.only")
	return p.replaceSecret(p.Keys.Accept()[0])
}
