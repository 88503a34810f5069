package link

import (
	"context"
	"net/http"
	"strings"
)

// Ask is a call that brings something and is answered with something.
type Ask struct {
	Path string // below /peer/v1/
	do   func(ctx context.Context, secret string, body []byte) (any, error)
}

// NewAsk returns the call that has do answer an I with an O. The secret is the one
// that the caller presented, since it may be about that.
func NewAsk[I, O any](path string, do func(ctx context.Context, secret string, in I) (O, error)) Ask {
	return Ask{path, func(ctx context.Context, secret string, b []byte) (any, error) {
		var in I
		if err := unmarshal(b, &in); err != nil {
			return nil, err
		}
		return do(ctx, secret, in)
	}}
}

func (s *Server) ask(a Ask) call {
	return func(w http.ResponseWriter, r *http.Request) error {
		b, err := s.body(r)
		if err != nil {
			return err
		}
		_, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		out, err := a.do(r.Context(), secret, b)
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-store") // it may hold a secret
		return s.writeJSON(w, r, out)
	}
}
