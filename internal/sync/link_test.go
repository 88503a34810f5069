package sync_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	gosync "sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sync"
)

var errCut = errors.New("connection reset by peer")

// link is the line from local to cloud, and the cloud's side of the calls. It may be
// cut, fall silent, or lose answers.
type link struct {
	cloud *node
	hello sync.Hello
	sets  []sync.Set

	mu      gosync.Mutex
	down    chan struct{} // closed while it is cut
	silent  chan struct{} // closed while nothing comes through, and nobody is told
	lose    int           // answers that are lost from now on, once the call was done
	calls   []string
	moved   int                              // entries, both ways
	instead func(path string) *http.Response // of what the cloud answers, where neither is nil
}

func newLink(cloud *node) *link {
	l := &link{cloud: cloud, down: make(chan struct{}), silent: make(chan struct{})}
	l.hello = sync.Hello{Node: "cloud", Origin: 1, Protocol: sync.Protocol, Version: "v9"}
	return l
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
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

// serve is what the cloud's API does.
func (l *link) serve(r *http.Request, path string) *http.Response {
	w := httptest.NewRecorder()
	l.mu.Lock()
	instead, hello := l.instead, l.hello
	l.mu.Unlock()
	if instead != nil {
		if res := instead(path); res != nil {
			return res
		}
	}
	var out any
	var err error
	switch q := r.URL.Query(); r.Method + " " + path {
	case "POST hello":
		hello.Now = l.cloud.now().Add(l.cloud.skew).UnixMilli()
		out = hello
	case "GET changes":
		wait, _ := time.ParseDuration(q.Get("wait"))
		held := map[string]string{}
		for _, s := range l.sets {
			held[s.Name] = q.Get(s.Name)
		}
		var p sync.Page
		p, err = l.cloud.log.Poll(r.Context(), q.Get("cursor"), l.sets, held, wait)
		l.count(len(p.Entries))
		out = p
	case "POST changes":
		var offer sync.Offer
		if err = json.NewDecoder(r.Body).Decode(&offer); err == nil {
			l.count(len(offer.Entries))
			var at string
			at, err = l.cloud.log.Apply(r.Context(), "local", offer.From, offer.To, offer.Entries)
			out = sync.Ack{Cursor: at}
		}
	case "GET accounts":
		var whole sync.Whole
		whole.Generation, whole.Body, err = wholeOf(r.Context(), l.sets[0])
		out = whole
	default:
		w.WriteHeader(http.StatusNotFound)
		return w.Result()
	}
	if err != nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusInternalServerError)
		return w.Result()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
	return w.Result()
}

func wholeOf(ctx context.Context, s sync.Set) (string, json.RawMessage, error) {
	generation, body, err := s.Export(ctx)
	return generation, body, err
}

func (l *link) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved += n
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.down)
}

func (l *link) fallSilent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.silent)
}

// answers has something else answer where f returns an answer, and where f is nil
// the cloud again.
func (l *link) answers(f func(path string) *http.Response) {
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
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.silent = make(chan struct{}), make(chan struct{})
}

// since forgets the calls so far and returns how many there were of a kind.
func (l *link) since(kind string) (n int) {
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

// client returns local's client over the link, and what it logs.
func client(local *node, l *link, sets []sync.Set, crash func(string)) (*sync.Client, *bytes.Buffer) {
	var said bytes.Buffer
	if crash == nil {
		crash = func(string) {}
	}
	c := sync.NewClient(local.log, newPeer(l), sync.ClientOptions{
		Sets: sets, Crash: crash, Log: slog.New(slog.NewTextHandler(&said, nil)),
		Hello: func() sync.Hello {
			return sync.Hello{Node: "local", Protocol: sync.Protocol, Now: local.now().Add(local.skew).UnixMilli()}
		},
	})
	return c, &said
}

// running runs the client's loops until the test ends.
func running(t *testing.T, c *sync.Client) {
	ctx, stop := context.WithCancel(context.Background())
	var all gosync.WaitGroup
	for _, l := range c.Loops() {
		all.Go(func() { _ = l.Run(ctx) })
	}
	t.Cleanup(func() { stop(); all.Wait() })
}

// linked runs test in a bubble with two nodes whose client is running.
func linked(t *testing.T, test func(t *testing.T, local, cloud *node, l *link, c *sync.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLink(cloud)
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
