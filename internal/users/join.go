package users

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// errAccountsMoved refuses to take in an account whose address or id has become
// another's since it was asked about.
var errAccountsMoved = fault.New(fault.Conflict, "accounts_changed", "The accounts at the other node have changed meanwhile. Do it once more.")

// ErrUnjoined is what keeps a node that was alone from its peer: taking over the
// accounts of that one would leave what its own have to nobody.
var ErrUnjoined = fault.New(fault.Conflict, "accounts_not_joined", "This node has accounts of its own, and has not been joined with the other node. Run tandem pair there, and tandem pair CODE here, each with the --config of its node.")

// Unjoined reports whether this node was the authority and has accounts from then,
// and no directory has come in their place. It reads memory only.
func (s *Store) Unjoined() bool { return s.unjoined.Load() }

func unjoinedTx(tx *sqlite.Tx) (bool, error) {
	_, found, err := sqlite.One(tx, sqlite.Value[int], `SELECT 1 FROM directory WHERE own = 1 AND EXISTS (SELECT 1 FROM users)`)
	return found, err
}

// Known names an account, and says no more of it.
type Known struct {
	ID    string `json:"id"`
	Email string `json:"email"`
}

// Known returns every account of this node, by address.
func (s *Store) Known(ctx context.Context) ([]Known, error) {
	return sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) ([]Known, error) {
		return sqlite.All(tx, func(r sqlite.Row) (k Known, err error) {
			return k, r.Scan(&k.ID, &k.Email)
		}, `SELECT id, email FROM users ORDER BY email`)
	})
}

// Prove returns nil where password is that of the account, and wrong_credentials
// otherwise. It opens no session, and a ban does not matter: it is asked who gives
// the account's rows to another node's account.
func (s *Store) Prove(ctx context.Context, id, password string) error {
	hash, _, err := sqlite.ReadOne(ctx, s.db, sqlite.Value[string], `SELECT password_hash FROM users WHERE id = ?`, id)
	if err != nil {
		return err
	}
	ok, err := s.o.Hasher.Matches(ctx, password, hash)
	if err != nil {
		return fmt.Errorf("account %q: %w", id, err)
	}
	if !ok {
		return errCredentials
	}
	return nil
}

// Carry returns all accounts of this node as JSON, hashes included, for TakeIn at the
// authority; but for those that have become others there, by id.
func (s *Store) Carry(ctx context.Context, matched map[string]string) ([]byte, error) {
	all, err := sqlite.Read(ctx, s.db, recordsTx)
	if err != nil {
		return nil, err
	}
	carried := slices.DeleteFunc(all, func(a record) bool { return matched[a.ID] != "" })
	return json.Marshal(directory{append([]record{}, carried...)})
}

// TakeIn adds accounts that another node held, with their ids, passwords and roles, in
// one commit. Of one that is here already the newer password and the
// newer ban stay, and one that comes so ends its sessions: to take them in twice is to
// do it once. One whose address is another account's here stays out, and that is
// accounts_changed once all others are in; Clashing tells of it until they come without.
func (s *Store) TakeIn(ctx context.Context, body []byte) error {
	if err := s.own(); err != nil {
		return err
	}
	come, err := parse(body)
	if err != nil {
		return errBadDirectory.Because(err)
	}
	var clashing []string
	err = s.change(ctx, func(tx *sqlite.Tx) (changed bool, err error) {
		have, err := recordsTx(tx)
		if err != nil {
			return false, err
		}
		clashing = nil
		for _, a := range come {
			if slices.ContainsFunc(have, func(h record) bool { return h.ID != a.ID && h.Email == a.Email }) {
				clashing = append(clashing, a.Email)
				continue
			}
			took, err := takeInTx(tx, have, a)
			if err != nil {
				return false, err
			}
			changed = changed || took
		}
		return changed, nil
	})
	if err != nil {
		return err
	}
	s.clashing.Store(&clashing)
	if len(clashing) > 0 {
		return errAccountsMoved
	}
	return nil
}

// Clashing returns the addresses of accounts that the last TakeIn left out. It reads
// memory only: after a restart the other node offers them again.
func (s *Store) Clashing() []string {
	if all := s.clashing.Load(); all != nil {
		return *all
	}
	return nil
}

func takeInTx(tx *sqlite.Tx, have []record, a record) (bool, error) {
	for _, h := range have {
		switch {
		case h.ID == a.ID && !a.newer(h):
			return false, nil
		case h.ID == a.ID:
			a = h.merge(a)
			if err := makeRoomTx(tx, h, map[string]record{a.ID: a}); err != nil {
				return false, err
			}
		}
	}
	return true, storeTx(tx, a)
}

// StartOverTx makes a file that is an older one fit to be gone on with: all sessions
// end, and a copied directory goes by no name, so that whatever the authority has is
// newer.
func StartOverTx(tx *sqlite.Tx) error {
	if _, err := tx.Exec(`DELETE FROM sessions`); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM directory WHERE own = 0`)
	return err
}

// AdoptTx is StartOverTx for another node's file: its accounts are no longer anybody's
// own.
func AdoptTx(tx *sqlite.Tx) error {
	if err := StartOverTx(tx); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM directory`)
	return err
}
