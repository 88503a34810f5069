package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"tandem/internal/fault"
)

const problemJSON = "application/problem+json"

// problem is the body of every failure, after RFC 9457.
type problem struct {
	Type   string        `json:"type" doc:"urn:tandem:problem: and the code"`
	Title  string        `json:"title" doc:"The status in words"`
	Status int           `json:"status"`
	Code   string        `json:"code" doc:"Stable: a program may branch on it"`
	Detail string        `json:"detail" doc:"One sentence for a person"`
	Errors []fault.Field `json:"errors,omitempty" doc:"What is wrong with which field; never the value"`

	retryAfter time.Duration
}

var statuses = map[fault.Kind]int{
	fault.Malformed:       http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.Stale:           http.StatusPreconditionFailed,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Invalid:         http.StatusUnprocessableEntity,
	fault.TooMany:         http.StatusTooManyRequests,
	fault.Internal:        http.StatusInternalServerError,
	fault.Unavailable:     http.StatusServiceUnavailable,
}

func newProblem(status int, code, detail string, fields []fault.Field) *problem {
	return &problem{
		Type: "urn:tandem:problem:" + code, Title: http.StatusText(status), Status: status, Code: code, Detail: detail, Errors: fields,
	}
}

// problem gives an error of a domain its form, and the log what the caller must
// not see.
func (a *api) problem(ctx context.Context, route string, err error) error {
	if p, ok := err.(huma.StatusError); ok {
		return p
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return newProblem(499, "caller_gone", "You hung up before the answer.", nil)
	}
	f := fault.From(err)
	status := statuses[f.Kind]
	if status >= http.StatusInternalServerError {
		a.Log.ErrorContext(ctx, "request failed", "route", route, "error", err)
	}
	p := newProblem(status, f.Code, f.Detail, f.Fields)
	p.retryAfter = f.RetryAfter
	return p
}

// Error implements huma.StatusError.
func (p *problem) Error() string { return p.Code + ": " + p.Detail }

// GetStatus implements huma.StatusError.
func (p *problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *problem) ContentType(string) string { return problemJSON }

// GetHeaders implements huma.HeadersError.
func (p *problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		seconds := int((p.retryAfter + time.Second - 1) / time.Second)
		h.Set("Retry-After", strconv.Itoa(seconds))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="tandem"`)
	}
	return h
}

// write sends p from where no handler's return value will.
func (p *problem) write(h http.Header, writeHeader func(int), body interface{ Write([]byte) (int, error) }) {
	for name, values := range p.GetHeaders() {
		h[name] = values
	}
	h.Set("Content-Type", problemJSON)
	writeHeader(p.Status)
	_ = json.NewEncoder(body).Encode(p) // the caller may be gone
}

// What huma itself refuses, by status. Its own texts repeat what was sent, such
// as a password that is too short; ours do not.
var refusals = map[int]struct{ code, detail string }{
	http.StatusBadRequest:            {"bad_request", "The request cannot be read. Send one JSON value in UTF-8."},
	http.StatusRequestTimeout:        {"body_too_slow", "The body did not arrive in time. Send it again."},
	http.StatusRequestEntityTooLarge: {"body_too_large", "The body is too large: at most 1 MiB."},
	http.StatusUnsupportedMediaType:  {"unsupported_media_type", "Send the body as application/json."},
	http.StatusUnprocessableEntity:   {"invalid_request", "The request was understood, but something in it is not right."},
	http.StatusInternalServerError:   {"internal", "Something went wrong on our side; the log of the node says what."},
}

func refusal(status int, fields ...fault.Field) *problem {
	r, known := refusals[status]
	if !known {
		r.code, r.detail = "http_"+strconv.Itoa(status), http.StatusText(status)+"."
	}
	return newProblem(status, r.code, r.detail, fields)
}

func init() {
	huma.ValidateStrictCasing = true
	huma.NewError = func(status int, _ string, errs ...error) huma.StatusError { return refusal(status, found(errs)...) }
}

// An answer tells of so many fields, and so much of a name that was made up.
const (
	maxFields = 20
	maxName   = 64
)

// found is what huma found wrong with which field, without the values.
func found(errs []error) []fault.Field {
	var fields []fault.Field
	for _, err := range errs {
		if d, ok := err.(huma.ErrorDetailer); ok {
			e := d.ErrorDetail()
			name := e.Location
			if place, rest, within := strings.Cut(name, "."); within && place != "" {
				name = rest
			}
			fields = append(fields, fault.Field{Name: strings.ToValidUTF8(name[:min(len(name), maxName)], ""), Detail: e.Message})
		}
	}
	slices.SortStableFunc(fields, func(a, b fault.Field) int { return strings.Compare(a.Name, b.Name) })
	return fields[:min(len(fields), maxFields)]
}

// unrouted answers what no route took, and what a handler of echo's own returned.
func (a *api) unrouted(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	p, ok := errors.AsType[*problem](err)
	if !ok {
		p = a.echoProblem(c, err)
	}
	if allow := c.Response().Header().Get("Allow"); strings.Contains(allow, http.MethodGet) {
		c.Response().Header().Set("Allow", allow+", "+http.MethodHead)
	}
	p.write(c.Response().Header(), c.Response().WriteHeader, c.Response())
}

func (a *api) echoProblem(c echo.Context, err error) *problem {
	he, ok := errors.AsType[*echo.HTTPError](err)
	switch {
	case !ok:
		p, _ := a.problem(c.Request().Context(), c.Request().Method+" "+c.Path(), err).(*problem)
		return p
	case he.Code == http.StatusNotFound:
		return newProblem(he.Code, "no_such_route", "There is nothing at this address. /openapi.json lists what there is.", nil)
	case he.Code == http.StatusMethodNotAllowed:
		return newProblem(he.Code, "method_not_allowed", "This address does not take that method; the Allow header lists those it takes.", nil)
	}
	return newProblem(he.Code, "http_"+strconv.Itoa(he.Code), http.StatusText(he.Code)+".", nil)
}
