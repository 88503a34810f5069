package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// faultLine is a line between two nodes that fails as it is told to. It looks at
// nothing that passes.
type faultLine struct {
	listener net.Listener
	to       string
	carried  [2]atomic.Int64 // bytes that were passed on, up and down

	mu    sync.Mutex
	fate  fate
	calm  chan struct{} // closed when the stall is over; nil: none is
	lines map[*strand]bool
}

// fate is what a line does. The zero fate is a sound line.
type fate struct {
	refuses bool                 // whoever calls is hung up on
	after   [2]int64             // where a connection is cut, in bytes up and down; 0: nowhere
	delay   func() time.Duration // of each piece; nil: none
}

// strand is one connection over a line: its near end and its far end.
type strand struct {
	ends [2]net.Conn
	dead atomic.Bool // nothing passes any more, and nobody is told
}

func newFaultLine(t testing.TB, to string) *faultLine {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &faultLine{listener: listener, to: to, lines: map[*strand]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		l.resume()
		l.become(fate{refuses: true})
	})
	go l.accept()
	return l
}

func (l *faultLine) url() string { return "http://" + l.listener.Addr().String() }

func (l *faultLine) accept() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		go l.carry(c)
	}
}

// become has the line behave otherwise from now on. What is under way ends.
func (l *faultLine) become(f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fate = f
	for s := range l.lines {
		s.close()
	}
}

// stall has nothing pass, with no word to either end, as where packets are dropped.
func (l *faultLine) stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calm == nil {
		l.calm = make(chan struct{})
	}
}

// resume ends a stall. What was held back passes now.
func (l *faultLine) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calm != nil {
		close(l.calm)
		l.calm = nil
	}
}

// forget ends a stall and leaves the connections that it met dead for ever, as a
// router does that was restarted: nobody is told that they are.
func (l *faultLine) forget() {
	l.mu.Lock()
	for s := range l.lines {
		s.dead.Store(true)
	}
	l.mu.Unlock()
	l.resume()
}

func (l *faultLine) carry(near net.Conn) {
	s, f := l.begin(near)
	if s == nil {
		return
	}
	defer l.end(s)
	over := make(chan struct{}, 2)
	for way := range s.ends {
		go func() {
			l.pass(s, way, f)
			over <- struct{}{}
		}()
	}
	<-over
	for s.dead.Load() && !s.gone() {
		time.Sleep(10 * time.Millisecond) // neither end hears of the other's
	}
}

func (l *faultLine) begin(near net.Conn) (*strand, fate) {
	l.mu.Lock()
	f := l.fate
	l.mu.Unlock()
	far, err := net.Dial("tcp", l.to)
	if err != nil || f.refuses {
		_ = near.Close()
		if err == nil {
			_ = far.Close()
		}
		return nil, f
	}
	s := &strand{ends: [2]net.Conn{near, far}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fate.refuses { // since
		s.close()
		return nil, f
	}
	l.lines[s] = true
	return s, f
}

func (l *faultLine) end(s *strand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.close()
	delete(l.lines, s)
}

func (s *strand) close() { _, _ = s.ends[0].Close(), s.ends[1].Close() }

// gone reports whether the near end has hung up.
func (s *strand) gone() bool {
	_ = s.ends[0].SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := s.ends[0].Read(make([]byte, 512))
	e, ok := err.(net.Error)
	return err != nil && (!ok || !e.Timeout())
}

// pass carries what comes from one end to the other until the line is cut.
func (l *faultLine) pass(s *strand, way int, f fate) {
	from, to := s.ends[way], s.ends[1-way]
	buffer, left := make([]byte, 32<<10), f.after[way]
	for {
		n, err := from.Read(buffer)
		if f.delay != nil {
			time.Sleep(f.delay())
		}
		l.hold()
		if s.dead.Load() {
			return
		}
		cut := f.after[way] > 0 && int64(n) >= left
		if cut {
			n = int(left)
		}
		left -= int64(n)
		l.carried[way].Add(int64(n))
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil || cut {
			return
		}
	}
}

// hold waits while the line is stalled.
func (l *faultLine) hold() {
	l.mu.Lock()
	calm := l.calm
	l.mu.Unlock()
	if calm != nil {
		<-calm
	}
}

// gateway stands before the cloud as a reverse proxy does, and can be told to answer
// in its place.
type gateway struct {
	url     string
	forward *httputil.ReverseProxy
	to      string

	mu     sync.Mutex
	answer func(w http.ResponseWriter, c *call) bool // true: it has answered
	clip   string                                    // of answers below this path the last tenth is lost; empty: none is
	calls  []*call
}

// call is a request that has come to a gateway, and what was answered.
type call struct {
	*http.Request
	body   []byte
	status int // 0: the gateway answered
	said   []byte
}

// carries reports whether a call brings entries of a log.
func (c *call) carries() bool {
	return c.Method == http.MethodPost && strings.HasSuffix(c.URL.Path, "/changes") && c.ContentLength > 200
}

func newGateway(t testing.TB, to string) *gateway {
	t.Helper()
	g := &gateway{to: to, forward: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to})}
	g.forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.url = server.URL
	return g
}

// answering has f answer from now on, where it likes to.
func (g *gateway) answering(f func(w http.ResponseWriter, r *call) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = f
}

// clipping has the last tenth of each answer below a path be lost; of none where it
// is empty.
func (g *gateway) clipping(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clip = path
}

// recorded are the calls that have been answered so far.
func (g *gateway) recorded() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[:len(g.calls):len(g.calls)]
}

// ServeHTTP implements http.Handler.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Request: r.Clone(context.WithoutCancel(r.Context()))}
	c.body, _ = io.ReadAll(r.Body)
	r.Header.Del("Accept-Encoding") // so that a test can read what passes
	r.Body = io.NopCloser(bytes.NewReader(c.body))
	g.mu.Lock()
	answer, clip := g.answer, g.clip
	g.mu.Unlock()
	if answer != nil && answer(w, c) {
		g.record(c)
		return
	}
	far := httptest.NewRecorder()
	g.forward.ServeHTTP(far, r)
	c.status, c.said = far.Code, far.Body.Bytes()
	g.record(c)
	for name, values := range far.Header() {
		if name != "Accept-Encoding" {
			w.Header()[name] = values
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(c.said)))
	w.WriteHeader(far.Code)
	if clip == "" || !strings.HasPrefix(r.URL.Path, clip) {
		_, _ = w.Write(c.said)
		return
	}
	_, _ = w.Write(c.said[:len(c.said)*9/10])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func (g *gateway) record(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, c)
}

// again makes a recorded call once more, changed, and returns the status.
func (g *gateway) again(t testing.TB, c *call, change func(*http.Request)) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.Method, "http://"+g.to+c.URL.RequestURI(), bytes.NewReader(c.body))
	must(t, err)
	for _, name := range []string{"Authorization", "Tandem-Node", "Content-Type", "Content-Encoding", "Accept", "Accept-Encoding"} {
		if v := c.Header.Get(name); v != "" {
			r.Header.Set(name, v)
		}
	}
	if change != nil {
		change(r)
	}
	res, err := demoHTTP.Do(r)
	must(t, err)
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}
