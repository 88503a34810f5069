package users

import (
	"context"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

var (
	errInitialised = fault.New(fault.Conflict, "already_initialised", "This node has accounts already; init makes the first one only.")
	errNoUser      = fault.New(fault.NotFound, "user_not_found", "There is no such account.")
)

// Init makes the first account, an admin. It refuses where any account exists, and
// where accounts live elsewhere. Of two at once one wins.
func (s *Store) Init(ctx context.Context, email, password string) (Account, error) {
	if err := s.own(); err != nil {
		return Account{}, err
	}
	email, ok := normalEmail(email)
	bad := errInvalid
	if !ok {
		bad = badEmail(bad)
	}
	if !passwordFits(password) {
		bad = badPassword(bad)
	}
	if len(bad.Fields) > 0 {
		return Account{}, bad
	}
	hash, err := s.o.Hasher.Hash(ctx, password)
	if err != nil {
		return Account{}, err
	}
	var a Account
	err = s.change(ctx, func(tx *sqlite.Tx) (bool, error) {
		a = Account{ID: tx.NewID(), Email: email, Role: Admin, CreatedAt: tx.Now, UpdatedAt: tx.Now}
		n, err := tx.Exec(`
			INSERT INTO users (id, email, password_hash, role, created_at, updated_at, password_at, ban_at)
			SELECT ?1, ?2, ?3, ?4, ?5, ?5, ?5, ?5
			WHERE NOT EXISTS (SELECT 1 FROM users)`,
			a.ID, a.Email, hash, a.Role, tx.Millis())
		if err == nil && n == 0 {
			err = errInitialised
		}
		return true, err
	})
	if err != nil {
		return Account{}, err
	}
	return a, nil
}

// SetPassword replaces the account's password and ends its sessions on this node in
// the same commit; on the other node they end as the directory arrives.
func (s *Store) SetPassword(ctx context.Context, id, password string) error {
	if err := s.own(); err != nil {
		return err
	}
	if !passwordFits(password) {
		return badPassword(errInvalid)
	}
	hash, err := s.o.Hasher.Hash(ctx, password)
	if err != nil {
		return err
	}
	return s.change(ctx, func(tx *sqlite.Tx) (bool, error) {
		n, err := tx.Exec(`
			UPDATE users
			SET password_hash = ?1, password_version = password_version + 1,
			    updated_at = max(?2, updated_at + 1), password_at = max(?2, updated_at + 1)
			WHERE id = ?3`, hash, tx.Millis(), id)
		if err != nil {
			return false, err
		}
		if n == 0 {
			return false, errNoUser
		}
		return true, endSessionsTx(tx, id)
	})
}

// Disable bans the account: its sessions end in the same commit, it cannot log in,
// and what it owns stays. Again is fine, and keeps the first time.
func (s *Store) Disable(ctx context.Context, id string) error {
	return s.setDisabled(ctx, id, `
		UPDATE users
		SET disabled_at = ?1, updated_at = max(?1, updated_at + 1), ban_at = max(?1, updated_at + 1)
		WHERE id = ?2 AND disabled_at IS NULL`)
}

// Enable lifts a ban. The sessions that it ended stay ended.
func (s *Store) Enable(ctx context.Context, id string) error {
	return s.setDisabled(ctx, id, `
		UPDATE users
		SET disabled_at = NULL, updated_at = max(?1, updated_at + 1), ban_at = max(?1, updated_at + 1)
		WHERE id = ?2 AND disabled_at IS NOT NULL`)
}

func (s *Store) setDisabled(ctx context.Context, id, update string) error {
	if err := s.own(); err != nil {
		return err
	}
	return s.change(ctx, func(tx *sqlite.Tx) (bool, error) {
		n, err := tx.Exec(update, tx.Millis(), id)
		if err != nil {
			return false, err
		}
		if n == 0 {
			return false, mustExistTx(tx, id)
		}
		return true, endSessionsTx(tx, id)
	})
}

func mustExistTx(tx *sqlite.Tx, id string) error {
	_, found, err := sqlite.One(tx, sqlite.Value[int], `SELECT 1 FROM users WHERE id = ?`, id)
	if err == nil && !found {
		err = errNoUser
	}
	return err
}

// change runs do, and where it did change accounts, counts the directory one further.
func (s *Store) change(ctx context.Context, do func(*sqlite.Tx) (changed bool, err error)) error {
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		changed, err := do(tx)
		if err != nil || !changed {
			return err
		}
		held, err := heldTx(tx)
		if err != nil {
			return err
		}
		return s.changedTx(tx, generation{held.incarnation, held.n + 1})
	})
}
