package link_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener to whom dial connects, within a bubble.
type pipes struct {
	calls chan net.Conn
	over  context.Context
	stop  context.CancelFunc
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.over.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.stop(); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

// dialled runs a test in a bubble with a connection to a cloud that serves as it does
// in earnest, and returns how many calls were taken for those of somebody who has gone.
func dialled(t *testing.T, test func(t *testing.T, cloud *node, l *line, c net.Conn)) (gone int) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		l := newLine(cloud)
		p := &pipes{calls: make(chan net.Conn)}
		p.over, p.stop = context.WithCancel(context.Background())
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.server().ServeHTTP(w, r)
			if r.Context().Err() != nil {
				gone++
			}
		})
		srv := &http.Server{Handler: handler, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		done := make(chan error)
		go func() { done <- srv.Serve(p) }()
		here, there := net.Pipe()
		p.calls <- there
		test(t, cloud, l, here)
		here.Close()
		must(t, srv.Close())
		<-done
	})
	return gone
}

// begins sends the head of a call of so many bytes.
func begins(t *testing.T, c net.Conn, size int) {
	t.Helper()
	_, err := fmt.Fprintf(c, "POST /peer/v1/changes HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
	must(t, err)
}

// drips sends a body piece by piece until it is sent or nobody takes it.
func drips(c net.Conn, body string, piece int, every time.Duration) {
	for i := 0; i < len(body); i += piece {
		if _, err := io.WriteString(c, body[i:min(len(body), i+piece)]); err != nil {
			return
		}
		time.Sleep(every)
	}
}

// readAnswer reads an answer.
func readAnswer(t *testing.T, r *bufio.Reader) (status int, body string) {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	must(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(b)
}

// large is an offer of a full page, 1 MiB.
func large() string {
	row := `{"x":"` + strings.Repeat("x", 1014) + `"}`
	return `{"from":"","to":"x","rows":[` + strings.Repeat(row+",", 1023) + row + `]}`
}

// A body that stops, or comes a byte a second, is given up; the caller hears of it, and
// its connection is of no more use.
func TestBodyThatDoesNotComeIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		piece int // bytes
		every time.Duration
		least time.Duration
		most  time.Duration
	}{
		"a byte a second":           {1, time.Second, 30 * time.Second, 31 * time.Second},
		"a KB a second":             {1000, time.Second, 30 * time.Second, 40 * time.Second},
		"nothing after the half":    {600_000, time.Hour, 30 * time.Second, 31 * time.Second},
		"a little every 20 seconds": {10, 20 * time.Second, 30 * time.Second, 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			dialled(t, func(t *testing.T, cloud *node, _ *line, conn net.Conn) {
				began := time.Now()
				body := large()
				begins(t, conn, len(body))
				go drips(conn, body, c.piece, c.every)
				r := bufio.NewReader(conn)
				status, text := readAnswer(t, r)
				equal(t, "status", status, http.StatusRequestTimeout)
				if !strings.Contains(text, "body_too_slow") {
					t.Error(text)
				}
				if took := time.Since(began); took < c.least || took > c.most {
					t.Error("given up after", took)
				}
				if _, err := r.ReadByte(); err == nil {
					t.Error("the connection is open still")
				}
				equal(t, "stored", read[int](cloud, `SELECT count(*) FROM sync_cursors`), 0)
				conn.Close()
				time.Sleep(2 * time.Hour) // for what sends
			})
		})
	}
}

// A line from a home may be narrow. Once a body is here the node takes its time, and so
// may the next call on the connection.
func TestBodyThatComesSlowlyIsTaken(t *testing.T) {
	gone := dialled(t, func(t *testing.T, cloud *node, l *line, conn net.Conn) {
		l.crash = func(string) { time.Sleep(5 * time.Minute) } // to store it
		body, r := large(), bufio.NewReader(conn)
		begins(t, conn, len(body))
		go drips(conn, body, 1000, 100*time.Millisecond)
		status, text := readAnswer(t, r)
		equal(t, "status", fmt.Sprint(status, text), `200{"cursor":"x"}`)
		time.Sleep(time.Minute)
		_, err := fmt.Fprint(conn, "GET /peer/v1/changes?cursor=&wait=50s HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
		began := time.Now()
		status, _ = readAnswer(t, r)
		equal(t, "a poll", status, 200)
		equal(t, "held", time.Since(began), 50*time.Second)
	})
	equal(t, "taken for gone", gone, 0)
}
