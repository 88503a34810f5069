package push

import (
	"context"
	"time"

	"tandem/internal/sqlite"
)

// Delivery is what became of a notice, for people. It holds none of its text.
type Delivery struct {
	FireID        string
	Kind          string
	Owner         string
	State         State
	Channel       string // the last one tried
	Reason        string // why it has not been accepted; a service's word or ours
	Attempts      int
	DueAt         time.Time
	CreatedAt     time.Time
	NextAttemptAt *time.Time // nil: done
	Targets       []DeliveryTarget
	Events        []DeliveryEvent

	id string
}

// DeliveryTarget is how it stands with one device or chat.
type DeliveryTarget struct {
	Channel   string
	Place     string // the device's id or the chat's number
	State     State
	Attempts  int
	MessageID string
	Code      string
}

// DeliveryEvent is one change.
type DeliveryEvent struct {
	From, To State
	Channel  string
	Code     string
	At       time.Time
}

// maxDead bounds a list of dead notices; there should be none.
const maxDead = 200

const deliveries = `
	SELECT id, fire_id, kind, owner, state, coalesce(channel, ''), coalesce(code, ''), attempts, due_at, created_at, next_attempt_at
	FROM delivery_intents `

// Delivery returns this node's part in telling of a fire, a notice each; none where
// the other node tells it.
func (o *Outbox) Delivery(ctx context.Context, fireID string) ([]Delivery, error) {
	return o.deliveries(ctx, deliveries+`WHERE fire_id = ? ORDER BY created_at, kind`, fireID)
}

// Dead returns the notices that reached nobody, or nobody knows whom, and are not
// tried again; the newest first, at most 200.
func (o *Outbox) Dead(ctx context.Context) ([]Delivery, error) {
	return o.deliveries(ctx, deliveries+`WHERE state IN ('failed_terminal', 'unknown') ORDER BY created_at DESC LIMIT ?`, maxDead)
}

func (o *Outbox) deliveries(ctx context.Context, query string, arg any) ([]Delivery, error) {
	return sqlite.Read(ctx, o.db, func(tx *sqlite.Tx) ([]Delivery, error) {
		all, err := sqlite.All(tx, scanDelivery, query, arg)
		if err != nil {
			return nil, err
		}
		for i := range all {
			d := &all[i]
			if d.Targets, err = sqlite.All(tx, scanDeliveryTarget, `
				SELECT channel, place, state, attempts, coalesce(message_id, ''), coalesce(code, '')
				FROM delivery_targets
				WHERE intent_id = ?
				ORDER BY channel, place`, d.id); err != nil {
				return nil, err
			}
			if d.Events, err = sqlite.All(tx, scanDeliveryEvent, `
				SELECT from_state, to_state, coalesce(channel, ''), coalesce(code, ''), at
				FROM delivery_events
				WHERE intent_id = ?
				ORDER BY id`, d.id); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
}

func scanDelivery(r sqlite.Row) (d Delivery, err error) {
	var due, created int64
	var next *int64
	err = r.Scan(&d.id, &d.FireID, &d.Kind, &d.Owner, &d.State, &d.Channel, &d.Reason, &d.Attempts, &due, &created, &next)
	d.DueAt, d.CreatedAt, d.NextAttemptAt = sqlite.Time(due), sqlite.Time(created), sqlite.TimePtr(next)
	return d, err
}

func scanDeliveryTarget(r sqlite.Row) (t DeliveryTarget, err error) {
	return t, r.Scan(&t.Channel, &t.Place, &t.State, &t.Attempts, &t.MessageID, &t.Code)
}

func scanDeliveryEvent(r sqlite.Row) (e DeliveryEvent, err error) {
	var at int64
	err = r.Scan(&e.From, &e.To, &e.Channel, &e.Code, &at)
	e.At = sqlite.Time(at)
	return e, err
}
