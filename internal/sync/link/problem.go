package link

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"tandem/internal/fault"
)

var (
	errNoRoute  = fault.New(fault.NotFound, "no_such_route", "There is nothing at this address.")
	errNoMethod = fault.New(fault.Malformed, "method_not_allowed", "This address does not take that method; the Allow header lists those it takes.")
)

// statuses are the faults that are not this node's own.
var statuses = map[fault.Kind]int{
	fault.Malformed:       http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Unavailable:     http.StatusServiceUnavailable,
}

// refuse answers with a problem after RFC 9457. The caller hears that it was
// refused and the log says why: the caller is a program, and has no use for more.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	f := fault.From(err)
	putOut, stays := errors.AsType[*fault.Error](context.Cause(r.Context())) // by who let it in
	switch {
	case stays:
		f, err = putOut, putOut
	case r.Context().Err() != nil && f.Code != errBodySlow.Code:
		return // it has gone
	}
	status, known := statuses[f.Kind]
	switch {
	case f.Code == errBodySlow.Code:
		status = http.StatusRequestTimeout
		w.Header().Set("Connection", "close")
	case f.Code == errNoMethod.Code:
		status = http.StatusMethodNotAllowed
	case f.Code == errBodyCoding.Code:
		status = http.StatusUnsupportedMediaType
	case !known:
		status = http.StatusInternalServerError
	}
	if status >= http.StatusInternalServerError {
		s.logger.ErrorContext(r.Context(), "request of the peer failed", "path", r.URL.Path, "error", err)
	} else {
		s.logger.WarnContext(r.Context(), "the peer sent what cannot be taken", "path", r.URL.Path, "error", err)
	}
	b, _ := json.Marshal(map[string]any{
		"type": "urn:tandem:problem:" + f.Code, "title": http.StatusText(status), "status": status, "code": f.Code, "detail": f.Detail,
	}) // strings marshal
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
