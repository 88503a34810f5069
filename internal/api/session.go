package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"tandem/internal/fault"
	"tandem/internal/users"
	"tandem/internal/when"
)

var (
	errNotAdmin = fault.New(fault.Forbidden, "not_admin", "Only an admin may do this.")
	errNoKey    = fault.New(fault.Malformed, "idempotency_not_here", "This route takes no Idempotency-Key: an answer that holds a secret is not kept.")
)

// request is whose a request is, and for which route it came.
type request struct {
	users.Identity
	route string // method and pattern
}

type requestKey struct{}

// caller is who the session belongs to.
func caller(ctx context.Context) request {
	who, _ := ctx.Value(requestKey{}).(request)
	return who
}

// authenticate lets a request pass that carries a live session.
func (a *api) authenticate(c huma.Context, next func(huma.Context)) {
	who, err := a.Users.Authenticate(c.Context(), bearer(c.Header("Authorization")))
	if err != nil {
		a.refuse(c, err)
		return
	}
	op := c.Operation()
	next(huma.WithValue(c, requestKey{}, request{who, op.Method + " " + op.Path}))
}

// admins lets a request pass that comes from one.
func (a *api) admins(c huma.Context, next func(huma.Context)) {
	if caller(c.Context()).Role != users.Admin {
		a.refuse(c, errNotAdmin)
		return
	}
	next(c)
}

// noKey refuses what would keep a secret in the answers by key.
func (a *api) noKey(c huma.Context, next func(huma.Context)) {
	if c.Header("Idempotency-Key") != "" {
		a.refuse(c, errNoKey)
		return
	}
	next(c)
}

func (a *api) refuse(c huma.Context, err error) {
	p, ok := a.problem(c.Context(), c.Operation().Method+" "+c.Operation().Path, err).(*problem)
	if !ok {
		p = newProblem(http.StatusInternalServerError, "internal", refusals[http.StatusInternalServerError].detail, nil)
	}
	h := http.Header{}
	p.write(h, func(int) {
		for name, values := range h {
			c.SetHeader(name, values[0])
		}
		c.SetStatus(p.Status)
	}, c.BodyWriter())
}

// bearer returns the token of an Authorization header; the scheme's case does
// not matter (RFC 9110, 11.1).
func bearer(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

type loginInput struct {
	Body struct {
		Email    string `json:"email" maxLength:"320"`
		Password string `json:"password" maxLength:"1024"`
	}
}

type loginOutput struct {
	Cache string `header:"Cache-Control"`
	Body  struct {
		Token     string `json:"token" doc:"Send it as Authorization: Bearer TOKEN"`
		ExpiresAt string `json:"expires_at"`
	}
}

func (a *api) login(ctx context.Context, in *loginInput) (*loginOutput, error) {
	token, expires, err := a.Users.Login(ctx, in.Body.Email, in.Body.Password)
	if err != nil {
		return nil, err
	}
	out := &loginOutput{Cache: "no-store"}
	out.Body.Token, out.Body.ExpiresAt = token, when.Format(expires)
	return out, nil
}

type logoutInput struct {
	Authorization string `header:"Authorization" hidden:"true"`
}

func (a *api) logout(ctx context.Context, in *logoutInput) (*struct{}, error) {
	return nil, a.Users.Logout(ctx, bearer(in.Authorization))
}
