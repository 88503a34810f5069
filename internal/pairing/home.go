package pairing

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync/letters"
	"tandem/internal/sync/link"
)

// Request is what the operator brings to home.
type Request struct {
	Code      string
	Passwords map[string]string // of each account in the plan's Shared, by address
}

// Plan is what is going to happen, for the operator to read first.
type Plan struct {
	Peer   string
	Shared []string // addresses that have an account at both nodes
	Going  []string // addresses whose accounts go to the cloud
	Again  bool     // the two are a pair already
	Ours   []string // addresses of accounts that both have already, whose password stays as this node has it
	Theirs []string // likewise, as the cloud has it
	Met    int64    // when the cloud was last in touch with a home that may be another one than this, Unix ms; 0: never
}

// Look asks the cloud what pairing would do. Nothing changes.
func (p *Pairing) Look(ctx context.Context, in Request) (Plan, error) {
	_, answer, plan, err := p.askPair(ctx, in.Code)
	plan.Again = err == nil && answer.Again && !p.Parting.Parted()
	if plan.Again { // it is this one
		plan.Met = 0
	}
	return plan, err
}

// askPair looks, and returns the call with what was answered.
func (p *Pairing) askPair(ctx context.Context, code string) (visit, welcome, Plan, error) {
	plan := Plan{Peer: p.Peer.Name}
	err := p.pairable()
	if err == nil && p.Caller == nil {
		err = ErrNotHome
	}
	if err != nil {
		return visit{}, welcome{}, plan, err
	}
	call := visit{Hello: p.Hello(), Peer: p.Peer.Name, Knows: knows(p.Keys.Send(), code)}
	if call.Accounts, err = p.Users.Known(ctx); err != nil {
		return call, welcome{}, plan, err
	}
	answer, err := p.atTheDoor(ctx, code, call)
	if err != nil {
		return call, answer, plan, err
	}
	set, err := p.Users.PasswordTimes(ctx)
	if err != nil {
		return call, answer, plan, err
	}
	plan.Met = answer.Met
	lacking := map[string]bool{}
	for _, id := range answer.Lacking {
		lacking[id] = true
	}
	for _, k := range call.Accounts {
		if _, shared := answer.Matched[k.ID]; shared {
			plan.Shared = append(plan.Shared, k.Email)
		} else if lacking[k.ID] {
			plan.Going = append(plan.Going, k.Email)
		} else if there, both := answer.Passwords[k.ID]; both && set[k.ID] > there {
			plan.Ours = append(plan.Ours, k.Email)
		} else if both && set[k.ID] < there {
			plan.Theirs = append(plan.Theirs, k.Email)
		}
	}
	return call, answer, plan, nil
}

// atTheDoor makes the one call that goes without the secret.
func (p *Pairing) atTheDoor(ctx context.Context, code string, call visit) (a welcome, err error) {
	door := link.NewPeer(p.Peer.URL, p.Peer.Name, p.Node.Name, code, p.Transport)
	err = door.Call(ctx, http.MethodPost, "pair", call, &a)
	switch {
	case errors.Is(err, link.ErrPeerRefused):
		return a, ErrCode
	case err != nil:
		return a, p.away(err)
	case a.Refusal != nil:
		return a, a.Refusal
	}
	return a, a.Hello.Check(p.Hello(), p.Peer.Name)
}

// away says where the cloud was looked for, where it was not found.
func (p *Pairing) away(err error) error {
	if !errors.Is(err, link.ErrPeerAway) {
		return err
	}
	away := fault.New(fault.Unavailable, link.ErrPeerAway.Code, "%s cannot be reached at %s. Start it there, or correct peer.url in the configuration of this node, and do it again.", p.Peer.Name, p.Peer.URL)
	return away.Because(errors.Unwrap(err))
}

// Join makes the two nodes a pair: the cloud takes in the accounts that it lacks
// and opens its door; then what this node holds of accounts that both have becomes
// the cloud's account's, before anything of it is sent; then the cloud's accounts
// are copied, and last the secret is kept. Killed on the way, the same again with
// another code goes on from there.
func (p *Pairing) Join(ctx context.Context, in Request) (Plan, error) {
	call, looked, plan, err := p.askPair(ctx, in.Code)
	if err != nil {
		return plan, err
	}
	if err := p.prove(ctx, call, looked, in.Passwords); err != nil {
		return plan, err
	}
	call.Join, call.Matched = true, looked.Matched
	if call.Carried, err = p.Users.Carry(ctx, looked.Matched); err != nil {
		return plan, err
	}
	answer, err := p.atTheDoor(ctx, in.Code, call)
	if err == nil && (answer.Secret == "" || answer.Directory == nil) {
		err = link.ErrPeerStranger
	}
	if err != nil {
		return plan, err
	}
	p.Crash("pair.answered")
	if err := p.moveOwners(ctx, looked.Matched); err != nil {
		return plan, err
	}
	p.Crash("pair.moved")
	if err := p.Users.Join(ctx, answer.Directory.Generation, answer.Directory.Body); err != nil {
		return plan, err
	}
	p.Crash("pair.copied")
	if err := p.reunite(config.Secret(answer.Secret)); err != nil {
		return plan, err
	}
	p.Logger.InfoContext(ctx, "paired", "peer", p.Peer.Name, "accounts_moved", len(looked.Matched), "accounts_sent", len(looked.Lacking))
	return plan, nil
}

// prove checks that whoever has an account at both nodes wants them to be one.
func (p *Pairing) prove(ctx context.Context, call visit, looked welcome, passwords map[string]string) error {
	for _, k := range call.Accounts {
		if _, shared := looked.Matched[k.ID]; !shared {
			continue
		}
		password, asked := passwords[k.Email]
		if !asked {
			return errChanged
		}
		err := p.Users.Prove(ctx, k.ID, password)
		if fault.Of(err, fault.Unauthenticated) {
			err = errWrongPassword.Because(errors.New(k.Email))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveOwners makes what this node holds of one account another's, all of it in one
// commit.
func (p *Pairing) moveOwners(ctx context.Context, moved map[string]string) error {
	return p.Todos.Write(ctx, func(tx *sqlite.Tx) error {
		if err := p.moveRowsTx(tx, moved); err != nil {
			return err
		}
		if err := p.Tokens.JoinTx(tx, moved); err != nil {
			return fmt.Errorf("move devices: %w", err)
		}
		return nil
	})
}

// moveRowsTx is done at both nodes: the cloud may have rows of home's accounts from
// before its own were lost, and of one version with two owners it would be chance which
// stays.
func (p *Pairing) moveRowsTx(tx *sqlite.Tx, moved map[string]string) error {
	if err := p.Log.MoveOwnersTx(tx, moved); err != nil {
		return fmt.Errorf("move rows: %w", err)
	}
	if err := letters.MoveOwnersTx(tx, moved); err != nil {
		return fmt.Errorf("move letters: %w", err)
	}
	return sqlite.MoveKeysTx(tx, moved)
}
