package users

import (
	"context"

	"tandem/internal/sqlite"
)

// Has reports whether an account of that id is in the directory, banned or not.
// Before the first directory has come, everybody is.
func (s *Store) Has(ctx context.Context, id string) (bool, error) {
	known, _, err := sqlite.ReadOne(ctx, s.db, sqlite.Value[bool], `
		SELECT EXISTS (SELECT 1 FROM users WHERE id = ?) OR NOT EXISTS (SELECT 1 FROM users)`, id)
	return known, err
}
