package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/config"
	"tandem/internal/standin"
)

// machine is what one node of a bubble runs on.
type machine struct {
	*testing.T
	config config.Config
	far    func() outside
	clock  time.Duration   // ahead of the true time
	log    strings.Builder // to be read while the machine is off
	door   *line           // by which phones come
	token  string          // of Ada's session

	starts byte
	node   *node // the last that ran
	halt   context.CancelFunc
	halted chan error

	mu      sync.Mutex
	life    context.Context // ends when the machine goes off; nil before the first start
	die     context.CancelFunc
	serves  http.Handler // nil while it starts
	crashAt string
}

func (m *machine) now() time.Time { return time.Now().Add(m.clock) }

// on starts a process on the machine's folder.
func (m *machine) on() {
	m.Helper()
	m.starts++
	life, die := context.WithCancel(context.Background())
	m.mu.Lock()
	m.life, m.die, m.crashAt, m.serves = life, die, "", nil
	m.mu.Unlock()
	ctx, halt := context.WithCancel(context.Background())
	log, out := slog.New(slog.NewTextHandler(&m.log, nil)), m.far()
	f, err := openFolder(ctx, m.config.Node.Data, out, log)
	must(m, err)
	n, err := newNode(ctx, m.config, f, out, log)
	must(m, err)
	m.node, m.halt, m.halted = n, halt, make(chan error, 1)
	go func() { m.halted <- n.runLoops(ctx) }()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serves = n.handler
}

// isOn reports whether anything can leave the machine.
func (m *machine) isOn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life != nil && m.life.Err() == nil
}

// listens returns who takes requests, nobody being nil, and until when.
func (m *machine) listens() (http.Handler, context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life == nil || m.life.Err() != nil {
		return nil, nil
	}
	return m.serves, m.life
}

// off stops the process as SIGTERM does: what is under way ends.
func (m *machine) off() {
	m.Helper()
	if m.halt == nil {
		return
	}
	m.node.stopPolls()
	m.halt()
	must(m, <-m.halted)
	m.die()
	synctest.Wait() // for the handlers
	must(m, m.node.folder.close())
	m.halt = nil
}

// kill ends the process as a power cut does: from now on nothing leaves it.
func (m *machine) kill() {
	m.Helper()
	m.die()
	m.off()
}

// crash is where a node of the machine calls out. A machine that is dead goes no
// further anywhere.
func (m *machine) crash(point string) {
	m.mu.Lock()
	if point == m.crashAt {
		m.die()
	}
	dead := m.life.Err() != nil
	m.mu.Unlock()
	if dead {
		panic(http.ErrAbortHandler)
	}
}

// diesAt kills the process at a point on the way that do begins, and starts the next.
func (m *machine) diesAt(point string, do func()) {
	m.Helper()
	m.mu.Lock()
	m.crashAt = point
	m.mu.Unlock()
	do()
	for range 600 {
		if !m.isOn() {
			m.kill()
			m.on()
			return
		}
		settle(100 * time.Millisecond)
	}
	m.Fatalf("nothing came to %s", point)
}

// line is a way to a machine. What is under way ends when the line is cut, and when
// the machine goes off.
type line struct {
	to *machine

	mu    sync.Mutex
	whole context.Context // ends when the line is cut; nil until somebody dials
	snap  context.CancelFunc
	isCut bool
	proxy http.Handler // answers in the machine's place; nil: nobody does
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	if l.snap != nil {
		l.snap()
	}
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut, l.whole = false, nil
}

// answer has h answer in the machine's place from now on; nil gives it back.
func (l *line) answer(h http.Handler) {
	l.cut() // the connections that are open led elsewhere
	l.mend()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxy = h
}

// dial returns who answers, and until when.
func (l *line) dial() (h http.Handler, until []context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return nil, nil
	}
	if l.whole == nil {
		l.whole, l.snap = context.WithCancel(context.Background())
	}
	if l.proxy != nil {
		return l.proxy, []context.Context{l.whole}
	}
	h, life := l.to.listens()
	return h, []context.Context{l.whole, life}
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	h, until := l.dial()
	if h == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	for _, u := range until {
		defer context.AfterFunc(u, end)()
	}
	res, err := standin.Transport(h).RoundTrip(r.WithContext(ctx))
	for _, u := range until {
		if u.Err() != nil {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
	}
	return res, err
}

// leaving is a way out of a machine.
type leaving struct {
	from *machine
	by   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l leaving) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.from.isOn() {
		return nil, errors.New("the machine is dead")
	}
	return l.by.RoundTrip(r)
}

// ask sends a request by the door, with headers as "Name: value", and returns the
// whole answer; a status of 0 says that there was none.
func (m *machine) ask(method, path string, in any, headers ...string) (int, http.Header, []byte) {
	m.Helper()
	body := &bytes.Buffer{}
	if in != nil {
		must(m, json.NewEncoder(body).Encode(in))
	}
	r, err := http.NewRequestWithContext(m.Context(), method, "http://"+m.config.Node.Name+".test"+path, body)
	must(m, err)
	r.Header.Set("Content-Type", "application/json")
	if m.token != "" {
		r.Header.Set("Authorization", "Bearer "+m.token)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := m.door.RoundTrip(r)
	if err != nil {
		return 0, nil, nil
	}
	b, err := io.ReadAll(res.Body)
	must(m, err)
	return res.StatusCode, res.Header, b
}

// do is ask for what must succeed.
func (m *machine) do(method, path string, in, out any, headers ...string) {
	m.Helper()
	status, _, body := m.ask(method, path, in, headers...)
	if status < 200 || status > 299 {
		m.Fatalf("%s %s at %s: %d %s", method, path, m.config.Node.Name, status, body)
	}
	if out != nil {
		must(m, json.Unmarshal(body, out))
	}
}

// refused checks that a request is answered by a problem.
func (m *machine) refused(method, path string, in any, status int, code string) {
	m.Helper()
	got, _, body := m.ask(method, path, in)
	var problem struct{ Code string }
	_ = json.Unmarshal(body, &problem)
	equal(m, fmt.Sprintf("%s %s at %s", method, path, m.config.Node.Name), fmt.Sprint(got, " ", problem.Code), fmt.Sprint(status, " ", code))
}

func (m *machine) login() {
	m.Helper()
	var session struct{ Token string }
	m.token = ""
	m.do(http.MethodPost, "/v1/auth/login", map[string]string{"email": demoEmail, "password": demoPassword}, &session)
	m.token = session.Token
}

// add adds a todo and returns its ref.
func (m *machine) add(content string) string {
	m.Helper()
	var row struct{ Ref string }
	m.do(http.MethodPost, "/v1/todos", map[string]string{"content": content}, &row)
	return row.Ref
}

// edit changes a todo.
func (m *machine) edit(ref string, fields map[string]any) {
	m.Helper()
	m.do(http.MethodPatch, "/v1/todos/"+ref, fields, nil)
}

// todos lists what Ada sees, as "ref content".
func (m *machine) todos() string {
	m.Helper()
	var page struct{ Items []demoTodo }
	m.do(http.MethodGet, "/v1/todos", nil, &page)
	var out []string
	for _, t := range page.Items {
		out = append(out, t.Ref+" "+t.Content)
	}
	return strings.Join(out, ", ")
}
