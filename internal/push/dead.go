package push

import (
	"context"

	"tandem/internal/sqlite"
)

// Undelivered is a notice that no service took, or nobody knows whether one did. It
// holds none of its text.
type Undelivered struct {
	FireID string
	State  State  // Terminal or Unknown, or Retryable of one that still tries
	Reason string // why it has not been accepted; a service's word or ours
	DueAt  int64  // Unix ms
	NextAt int64  // when it is tried again; 0: no more
}

// maxDead bounds a list of dead notices; there should be none.
const maxDead = 200

// Dead returns the notices that reached nobody, or nobody knows whom, and are not
// tried again; the newest first, at most 200.
func (o *Outbox) Dead(ctx context.Context) ([]Undelivered, error) {
	return o.undelivered(ctx, `state IN ('failed_terminal', 'unknown')`)
}

// Waiting returns the notices that have been tried in vain and will be again; the
// newest first, at most 200.
func (o *Outbox) Waiting(ctx context.Context) ([]Undelivered, error) {
	return o.undelivered(ctx, `state = 'failed_retryable'`)
}

func (o *Outbox) undelivered(ctx context.Context, which string) ([]Undelivered, error) {
	return sqlite.ReadAll(ctx, o.db, func(r sqlite.Row) (u Undelivered, err error) {
		return u, r.Scan(&u.FireID, &u.State, &u.Reason, &u.DueAt, &u.NextAt)
	}, `
		SELECT fire_id, state, coalesce(code, ''), due_at, coalesce(next_attempt_at, 0)
		FROM delivery_intents
		WHERE `+which+`
		ORDER BY created_at DESC
		LIMIT ?`, maxDead)
}
