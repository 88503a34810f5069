package push

import (
	"context"

	"tandem/internal/sqlite"
)

// Undelivered is a notice that is not tried again and that no service took, or
// nobody knows whether one did. It holds none of its text.
type Undelivered struct {
	FireID string
	State  State  // Terminal or Unknown
	Reason string // why it has not been accepted; a service's word or ours
}

// maxDead bounds a list of dead notices; there should be none.
const maxDead = 200

// Dead returns the notices that reached nobody, or nobody knows whom, and are not
// tried again; the newest first, at most 200.
func (o *Outbox) Dead(ctx context.Context) ([]Undelivered, error) {
	return sqlite.Read(ctx, o.db, func(tx *sqlite.Tx) ([]Undelivered, error) {
		return sqlite.All(tx, func(r sqlite.Row) (u Undelivered, err error) {
			return u, r.Scan(&u.FireID, &u.State, &u.Reason)
		}, `
			SELECT fire_id, state, coalesce(code, '')
			FROM delivery_intents
			WHERE state IN ('failed_terminal', 'unknown')
			ORDER BY created_at DESC
			LIMIT ?`, maxDead)
	})
}
