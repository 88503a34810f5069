package api

import (
	"context"
	"encoding/json"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

var errNoFire = fault.New(fault.NotFound, "fire_not_found", "There is no such fire.")

type factBody struct {
	Kind string          `json:"kind" doc:"fired, attempt, accepted, missed"`
	Node string          `json:"node" doc:"Who saw it"`
	At   string          `json:"at"`
	Body json.RawMessage `json:"body"`
}

type fireBody struct {
	ID    string     `json:"id"`
	Facts []factBody `json:"facts" doc:"What happened, oldest first, as both nodes tell it"`
}

type fireInput struct {
	ID string `path:"id"`
}

type fireOutput struct{ Body fireBody }

// getFire tells the story of one ringing. It belongs to whoever the facts do.
func (a *api) getFire(ctx context.Context, in *fireInput) (*fireOutput, error) {
	facts, err := sqlite.Read(ctx, a.DB, func(tx *sqlite.Tx) ([]sync.Fact, error) { return sync.FactsTx(tx, in.ID) })
	if err != nil {
		return nil, err
	}
	out := &fireOutput{fireBody{ID: in.ID, Facts: []factBody{}}}
	for _, f := range facts {
		if !json.Valid(f.Body) { // a peer may have told a fact without one
			f.Body = nil
		}
		if f.Owner == caller(ctx).UserID {
			out.Body.Facts = append(out.Body.Facts, factBody{f.Kind, f.Node, stamp(f.At), f.Body})
		}
	}
	if len(out.Body.Facts) == 0 {
		return nil, errNoFire
	}
	return out, nil
}
