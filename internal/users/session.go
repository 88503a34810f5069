package users

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// SessionLife is how long a login lasts; using it does not prolong it.
const SessionLife = 24 * time.Hour

// A token is 256 random bits behind a prefix by which scanners for leaked secrets
// know it.
const (
	tokenPrefix = "tnd_"
	tokenBytes  = 32
	tokenLength = len(tokenPrefix) + 43
)

var (
	errCredentials = fault.New(fault.Unauthenticated, "wrong_credentials", "E-mail or password is wrong.")
	errNoSession   = fault.New(fault.Unauthenticated, "no_session", "You are not logged in at this node, or no longer. A token is good at the node that gave it.")
	errNotHereYet  = fault.New(fault.Unavailable, "accounts_not_here_yet", "The accounts have not come from the other node yet. Try again soon.").After(5 * time.Second)
)

// Identity is who a request comes from.
type Identity struct {
	UserID  string
	Email   string
	Role    Role
	Session [32]byte // SHA-256 of the token: names the session and does not open it
}

// keyOf returns what the file keeps of a token, and whether it has the form of one.
func keyOf(token string) (sessionKey, bool) {
	if len(token) != tokenLength || !strings.HasPrefix(token, tokenPrefix) {
		return sessionKey{}, false
	}
	var b [tokenLength]byte // not []byte(token), which would be on the heap
	copy(b[:], token)
	return sha256.Sum256(b[:]), true
}

// Login returns a new token and when it expires. An unknown address, a wrong password
// and a ban are one answer for one price, wrong_credentials. Where no account has
// come yet the answer is accounts_not_here_yet, which says nothing of the password.
func (s *Store) Login(ctx context.Context, email, password string) (token string, expires time.Time, err error) {
	email, _ = normalEmail(email) // one that is no address is one that nobody has
	who, err := s.credentials(ctx, email)
	if err != nil {
		return "", time.Time{}, err
	}
	ok, err := s.o.Hasher.Matches(ctx, password, who.hash)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("account %q: %w", who.id, err)
	}
	if !ok {
		return "", time.Time{}, errCredentials
	}
	err = s.db.Write(ctx, func(tx *sqlite.Tx) error {
		token = tokenPrefix + base64.RawURLEncoding.EncodeToString(tx.Random(tokenBytes))
		expires = tx.Now.Add(SessionLife)
		key, _ := keyOf(token)
		// The check was slow: a reset or a ban since it began leaves no account to
		// open a session for.
		n, err := tx.Exec(`
			INSERT INTO sessions (token_hash, user_id, password_version, created_at, expires_at)
			SELECT ?, id, password_version, ?, ?
			FROM users
			WHERE id = ? AND password_version = ? AND password_hash = ? AND disabled_at IS NULL`,
			key[:], tx.Millis(), expires.UnixMilli(), who.id, who.version, who.hash)
		if err == nil && n == 0 {
			err = errCredentials
		}
		return err
	})
	if err != nil {
		return "", time.Time{}, err
	}
	return token, expires, nil
}

// credentials are what a password is checked against; zero for an unknown address.
type credentials struct {
	id, hash string
	version  int64
}

func (s *Store) credentials(ctx context.Context, email string) (credentials, error) {
	return sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) (credentials, error) {
		c, found, err := sqlite.One(tx, func(r sqlite.Row) (c credentials, err error) {
			return c, r.Scan(&c.id, &c.hash, &c.version)
		}, `SELECT id, password_hash, password_version FROM users WHERE email = ?`, email)
		if err != nil || found || s.o.Authority {
			return c, err
		}
		some, err := anyoneTx(tx)
		if err == nil && !some {
			err = errNotHereYet
		}
		return c, err
	})
}

func anyoneTx(tx *sqlite.Tx) (bool, error) {
	_, found, err := sqlite.One(tx, sqlite.Value[int], `SELECT 1 FROM users LIMIT 1`)
	return found, err
}

// Logout ends the session of token. One that is not there has ended.
func (s *Store) Logout(ctx context.Context, token string) error {
	key, ok := keyOf(token)
	if !ok {
		return nil
	}
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		tx.AfterCommit(func() { s.cache.forget(key) })
		_, err := tx.Exec(`DELETE FROM sessions WHERE token_hash = ?`, key[:])
		return err
	})
}

// Authenticate returns who holds token, or no_session. Most answers come from memory;
// none outlives a committed logout, ban or new password, nor the token's day.
func (s *Store) Authenticate(ctx context.Context, token string) (Identity, error) {
	key, ok := keyOf(token)
	if !ok {
		return Identity{}, errNoSession
	}
	who, ok, epoch := s.cache.get(key, s.db.Now())
	if ok {
		return who, nil
	}
	e, found, err := s.session(ctx, key)
	if err != nil {
		return Identity{}, err
	}
	if !found {
		return Identity{}, errNoSession
	}
	s.cache.put(key, e, epoch)
	return e.identity, nil
}

// session looks the session up. A new password and a ban end sessions as they are
// written; that each look-up asks for both again is for the one that would forget.
func (s *Store) session(ctx context.Context, key sessionKey) (e entry, found bool, err error) {
	e, err = sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) (e entry, err error) {
		e, found, err = sqlite.One(tx, func(r sqlite.Row) (entry, error) {
			e := entry{identity: Identity{Session: key}}
			var expires int64
			err := r.Scan(&e.identity.UserID, &e.identity.Email, &e.identity.Role, &expires)
			e.expires = sqlite.Time(expires)
			return e, err
		}, `
			SELECT u.id, u.email, u.role, s.expires_at
			FROM sessions s
			JOIN users u ON u.id = s.user_id
			WHERE s.token_hash = ? AND s.expires_at > ?
			  AND s.password_version = u.password_version AND u.disabled_at IS NULL`, key[:], tx.Millis())
		return e, err
	})
	return e, found, err
}

// PurgeExpired deletes the sessions whose time is up.
func (s *Store) PurgeExpired(ctx context.Context) error {
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`DELETE FROM sessions WHERE expires_at <= ?`, tx.Millis())
		return err
	})
}

func endSessionsTx(tx *sqlite.Tx, user string) error {
	_, err := tx.Exec(`DELETE FROM sessions WHERE user_id = ?`, user)
	return err
}
