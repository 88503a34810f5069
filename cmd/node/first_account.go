package main

import (
	"context"
	"fmt"

	"tandem/internal/fault"
)

// ownedElsewhere refuses a first account at a node that was begun anew: the peer has
// brought rows back whose accounts it has as well, and who logs in with another one
// would not see them.
func (n *node) ownedElsewhere(ctx context.Context) error {
	refilled, err := n.refilled(ctx)
	if err != nil || !refilled {
		return err
	}
	return fault.New(fault.Conflict, "accounts_at_peer", "What is held here belongs to accounts that %[1]s has, and another account would not see it. %[2]s Accounts come from there. "+
		"If %[1]s is gone for good: take the section peer out %[3]s; then do this again.", n.Peer.Name, n.pairThem(), n.restart())
}

// refilled reports whether rows have come from the peer to this node, where accounts
// live, and no account has.
func (n *node) refilled(ctx context.Context) (bool, error) {
	if !n.Peer.On() || !n.authority() {
		return false, nil
	}
	known, err := n.users.Known(ctx)
	if err != nil || len(known) > 0 {
		return false, err
	}
	return n.log.HasRows(ctx)
}

// firstAccount says how somebody comes to have an account at a node without any, where
// accounts live: that of a pair may be one that was begun anew.
func (n *node) firstAccount(ctx context.Context) (string, error) {
	line := n.line("init") + " --email YOU@EXAMPLE.ORG"
	refilled, err := n.refilled(ctx)
	switch {
	case err != nil:
		return "", err
	case refilled:
		return fmt.Sprintf("%s. What is held here belongs to accounts that %s has: they come from there, and init makes none.", n.pairLines(), n.Peer.Name), nil
	case n.Peer.On():
		return fmt.Sprintf("%s; but where %s has accounts already, they come from there: %s", line, n.Peer.Name, n.pairLines()), nil
	}
	return line, nil
}

// examineAccounts looks whether anybody can log in, and says what is missing for that.
func (n *node) examineAccounts(ctx context.Context) finding {
	_, ok, err := n.users.FirstAdmin(ctx)
	if err == nil && ok {
		return finding{"accounts", fine, "there is an admin", ""}
	}
	if err == nil && n.authority() {
		var line string
		if line, err = n.firstAccount(ctx); err == nil {
			return finding{"accounts", warn, "nobody has an account", line}
		}
	}
	if err != nil {
		return finding{"accounts", fail, err.Error(), ""}
	}
	mend := "If nobody has one there: " + n.there("init --email YOU@EXAMPLE.ORG") + "."
	if s := n.linkState(); s.Broken() && s.Mend != "" {
		mend = s.Mend
	}
	return finding{"accounts", warn, "the accounts have not come from " + n.Peer.Name + " yet", mend}
}
