package api

import (
	"context"

	"tandem/internal/settings"
	"tandem/internal/sqlite"
)

type meBody struct {
	ID    string  `json:"id"`
	Email string  `json:"email"`
	Role  string  `json:"role" enum:"admin,user"`
	Zone  *string `json:"tz" doc:"Where you live: what a time without a zone means"`
}

func showMe(ctx context.Context, s settings.Settings) *rowOutput[meBody] {
	who := caller(ctx)
	out := &rowOutput[meBody]{etag(s.Head), meBody{ID: who.UserID, Email: who.Email, Role: string(who.Role)}}
	if s.Zone != "" {
		out.Body.Zone = &s.Zone
	}
	return out
}

func (a *api) me(ctx context.Context, _ *struct{}) (*rowOutput[meBody], error) {
	s, err := a.Settings.Get(ctx, caller(ctx).UserID)
	if err != nil {
		return nil, err
	}
	return showMe(ctx, s), nil
}

type changeMeInput struct {
	IfMatch string `header:"If-Match"`
	Body    struct {
		Zone patched[string] `json:"tz,omitzero" minLength:"1" doc:"An IANA zone; null: no choice of your own" example:"Europe/Berlin"`
	}
}

func (a *api) changeMe(ctx context.Context, in *changeMeInput) (*rowOutput[meBody], error) {
	owner := caller(ctx).UserID
	var s settings.Settings
	err := a.DB.Write(ctx, func(tx *sqlite.Tx) (err error) {
		if s, err = settings.GetTx(tx, owner); err != nil {
			return err
		}
		zone := in.Body.Zone.or("")
		if err := fresh(in.IfMatch, s.Head); err != nil || zone == nil {
			return err
		}
		if *zone == "" {
			s, err = a.Settings.ClearZoneTx(tx, owner)
		} else {
			s, err = a.Settings.SetZoneTx(tx, owner, *zone)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return showMe(ctx, s), nil
}
