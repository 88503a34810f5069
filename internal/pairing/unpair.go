package pairing

import (
	"context"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/push"
	"tandem/internal/sqlite"
)

// errAlone is said where there is nobody to part from.
var errAlone = fault.New(fault.Conflict, "no_peer", "This node's configuration names no peer: it is alone already, calls nobody and lets nobody in. There is nothing to do.")

// Unpaired is what the operator has to know afterwards.
type Unpaired struct {
	Peer        string
	SecretFixed bool // it stands in the configuration, and could not be replaced
	Home        bool // accounts lived at the peer
}

// Unpair locks the peer out first: killed after that, it is done again. The peer is out
// for good even where both name one file for the secret, or it could not be replaced.
func (p *Pairing) Unpair(ctx context.Context) (Unpaired, error) {
	done := Unpaired{Peer: p.Peer.Name, SecretFixed: !p.Keys.Writable(), Home: !p.Authority}
	if !p.Peer.On() {
		return done, errAlone
	}
	if err := p.Parting.begin(); err != nil {
		return done, err
	}
	p.Changed()
	p.Crash("unpair.marked")
	if !done.SecretFixed {
		if err := p.replaceSecret(config.NewSecret()); err != nil {
			return done, err
		}
	}
	p.Crash("unpair.locked")
	err := p.Todos.Write(ctx, func(tx *sqlite.Tx) error {
		if err := p.Log.ForgetPeerTx(tx); err != nil {
			return err
		}
		return push.ForgetGenerationTx(tx)
	})
	return done, err
}
