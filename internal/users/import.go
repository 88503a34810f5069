package users

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// ErrPutBack refuses a directory that lacks an account held here, or has an older
// part of one: no account ever goes, so the authority's file was lost or put back.
// TakeIn there, of what Carry returns here, mends it.
var ErrPutBack = fault.New(fault.Conflict, "accounts_put_back", "The accounts at the other node are older than those here, or some are missing there, "+
	"as after its folder was lost. Those here stay. Run tandem pair there, and tandem pair CODE here: both will have all of them.")

// Import makes the directory that came from the authority the one held here, in one
// commit: a crash leaves the old one or the new one. A new password or a ban ends the
// account's sessions here too. The generation held, or an older one of its
// incarnation, changes nothing. A body that is not a whole directory is bad_directory
// and changes nothing, and one from an authority that lost its file or was put back is
// ErrPutBack: it must neither lock anybody out nor undo a password or a ban. Where all
// that it lacks are accounts whose addresses are another's there, which TakeIn cannot
// mend, it is ErrPutBack and all others are taken over nonetheless: a ban among them must
// not wait for somebody to pair.
//
// Where accounts are held that were made here, before there was an authority, the same
// is ErrUnjoined: what they own would be nobody's. Join takes it.
func (s *Store) Import(ctx context.Context, generation string, body []byte) error {
	return s.take(ctx, generation, body, func(come, have []record) ([]record, error) {
		switch {
		case !behind(come, have):
			return come, nil
		case s.Unjoined():
			return nil, ErrUnjoined
		}
		if rest, taken := apartFrom(come, have); len(taken) > 0 && !behind(rest, have) {
			return rest, ErrPutBack.Because(fmt.Errorf("another account has the address there: %s", strings.Join(taken, ", ")))
		}
		return nil, ErrPutBack
	})
}

// Join is Import of any directory, once what the accounts own that are held here has
// become the authority's accounts'. Those that it lacks go, with their sessions.
func (s *Store) Join(ctx context.Context, generation string, body []byte) error {
	return s.take(ctx, generation, body, func(come, _ []record) ([]record, error) { return come, nil })
}

// take has the accounts held here become those that choose returns, which are none where
// it is all refused. Those that it returns with an error are not the directory that came,
// and go by the name of the one before.
func (s *Store) take(ctx context.Context, generation string, body []byte, choose func(come, have []record) ([]record, error)) error {
	if s.o.Authority {
		return fault.New(fault.Conflict, "accounts_live_here", "Accounts are kept by this node; it takes no directory from another.")
	}
	g, ok := parseGeneration(generation)
	if !ok {
		return errBadDirectory.Because(errors.New("no generation"))
	}
	accounts, err := parse(body)
	if err != nil {
		return errBadDirectory.Because(err)
	}
	var in error
	err = s.db.Write(ctx, func(tx *sqlite.Tx) error {
		held, err := heldTx(tx)
		if err != nil || held.includes(g) {
			return err
		}
		have, err := recordsTx(tx)
		if err != nil {
			return err
		}
		var next []record
		if next, in = choose(accounts, have); in != nil {
			if g = held; next == nil || g.String() == "" || !behind(have, next) {
				return nil
			}
		}
		if err := replaceTx(tx, have, next); err != nil {
			return err
		}
		tx.AfterCommit(func() {
			s.o.Log.Info("directory taken over", "generation", g.String(), "accounts", len(next), "before", len(have))
		})
		return s.changedTx(tx, g)
	})
	return cmp.Or(err, in)
}

// replaceTx turns the accounts held into those that came.
func replaceTx(tx *sqlite.Tx, have, come []record) error {
	next := make(map[string]record, len(come))
	for _, a := range come {
		next[a.ID] = a
	}
	for _, old := range have {
		if err := makeRoomTx(tx, old, next); err != nil {
			return err
		}
	}
	for _, a := range come {
		if err := storeTx(tx, a); err != nil {
			return err
		}
	}
	return nil
}

// makeRoomTx ends what of an account held here does not go on, and frees an address
// that it gives up, since another may be about to take it.
func makeRoomTx(tx *sqlite.Tx, old record, next map[string]record) error {
	a, stays := next[old.ID]
	if !stays {
		_, err := tx.Exec(`DELETE FROM users WHERE id = ?`, old.ID) // and its sessions
		return err
	}
	if a.Email != old.Email {
		if _, err := tx.Exec(`UPDATE users SET email = id WHERE id = ?`, old.ID); err != nil {
			return err
		}
	}
	// A restored authority may count to the same version with another password.
	if a.PasswordVersion != old.PasswordVersion || a.PasswordHash != old.PasswordHash || a.DisabledAt != nil {
		return endSessionsTx(tx, old.ID)
	}
	return nil
}

func storeTx(tx *sqlite.Tx, a record) error {
	_, err := tx.Exec(`
		INSERT INTO users (id, email, password_hash, role, password_version, disabled_at, created_at, updated_at, password_at, ban_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET
		  email = excluded.email,
		  password_hash = excluded.password_hash,
		  role = excluded.role,
		  password_version = excluded.password_version,
		  disabled_at = excluded.disabled_at,
		  created_at = excluded.created_at,
		  updated_at = excluded.updated_at,
		  password_at = excluded.password_at,
		  ban_at = excluded.ban_at`,
		a.ID, a.Email, a.PasswordHash, a.Role, a.PasswordVersion, a.DisabledAt, a.CreatedAt, a.UpdatedAt, a.PasswordAt, a.BanAt)
	return err
}
