package users

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// errBadDirectory is met by its code; its cause says what was wrong, and no value.
var errBadDirectory = fault.New(fault.Malformed, "bad_directory", "The account directory from the other node cannot be used; the one held here stays.")

// record is an account as it crosses: the row itself. Fields that a newer authority
// adds are passed over.
type record struct {
	ID              string `json:"id"`
	Email           string `json:"email"`
	PasswordHash    string `json:"password_hash"`
	Role            Role   `json:"role"`
	PasswordVersion int64  `json:"password_version"`
	DisabledAt      *int64 `json:"disabled_at"` // ms, as are the others
	CreatedAt       int64  `json:"created_at"`
	UpdatedAt       int64  `json:"updated_at"`
	PasswordAt      int64  `json:"password_at"` // 0 from a node that keeps updated_at alone
	BanAt           int64  `json:"ban_at"`      // likewise
}

// directory is the whole of what crosses.
type directory struct {
	Accounts []record `json:"accounts"`
}

func recordsTx(tx *sqlite.Tx) ([]record, error) {
	return sqlite.All(tx, func(r sqlite.Row) (a record, err error) {
		return a, r.Scan(&a.ID, &a.Email, &a.PasswordHash, &a.Role, &a.PasswordVersion, &a.DisabledAt, &a.CreatedAt, &a.UpdatedAt, &a.PasswordAt, &a.BanAt)
	}, `
		SELECT id, email, password_hash, role, password_version, disabled_at, created_at, updated_at, password_at, ban_at
		FROM users
		ORDER BY id`)
}

// Export returns every account, hashes included, as JSON for the peer, and the
// generation that names this state. It is the authority's to give.
func (s *Store) Export(ctx context.Context) (generation string, body []byte, err error) {
	if err := s.own(); err != nil {
		return "", nil, err
	}
	d, err := sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) (d directory, err error) {
		held, err := heldTx(tx)
		if err != nil {
			return d, err
		}
		generation = held.String()
		d.Accounts, err = recordsTx(tx)
		return d, err
	})
	if err != nil {
		return "", nil, err
	}
	if d.Accounts == nil {
		d.Accounts = []record{} // an empty list, which null is not
	}
	body, err = json.Marshal(d)
	return generation, body, err
}

// parse reads a directory and checks all of it.
func parse(body []byte) ([]record, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("not UTF-8") // encoding/json would mend it in silence
	}
	var d directory
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&d); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	if d.Accounts == nil {
		return nil, errors.New("no list of accounts")
	}
	ids, emails := map[string]bool{}, map[string]bool{}
	for i, a := range d.Accounts {
		if why := a.unsound(); why != "" {
			return nil, fmt.Errorf("account %d: %s", i, why)
		}
		if ids[a.ID] || emails[a.Email] {
			return nil, fmt.Errorf("account %d is there twice", i)
		}
		ids[a.ID], emails[a.Email] = true, true
		d.Accounts[i] = a.timed()
	}
	return d.Accounts, nil
}

// unsound says what is wrong with the record, or nothing.
func (a record) unsound() string {
	id, err := ulid.ParseStrict(a.ID)
	email, ok := normalEmail(a.Email)
	switch {
	case err != nil || id.String() != a.ID:
		return "id"
	case !ok || email != a.Email:
		return "email"
	case !soundHash(a.PasswordHash):
		return "password_hash"
	case a.Role != Admin && a.Role != User:
		return "role"
	case a.PasswordVersion < 1:
		return "password_version"
	case a.DisabledAt != nil && *a.DisabledAt < 0, a.CreatedAt < 0, min(a.PasswordAt, a.BanAt) < 0, max(a.PasswordAt, a.BanAt) > a.UpdatedAt:
		return "times"
	}
	return ""
}
