// Package pairing makes two nodes a pair by a one-time code, changes the secret they
// share, and ends it. What crosses between two that are a pair is package link's; what an
// operator types and reads is the verbs' of cmd/node.
package pairing

import (
	"log/slog"
	"net/http"
	"time"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/push"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
	"tandem/internal/users"
)

// What keeps two nodes from becoming a pair. The operator reads these, whichever
// node finds it.
var (
	ErrNoPeer        = fault.New(fault.Conflict, "no_peer", "This node's configuration names no peer. Add the section peer, with its name, url (at origin 0) and token_file, restart the node, and do it again.")
	ErrSecretFixed   = fault.New(fault.Conflict, "secret_in_config", "The peer secret stands in the configuration (peer.token, or its variable), where only you can change it. Take it out, name a file in peer.token_file, restart the node, and do it again.")
	ErrCode          = fault.New(fault.Unauthenticated, "pair_code", "The code is wrong, or was used, or is older than 10 minutes. Have the other node print a new one: tandem pair --config FILE, with its configuration.")
	errChanged       = fault.New(fault.Conflict, "accounts_changed", "Accounts have changed while you were asked. Do it again.")
	ErrNotHome       = fault.New(fault.Conflict, "not_home", "This node is called and does not call. Do this at home, the node of origin 0, with its --config; here, tandem pair --config FILE without a code prints one.")
	errRotateNotHome = fault.New(fault.Conflict, "not_home", "The secret is changed from home, the node of origin 0, which calls this one. Run tandem pair --rotate there, with the --config of that node.")
	errWrongPassword = fault.New(fault.Unauthenticated, "wrong_password", "That is not the password of the account at this node. Nothing was changed.")
)

// Pairing is what one node has to do with becoming one of a pair, whichever it is. Its
// methods may be called from many goroutines.
type Pairing struct {
	Options
	codes codes
}

// Options are the parts of a node that pairing reads and changes.
type Options struct {
	Node      config.Node
	Peer      config.Peer
	Authority bool // accounts live here
	Keys      *config.Keyring
	Parting   *Parting
	Users     *users.Store
	Todos     *sqlite.DB
	Log       *sync.Log
	Tokens    *push.Tokens
	Hello     func() link.Hello
	Caller    *link.Peer        // by the secret; nil: this node does not call
	Transport http.RoundTripper // for the call that goes by a code
	Met       func() int64      // when this node was last in touch with its peer, Unix ms; 0: never, or parted from it
	Changed   func()            // called when another secret holds, and when the nodes are parted or a pair again
	Now       func() time.Time
	Crash     func(point string) // called at the points pair.*, rotate.* and unpair.*
	Logger    *slog.Logger
}

// New returns the pairing of a node, with no code that is good.
func New(o Options) *Pairing { return &Pairing{Options: o} }

// pairable says what keeps this node from changing the secret it shares.
func (p *Pairing) pairable() error {
	switch {
	case !p.Peer.On():
		return ErrNoPeer
	case !p.Keys.Writable():
		return ErrSecretFixed
	}
	return nil
}

// Calls are what the peer may bring to a node that is called.
func (p *Pairing) Calls() []link.Call {
	return []link.Call{link.Answering("pair", p.answer), link.Answering("secret", p.answerRotate)}
}

// reunite keeps the secret of a new pair, and forgets that the two were parted. The
// secret holds whatever becomes of the mark.
func (p *Pairing) reunite(secret config.Secret) error {
	if err := p.Keys.Replace(secret); err != nil {
		return err
	}
	err := p.Parting.end()
	p.Changed()
	return err
}

// replaceSecret keeps another secret, or two for as long as it changes, and has them
// hold at once.
func (p *Pairing) replaceSecret(accept ...config.Secret) error {
	if err := p.Keys.Replace(accept...); err != nil {
		return err
	}
	p.Changed()
	return nil
}
