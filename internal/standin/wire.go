// Package standin plays the far ends a node talks to, for the demo and for
// tests: each is an http.Handler that keeps the real one's limits, remembers
// what it accepted, and fails on command. It opens no socket; a Wire carries
// requests to a handler in memory, and an http.Server carries them over loopback.
package standin

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
)

// Wire is an http.RoundTripper that serves each request from a handler in
// memory. The handler runs in the caller's goroutine and sees the caller's
// context, so that virtual time drives both ends; a handler that ignores the
// context holds its caller.
type Wire struct {
	to http.Handler

	mu   sync.Mutex
	cut  bool
	drop int
}

// Transport returns a wire to the handler, whatever host a request names.
func Transport(to http.Handler) *Wire { return &Wire{to: to} }

// Cut makes every later request fail as it dials; the handler sees none of them.
func (w *Wire) Cut() { w.setCut(true) }

// Mend undoes Cut.
func (w *Wire) Mend() { w.setCut(false) }

func (w *Wire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// DropAnswers loses the next n answers on the way back: the handler has done its
// work, and the caller sees a connection that was reset.
func (w *Wire) DropAnswers(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop = n
}

// RoundTrip implements http.RoundTripper.
func (w *Wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if w.isCut() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	a := &answer{header: http.Header{}}
	torn := serve(w.to, a, arriving(r))
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if w.loseOne() || torn && a.status == 0 {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return a.response(r, torn), nil
}

func (w *Wire) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

func (w *Wire) loseOne() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drop == 0 {
		return false
	}
	w.drop--
	return true
}

// arriving is r as a server would see it.
func arriving(r *http.Request) *http.Request {
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:1"
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	in.URL.Scheme, in.URL.Host, in.URL.User = "", "", nil
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// serve reports whether the handler hung up before its answer was whole, as an
// http.Server understands http.ErrAbortHandler. Any other panic is the test's to see.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (torn bool) {
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
		torn = p != nil
	}()
	h.ServeHTTP(w, r)
	return false
}

// answer is an http.ResponseWriter that keeps what is written.
type answer struct {
	header http.Header
	sent   http.Header // as it stood when the status went out; later changes are not seen
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status, a.sent = status, a.header.Clone()
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.body.Len() == 0 && a.sent.Get("Content-Type") == "" {
		a.sent.Set("Content-Type", http.DetectContentType(p))
	}
	return a.body.Write(p)
}

// Flush is here because a handler that hangs up in mid-answer flushes first.
func (a *answer) Flush() { a.WriteHeader(http.StatusOK) }

func (a *answer) response(r *http.Request, torn bool) *http.Response {
	a.WriteHeader(http.StatusOK)
	var body io.Reader = &a.body
	length := int64(a.body.Len())
	if torn {
		body, length = io.MultiReader(body, hungUp{}), -1
	}
	return &http.Response{
		Status:     strconv.Itoa(a.status) + " " + http.StatusText(a.status),
		StatusCode: a.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        a.sent,
		Body:          io.NopCloser(body),
		ContentLength: length,
		Request:       r,
	}
}

// hungUp is where a torn answer ends.
type hungUp struct{}

func (hungUp) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
