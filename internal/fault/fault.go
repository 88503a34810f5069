// Package fault names the ways a request can go wrong without saying how any
// transport reports them. Its kinds are few and closed; its codes are open and
// stable, so that a phone or a script may branch on them.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is what a caller can do about a fault.
type Kind string

// The kinds, each with what helps.
const (
	Internal        Kind = "internal"        // nothing; the operator must look
	Malformed       Kind = "malformed"       // send something that can be read
	Invalid         Kind = "invalid"         // send other values
	Unauthenticated Kind = "unauthenticated" // say who you are
	Forbidden       Kind = "forbidden"       // ask somebody who may
	NotFound        Kind = "not_found"       // look elsewhere
	Conflict        Kind = "conflict"        // read again, then decide
	Stale           Kind = "stale"           // read the newer version first
	TooLarge        Kind = "too_large"       // send less
	TooMany         Kind = "too_many"        // wait RetryAfter
	Unavailable     Kind = "unavailable"     // wait RetryAfter
)

// Field says what is wrong with one part of the input.
type Field struct {
	Name   string `json:"name"`   // as the caller wrote it, such as "trigger_at"
	Detail string `json:"detail"` // one clause for a person; never the value itself
}

// Error is a fault whose Detail may be shown to the person who caused it. The
// cause is for the log alone.
type Error struct {
	Kind       Kind
	Code       string        // stable and machine readable, such as "todo_not_found"
	Detail     string        // one sentence that says what to do
	Fields     []Field       // for Malformed and Invalid
	RetryAfter time.Duration // for TooMany and Unavailable; 0 says nothing
	cause      error
}

// New returns a fault of kind with a stable code and a sentence for the user.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Because returns a copy of e that remembers its cause.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// In returns a copy of e that names one more field.
func (e *Error) In(name, detail string) *Error {
	c := *e
	c.Fields = append(e.Fields[:len(e.Fields):len(e.Fields)], Field{Name: name, Detail: detail})
	return &c
}

// After returns a copy of e that asks to wait for d.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Error is for the log: the code and the cause, or the code and the detail.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Code + ": " + e.cause.Error()
	}
	return e.Code + ": " + e.Detail
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is a fault of the same code, so that a fault that
// has since learned its cause still equals the variable it was copied from.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// From returns the fault within err. An error that carries none is Internal,
// and its text stays out of Detail.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Code: "internal", Detail: "Something went wrong on our side; the log of the node says what.", cause: err}
}

// Of reports whether err carries a fault of kind.
func Of(err error, kind Kind) bool { return err != nil && From(err).Kind == kind }
