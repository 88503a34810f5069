package fcm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"tandem/internal/push"
)

// longestAnswer is far more than FCM says; what is longer did not come from it.
const longestAnswer = 1 << 20

// attempt is one Send as the wire saw it. It travels in the context, because the
// Firebase client passes neither headers nor causes on.
type attempt struct {
	began   bool
	failure *push.Failure // why nothing was posted: no access token
	answer  answer
}

type attemptKey struct{}

// answer is a whole HTTP answer, or why there is none.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error

	maybeTaken bool // beside err: the far end may have acted on the request
}

func (a answer) accepted() bool { return a.err == nil && a.status/100 == 2 }

// exchange makes one request. An answer that breaks off is none: it may hide an
// acceptance as well as a refusal.
func exchange(base http.RoundTripper, r *http.Request) answer {
	resp, maybeTaken, err := push.Post(base, r)
	if err != nil {
		return answer{err: err, maybeTaken: maybeTaken}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
	if err != nil {
		return answer{err: fmt.Errorf("the answer broke off: %w", err), maybeTaken: true}
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}
}

// response is a as an http.Client wants it.
func (a answer) response(r *http.Request) *http.Response {
	return &http.Response{
		Status:     http.StatusText(a.status),
		StatusCode: a.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        a.header,
		Body:          io.NopCloser(bytes.NewReader(a.body)),
		ContentLength: int64(len(a.body)),
		Request:       r,
	}
}

// once lets each attempt post a single time and keeps the answer for judge.
//
// The client would post up to five times after a network error or a 503, and
// sleep as long as Retry-After says inside Send: it is shown a 502 instead,
// which it gives up on.
type once struct {
	base   http.RoundTripper
	tokens *tokens // nil: no login
}

// RoundTrip implements http.RoundTripper.
func (o *once) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if a := r.Context().Value(attemptKey{}).(*attempt); !a.began {
		a.began = true
		o.post(r, a)
		if a.failure == nil && a.answer.accepted() {
			return a.answer.response(r), nil
		}
	}
	return answer{status: http.StatusBadGateway, header: http.Header{}, body: []byte("{}")}.response(r), nil
}

func (o *once) post(r *http.Request, a *attempt) {
	r = r.Clone(r.Context())
	if o.tokens == nil {
		a.answer = exchange(o.base, r)
		return
	}
	token, failure := o.tokens.take(r.Context())
	if failure != nil {
		a.failure = failure
		return
	}
	token.SetAuthHeader(r)
	a.answer = exchange(o.base, r)
	if a.answer.status == http.StatusUnauthorized {
		o.tokens.drop(r.Context(), token)
	}
}

// bound lends a request the context that its maker had no way to give it, and
// keeps the answer.
type bound struct {
	ctx    context.Context
	base   http.RoundTripper
	began  bool
	answer answer
}

// RoundTrip implements http.RoundTripper.
func (b *bound) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	b.began = true
	b.answer = exchange(b.base, r.Clone(b.ctx))
	if b.answer.err != nil {
		return nil, b.answer.err
	}
	return b.answer.response(r), nil
}
