package users

import (
	"context"

	"tandem/internal/sqlite"
)

// PasswordTimes returns when the password of each account was set, by the account's id,
// in Unix ms. Of two nodes that have the account the later one's stays.
func (s *Store) PasswordTimes(ctx context.Context) (map[string]int64, error) {
	all, err := sqlite.Read(ctx, s.db, recordsTx)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int64, len(all))
	for _, a := range all {
		at[a.ID] = a.PasswordAt
	}
	return at, nil
}
