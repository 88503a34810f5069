package main

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

var (
	errNotHome     = fault.New(fault.Conflict, "not_home", "This node is called and does not call. Do this at the node of origin 0; here, tandem pair without a code prints one.")
	errHerPassword = fault.New(fault.Unauthenticated, "wrong_password", "That is not the password of the account at this node. Nothing was changed.")
)

// pairRequest is what the operator brings to home.
type pairRequest struct {
	Code      string
	Passwords map[string]string // of each account in the plan's Shared, by address
}

// pairPlan is what is going to happen, for the operator to read first.
type pairPlan struct {
	Peer   string
	Shared []string // addresses that have an account at both nodes
	Going  []string // addresses whose accounts go to the cloud
}

// pairLook asks the cloud what pairing would do. Nothing changes.
func (n *node) pairLook(ctx context.Context, in pairRequest) (pairPlan, error) {
	_, _, plan, err := n.askPair(ctx, in.Code)
	return plan, err
}

// askPair looks, and returns the call with what was answered.
func (n *node) askPair(ctx context.Context, code string) (pairCall, pairAnswer, pairPlan, error) {
	plan := pairPlan{Peer: n.Peer.Name}
	err := n.pairable()
	if err == nil && n.client == nil {
		err = errNotHome
	}
	if err != nil {
		return pairCall{}, pairAnswer{}, plan, err
	}
	call := pairCall{Hello: n.hello(), Peer: n.Peer.Name}
	if call.Accounts, err = n.users.Known(ctx); err != nil {
		return call, pairAnswer{}, plan, err
	}
	answer, err := n.atTheDoor(ctx, code, call)
	if err != nil {
		return call, answer, plan, err
	}
	lacking := map[string]bool{}
	for _, id := range answer.Lacking {
		lacking[id] = true
	}
	for _, k := range call.Accounts {
		if _, shared := answer.Matched[k.ID]; shared {
			plan.Shared = append(plan.Shared, k.Email)
		} else if lacking[k.ID] {
			plan.Going = append(plan.Going, k.Email)
		}
	}
	return call, answer, plan, nil
}

// atTheDoor makes the one call that goes without the secret.
func (n *node) atTheDoor(ctx context.Context, code string, call pairCall) (a pairAnswer, err error) {
	door := link.NewPeer(n.Peer.URL, n.Peer.Name, n.Node.Name, code, n.out.peer)
	err = door.Call(ctx, http.MethodPost, "pair", call, &a)
	switch {
	case errors.Is(err, link.ErrPeerRefused):
		return a, errCode
	case err != nil:
		return a, err
	case a.Refusal != nil:
		return a, a.Refusal
	}
	return a, a.Hello.Check(n.hello(), n.Peer.Name)
}

// pairJoin makes the two nodes a pair: the cloud takes in the accounts that it lacks
// and opens its door; then what this node holds of accounts that both have becomes
// the cloud's account's, before anything of it is sent; then the cloud's accounts
// are copied, and last the secret is kept. Killed on the way, the same again with
// another code goes on from there.
func (n *node) pairJoin(ctx context.Context, in pairRequest) (pairPlan, error) {
	call, looked, plan, err := n.askPair(ctx, in.Code)
	if err != nil {
		return plan, err
	}
	if err := n.prove(ctx, call, looked, in.Passwords); err != nil {
		return plan, err
	}
	call.Join, call.Matched = true, looked.Matched
	if call.Carried, err = n.users.Carry(ctx, looked.Lacking); err != nil {
		return plan, err
	}
	answer, err := n.atTheDoor(ctx, in.Code, call)
	if err == nil && (answer.Secret == "" || answer.Directory == nil) {
		err = link.ErrPeerStranger
	}
	if err != nil {
		return plan, err
	}
	n.out.crash("pair.answered")
	if err := n.moveOwners(ctx, looked.Matched); err != nil {
		return plan, err
	}
	n.out.crash("pair.moved")
	if err := n.users.Join(ctx, answer.Directory.Generation, answer.Directory.Body); err != nil {
		return plan, err
	}
	n.out.crash("pair.copied")
	if err := n.replaceSecret(config.Secret(answer.Secret)); err != nil {
		return plan, err
	}
	n.logger.InfoContext(ctx, "paired", "peer", n.Peer.Name, "accounts_moved", len(looked.Matched), "accounts_sent", len(looked.Lacking))
	return plan, nil
}

// prove checks that whoever has an account at both nodes wants them to be one.
func (n *node) prove(ctx context.Context, call pairCall, looked pairAnswer, passwords map[string]string) error {
	for _, k := range call.Accounts {
		if _, shared := looked.Matched[k.ID]; !shared {
			continue
		}
		password, asked := passwords[k.Email]
		if !asked {
			return errChanged
		}
		err := n.users.Prove(ctx, k.ID, password)
		if fault.Of(err, fault.Unauthenticated) {
			err = errHerPassword.Because(errors.New(k.Email))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveOwners makes what this node holds of one account another's, all of it in one
// commit.
func (n *node) moveOwners(ctx context.Context, moved map[string]string) error {
	return n.folder.todos.Write(ctx, func(tx *sqlite.Tx) error {
		if err := n.log.MoveOwnersTx(tx, moved); err != nil {
			return fmt.Errorf("move rows: %w", err)
		}
		if err := n.tokens.JoinTx(tx, moved); err != nil {
			return fmt.Errorf("move devices: %w", err)
		}
		if err := letters.MoveOwnersTx(tx, moved); err != nil {
			return fmt.Errorf("move letters: %w", err)
		}
		return sqlite.MoveKeysTx(tx, moved)
	})
}

// replaceSecret keeps another secret, or two for as long as it changes, and has them
// hold at once.
func (n *node) replaceSecret(accept ...config.Secret) error {
	if err := n.keys.Replace(accept...); err != nil {
		return err
	}
	if n.peer != nil {
		n.peer.Present(n.keys.Send())
		n.unjoined.Present(n.keys.Send())
		n.client.Wake()
	}
	return nil
}
