package link_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	gosync "sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"tandem/internal/sync"
	"tandem/internal/sync/letters"
	"tandem/internal/sync/link"
)

var errCut = errors.New("connection reset by peer")

// link is the line from local to cloud, and the cloud's side of the calls. It may be
// cut, fall silent, or lose answers.
type line struct {
	cloud   *node
	hello   link.Hello
	sets    []link.Set
	letters *letters.Box
	crash   func(string)
	said    lockedBuffer // the log of the cloud

	greets gosync.Mutex // over hello

	mu        gosync.Mutex
	served    *sync.Log // of whom answering is
	answering *link.Server
	down      chan struct{} // closed while it is cut
	silent    chan struct{} // closed while nothing comes through, and nobody is told
	lose      int           // answers that are lost from now on, once the call was done
	calls     []string
	dropped   int                              // how often idle connections were given up
	moved     int                              // entries, both ways
	instead   func(path string) *http.Response // of what the cloud answers, where neither is nil
}

func newLine(cloud *node) *line {
	l := &line{cloud: cloud, crash: func(string) {}, down: make(chan struct{}), silent: make(chan struct{})}
	l.hello = link.Hello{Node: "cloud", Origin: 1, Protocol: link.Protocol, Version: "v9"}
	return l
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	down, silent, path := l.down, l.silent, strings.TrimPrefix(r.URL.Path, "/peer/v1/")
	l.calls = append(l.calls, r.Method+" "+path)
	l.mu.Unlock()
	select {
	case <-down:
		return nil, errCut
	default:
	}
	done := make(chan *http.Response, 1)
	go func() { done <- l.serve(r, path) }()
	select {
	case <-silent:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case <-down:
		return nil, errCut
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case res := <-done:
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.lose > 0 {
			l.lose--
			return nil, errCut
		}
		return res, nil
	}
}

// serve is what the cloud answers, unless something else does.
func (l *line) serve(r *http.Request, path string) *http.Response {
	l.mu.Lock()
	instead := l.instead
	l.mu.Unlock()
	if instead != nil {
		if res := instead(path); res != nil {
			return res
		}
	}
	server := l.server()
	sent, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(sent))
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	for _, page := range [][]byte{unpacked(sent, r.Header), unpacked(w.Body.Bytes(), w.Header())} {
		var p struct{ Rows []json.RawMessage }
		_ = json.Unmarshal(page, &p)
		l.count(len(p.Rows))
	}
	res := w.Result()
	res.ContentLength = int64(w.Body.Len())
	return res
}

// server is the cloud's, made when it is first called.
func (l *line) server() *link.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.served != l.cloud.log {
		l.served = l.cloud.log
		l.answering = link.NewServer(link.ServerOptions{
			Log: l.cloud.log, Name: "local", Sets: l.sets, Letters: l.letters, Stop: context.Background(), Crash: l.crash,
			Logger: slog.New(slog.NewTextHandler(&l.said, nil)), Hello: l.greeting,
		})
	}
	return l.answering
}

func (l *line) greeting() link.Hello {
	l.greets.Lock()
	defer l.greets.Unlock()
	hello := l.hello
	hello.Now = l.cloud.now().Add(l.cloud.skew).UnixMilli()
	return hello
}

func (l *line) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved += n
}

// CloseIdleConnections is what http.Client asks for by this name.
func (l *line) CloseIdleConnections() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped++
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.down)
}

func (l *line) fallSilent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.silent)
}

// answers has something else answer where f returns an answer, and where f is nil
// the cloud again.
func (l *line) answers(f func(path string) *http.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.instead = f
}

// changesAnswered is for answers: calls for changes are answered so.
func changesAnswered(status int, kind, body string) func(string) *http.Response {
	return func(path string) *http.Response {
		if path != "changes" {
			return nil
		}
		return answer(status, kind, strings.NewReader(body))
	}
}

// heal lets new calls through. Those that hang go on hanging.
func (l *line) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.silent = make(chan struct{}), make(chan struct{})
}

// since forgets the calls so far and returns how many there were of a kind.
func (l *line) since(kind string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c == kind {
			n++
		}
	}
	l.calls = nil
	return n
}

// clientOver returns local's client over a transport.
func clientOver(local *node, over http.RoundTripper) *link.Client {
	c, _ := clientLogging(local, over)
	return c
}

// clientLogging is clientOver, and what it logs.
func clientLogging(local *node, over http.RoundTripper) (*link.Client, *lockedBuffer) {
	return clientOn(local, over, nil, nil)
}

// client returns local's client over the link, and what it logs.
func client(local *node, l *line, sets []link.Set, crash func(string)) (*link.Client, *lockedBuffer) {
	return clientOn(local, l, sets, crash)
}

func clientOn(local *node, l http.RoundTripper, sets []link.Set, crash func(string)) (*link.Client, *lockedBuffer) {
	var said lockedBuffer
	if crash == nil {
		crash = func(string) {}
	}
	c := link.NewClient(local.log, newPeer(l), link.ClientOptions{
		Sets: sets, Crash: crash, Logger: slog.New(slog.NewTextHandler(&said, nil)),
		Hello: func() link.Hello {
			return link.Hello{Node: "local", Now: local.now().Add(local.skew).UnixMilli(), Process: local.process}
		},
	})
	return c, &said
}

// running runs the client's loops until the test ends.
func running(t *testing.T, c *link.Client) { t.Cleanup(started(c)) }

// started runs the client's loops, and returns what ends them.
func started(c *link.Client) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all gosync.WaitGroup
	for _, l := range c.Loops() {
		all.Go(func() { _ = l.Run(ctx) })
	}
	return func() { cancel(); all.Wait() }
}

// linked runs test in a bubble with two nodes whose client is running.
func linked(t *testing.T, test func(t *testing.T, local, cloud *node, l *line, c *link.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		c, said := client(local, l, nil, nil)
		running(t, c)
		time.Sleep(time.Second)
		test(t, local, cloud, l, c)
		synctest.Wait()
		if strings.Contains(said.String(), "canary") { // S:63
			t.Error("the secret is in the log:", said)
		}
	})
}

// unpacked is a body as it was before it was packed.
func unpacked(b []byte, h http.Header) []byte {
	if h.Get("Content-Encoding") == "" {
		return b
	}
	d, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	defer d.Close()
	out, err := io.ReadAll(d)
	if err != nil {
		panic(err)
	}
	return out
}

// lockedBuffer is what is logged, by whoever logs.
type lockedBuffer struct {
	mu   gosync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
