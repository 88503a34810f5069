package api

import (
	"context"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync/link"
)

var errNoPeer = fault.New(fault.Conflict, "no_peer", "This node has no peer to be compared with.")

type compareInput struct{ Keyed }

type compareBody struct {
	Detail string `json:"detail" doc:"When it is done, for a person"`
}

// compare asks for a comparison that would else come by time. It is made at home, which
// calls; a cloud that is asked has home do it.
func (a *api) compare(ctx context.Context, in *compareInput) (*onceOutput[compareBody], error) {
	if a.Compare == nil {
		return nil, errNoPeer
	}
	b := compareBody{"Both nodes are compared as soon as each has read what the other wrote. What came of it is in GET /v1/sync/status then, under compared."}
	if a.Link().State == link.Offline {
		b.Detail = "The other node is away. Both are compared once it is back and each has read what the other wrote; unless this node is started anew before that, which forgets that it was asked."
	}
	return once(ctx, a, in.Keyed, struct{}{}, func(tx *sqlite.Tx) (made[compareBody], error) {
		tx.AfterCommit(a.Compare)
		return made[compareBody]{Body: b}, nil
	})
}
