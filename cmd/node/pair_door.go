package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/sync/link"
	"tandem/internal/users"
)

// What keeps two nodes from becoming a pair. The operator reads these, whichever
// node finds it.
var (
	errNoPeer      = fault.New(fault.Conflict, "no_peer", "This node's configuration names no peer. Add the section peer, with its name, url (at origin 0) and token_file, restart the node, and do it again.")
	errSecretFixed = fault.New(fault.Conflict, "secret_in_config", "The peer secret stands in the configuration (peer.token, or its variable), where only you can change it. Take it out, name a file in peer.token_file, restart the node, and do it again.")
	errCode        = fault.New(fault.Unauthenticated, "pair_code", "The code is wrong, or was used, or is older than 10 minutes. Have the other node print a new one: tandem pair")
	errChanged     = fault.New(fault.Conflict, "accounts_changed", "Accounts have changed while you were asked. Do it again.")
)

// pairCall is what home says at the cloud's door with a code in hand.
type pairCall struct {
	Hello    link.Hello        `json:"hello"`
	Peer     string            `json:"peer"`              // whom its configuration names
	Accounts []users.Known     `json:"accounts"`          // all that home has
	Join     bool              `json:"join"`              // false: only look
	Matched  map[string]string `json:"matched,omitempty"` // with Join: as it was answered before
	Carried  json.RawMessage   `json:"carried,omitempty"` // with Join: the accounts that the cloud lacks
}

// pairAnswer is what the cloud says to that.
type pairAnswer struct {
	Refusal   *fault.Error      `json:"refusal,omitempty"` // nothing was changed
	Hello     link.Hello        `json:"hello"`
	Matched   map[string]string `json:"matched,omitempty"` // home's id to the cloud's, of accounts of one address
	Lacking   []string          `json:"lacking,omitempty"` // home's ids that the cloud does not know
	Secret    string            `json:"secret,omitempty"`  // with Join
	Directory *link.Whole       `json:"directory,omitempty"`
}

type pairCode struct {
	Code  string
	Until time.Time
	Peer  string
}

// pairable says what keeps this node from changing the secret it shares.
func (n *node) pairable() error {
	switch {
	case !n.Peer.On():
		return errNoPeer
	case !n.keys.Writable():
		return errSecretFixed
	}
	return nil
}

// openPairing makes a code for the operator to take home.
func (n *node) openPairing(context.Context, struct{}) (pairCode, error) {
	if err := n.pairable(); err != nil {
		return pairCode{}, err
	}
	code, until := n.pairing.open(n.out.now())
	return pairCode{code, until, n.Peer.Name}, nil
}

// admit is asked of each call at the door, before a byte of it is read.
func (n *node) admit(code string) bool { return n.pairing.admit(code, n.out.now()) }

// answerPair answers home, who has a code. A look changes nothing. To join spends
// the code: home's accounts that are not here yet are taken in, then the new secret
// is in the file, then home hears of it. Killed on the way, home comes again with
// another code and finds done what was done.
func (n *node) answerPair(ctx context.Context, code string, in pairCall) (pairAnswer, error) {
	out, err := n.lookAt(ctx, in)
	if err == nil && in.Join {
		err = n.join(ctx, code, in, &out)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		n.logger.WarnContext(ctx, "pairing refused", "code", f.Code)
		return pairAnswer{Refusal: f, Hello: n.hello()}, nil
	}
	return out, err
}

func (n *node) lookAt(ctx context.Context, in pairCall) (pairAnswer, error) {
	out := pairAnswer{Hello: n.hello()}
	if in.Hello.Node != n.Peer.Name || in.Peer != n.Node.Name {
		return out, fault.New(fault.Conflict, "pair_names", "The two configurations do not name each other: %s names %s, and %.40q names %.40q. "+
			"Let peer.name of each be node.name of the other, restart, and do it again.", n.Node.Name, n.Peer.Name, in.Hello.Node, in.Peer)
	}
	if err := cmp.Or(n.pairable(), in.Hello.Check(n.hello(), n.Peer.Name)); err != nil {
		return out, err
	}
	have, err := n.users.Known(ctx)
	if err != nil {
		return out, err
	}
	here, addresses := map[string]bool{}, map[string]string{}
	for _, k := range have {
		here[k.ID], addresses[k.Email] = true, k.ID
	}
	for _, k := range in.Accounts {
		switch to, taken := addresses[k.Email]; {
		case here[k.ID]: // the same account, whatever its address is by now
		case taken:
			if out.Matched == nil {
				out.Matched = map[string]string{}
			}
			out.Matched[k.ID] = to
		default:
			out.Lacking = append(out.Lacking, k.ID)
		}
	}
	return out, nil
}

func (n *node) join(ctx context.Context, code string, in pairCall, out *pairAnswer) error {
	if !maps.Equal(in.Matched, out.Matched) {
		return errChanged
	}
	if !n.pairing.spend(code, n.out.now()) {
		return errCode
	}
	if len(out.Lacking) > 0 {
		if err := n.users.TakeIn(ctx, in.Carried); err != nil {
			return err
		}
	}
	n.out.crash("pair.taken")
	generation, body, err := n.users.Export(ctx)
	if err != nil {
		return err
	}
	if err := n.replaceSecret(config.NewSecret()); err != nil {
		return err
	}
	n.out.crash("pair.opened")
	out.Secret, out.Directory = n.keys.Send(), &link.Whole{Generation: generation, Body: body}
	n.logger.InfoContext(ctx, "paired", "peer", n.Peer.Name, "accounts_taken_in", len(out.Lacking))
	return nil
}
