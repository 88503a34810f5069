package link

import (
	"context"
	"net/http"
	"strings"
)

// Call is something that the peer may bring besides what the link itself asks for, by
// POST.
type Call struct {
	Path string // below /peer/v1/
	open bool   // whether it is answered even where the peer's last greeting did not count
	do   func(ctx context.Context, secret string, body []byte) (any, error)
}

// Taking returns the call that has do take an I. It is answered with 204.
func Taking[I any](path string, do func(context.Context, I) error) Call {
	return Call{path, false, func(ctx context.Context, _ string, b []byte) (any, error) {
		var in I
		if err := unmarshal(b, &in); err != nil {
			return nil, err
		}
		return nil, do(ctx, in)
	}}
}

// Answering returns the call that has do answer an I with an O, whoever the peer says
// that it is: to become a pair mends what makes a greeting not count. The secret is the
// one that the caller presented, since it may be about that.
func Answering[I, O any](path string, do func(ctx context.Context, secret string, in I) (O, error)) Call {
	return Call{path, true, func(ctx context.Context, secret string, b []byte) (any, error) {
		var in I
		if err := unmarshal(b, &in); err != nil {
			return nil, err
		}
		return do(ctx, secret, in)
	}}
}

// own answers one of the node's own calls.
func (s *Server) own(c Call) call {
	answer := func(w http.ResponseWriter, r *http.Request) error {
		b, err := s.body(w, r)
		if err != nil {
			return err
		}
		_, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		out, err := c.do(r.Context(), secret, b)
		if err != nil {
			return err
		}
		if out == nil {
			w.Header().Set("Accept-Encoding", coding)
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		w.Header().Set("Cache-Control", "no-store") // it may hold a secret
		return s.writeJSON(w, r, out)
	}
	if c.open {
		return answer
	}
	return s.accepted(answer)
}
