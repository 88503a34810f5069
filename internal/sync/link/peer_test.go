package link_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	gosync "sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sync/link"
)

const secret = "canary-secret-0123456789-0123456789-0123456789"

// answers is a far end of one answer.
type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, kind string, body io.Reader) *http.Response {
	h := http.Header{}
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(body), ProtoMajor: 1, ProtoMinor: 1}
}

func says(status int, kind, body string) answers {
	return func(*http.Request) (*http.Response, error) {
		return answer(status, kind, strings.NewReader(body)), nil
	}
}

func newPeer(far http.RoundTripper) *link.Peer {
	return link.NewPeer("http://cloud.example:8471/", "cloud", "local", secret, far)
}

// readers that end as a network makes them end
type cut struct{ io.Reader }

func (c cut) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestCallSaysWhoCallsAndBringsTheAnswer(t *testing.T) {
	var got *http.Request
	var body []byte
	p := newPeer(answers(func(r *http.Request) (*http.Response, error) {
		got = r
		body, _ = io.ReadAll(r.Body)
		return answer(200, "application/json; charset=UTF-8", strings.NewReader(`{"cursor":"c"}`)), nil
	}))
	var ack link.Ack
	must(t, p.Call(t.Context(), http.MethodPost, "changes", link.Offer{From: "a<b"}, &ack))
	equal(t, "answer", ack.Cursor, "c")
	equal(t, "url", got.Method+" "+got.URL.String(), "POST http://cloud.example:8471/peer/v1/changes")
	equal(t, "secret", got.Header.Get("Authorization"), "Bearer "+secret)
	equal(t, "name", got.Header.Get(link.NodeHeader), "local")
	equal(t, "type", got.Header.Get("Content-Type"), "application/json")
	equal(t, "body", strings.Contains(string(body), `"from":"a\u003cb"`), true)
	equal(t, "name of the peer", p.Name(), "cloud")
	must(t, newPeer(says(204, "", "")).Call(t.Context(), http.MethodPost, "push-tokens", 1, nil))
	must(t, newPeer(says(200, "application/json", `{}`)).Call(t.Context(), http.MethodPost, "push-tokens", 1, nil))
}

// What a proxy says on behalf of a node is not the node's, and each wrong turn has a
// name of its own for the operator.
func TestCallTellsWhatIsWrongWithTheOtherEnd(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for name, c := range map[string]struct {
		far  answers
		want *fault.Error
	}{
		"HTML with 200":             {says(200, "text/html", "<html>Welcome to nginx</html>"), link.ErrPeerStranger},
		"HTML with 502":             {says(502, "text/html; charset=utf-8", "<html>Bad Gateway</html>"), link.ErrPeerStranger},
		"HTML with 413":             {says(413, "text/html", "too large"), link.ErrPeerTooLarge},
		"HTML with 403":             {says(403, "text/html", "no"), link.ErrPeerStranger},
		"no type":                   {says(200, "", `{"cursor":"c"}`), link.ErrPeerStranger},
		"a broken type":             {says(200, ";;;", `{"cursor":"c"}`), link.ErrPeerStranger},
		"nothing with 200":          {says(200, "application/json", ""), link.ErrPeerStranger},
		"nothing with 204":          {says(204, "", ""), link.ErrPeerStranger},
		"HTML that says it is JSON": {says(200, "application/json", "<html></html>"), link.ErrPeerStranger},
		"JSON of another shape":     {says(200, "application/json", `{"cursor":7}`), link.ErrPeerStranger},
		"JSON cut short":            {says(200, "application/json", `{"cursor":"c`), link.ErrPeerStranger},
		"401 as HTML":               {says(401, "text/html", "no"), link.ErrPeerRefused},
		"401 as a problem":          {says(401, "application/problem+json", `{"code":"not_the_peer"}`), link.ErrPeerRefused},
		"a problem":                 {says(503, "application/problem+json", `{"code":"busy"}`), link.ErrPeerFailed},
		"a full disk":               {says(503, "application/problem+json", `{"code":"disk_full"}`), link.ErrPeerFull},
		"a problem without a code":  {says(500, "application/problem+json", `oops`), link.ErrPeerFailed},
		"JSON with 500":             {says(500, "application/json", `{}`), link.ErrPeerFailed},
		"JSON with 302":             {says(302, "application/json", `{}`), link.ErrPeerFailed},
		"no connection":             {func(*http.Request) (*http.Response, error) { return nil, refused }, link.ErrPeerAway},
		"a connection that is cut": {func(*http.Request) (*http.Response, error) {
			return answer(200, "application/json", cut{strings.NewReader(`{"cursor":"c"`)}), nil
		}, link.ErrPeerAway},
	} {
		t.Run(name, func(t *testing.T) {
			var ack link.Ack
			err := newPeer(c.far).Call(t.Context(), http.MethodPost, "changes", link.Offer{From: "content"}, &ack)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %s", err, c.want.Code)
			}
			noSecret(t, err)
		})
	}
	err := newPeer(says(503, "application/problem+json", `{"code":"disk_full"}`)).Call(t.Context(), http.MethodGet, "changes", nil, nil)
	if !strings.Contains(err.Error(), "disk_full") || !strings.Contains(err.Error(), "503") {
		t.Error("the log would not say what the peer said:", err)
	}
}

// S:63.
func noSecret(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		if text := fmt.Sprintf("%v %+v %#v", err, err, fault.From(err).Detail); strings.Contains(text, "canary") {
			t.Error("the secret is in:", text)
		}
	}
}

func TestRedirectIsNotFollowedSoTheSecretStays(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			var hosts []string
			far := answers(func(r *http.Request) (*http.Response, error) {
				hosts = append(hosts, r.URL.Host)
				res := answer(status, "text/html", strings.NewReader("moved"))
				res.Header.Set("Location", "https://elsewhere.example/peer/v1/changes")
				return res, nil
			})
			err := newPeer(far).Call(t.Context(), method, "changes", link.Offer{}, &link.Ack{})
			if !errors.Is(err, link.ErrPeerStranger) {
				t.Error(status, err)
			}
			equal(t, fmt.Sprint("asked after ", status), strings.Join(hosts, " "), "cloud.example:8471")
		}
	}
}

func TestSecretThatIsNoHeaderIsNotShown(t *testing.T) {
	p := link.NewPeer("http://cloud.example", "cloud", "local", "canary\nsecret", http.DefaultTransport)
	err := p.Call(t.Context(), http.MethodGet, "hello", nil, nil)
	if err == nil {
		t.Fatal("it was sent")
	}
	noSecret(t, err)
	p = link.NewPeer("http://user:canary@127.0.0.1:1", "cloud", "local", secret, http.DefaultTransport)
	noSecret(t, p.Call(t.Context(), http.MethodGet, "hello", nil, nil))
}

// S:45. A peer that neither answers nor closes.
func TestCallThatHangsEndsAfterItsLimit(t *testing.T) {
	for name, far := range map[string]answers{
		"without an answer": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
		"within the answer": func(r *http.Request) (*http.Response, error) {
			body, hang := io.Pipe()
			context.AfterFunc(r.Context(), func() { hang.CloseWithError(r.Context().Err()) })
			go func() { _, _ = hang.Write([]byte(`{"cursor":`)) }()
			return answer(200, "application/json", body), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := newPeer(far).Call(t.Context(), http.MethodGet, "changes", nil, &link.Page{})
				if !errors.Is(err, link.ErrPeerAway) {
					t.Error(err)
				}
				equal(t, "after", time.Since(began), 75*time.Second)
				synctest.Wait()
			})
		})
	}
}

func TestCallEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, leave)
		began := time.Now()
		err := newPeer(answers(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })).
			Call(ctx, http.MethodGet, "changes", nil, nil)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		equal(t, "after", time.Since(began), 5*time.Second)
	})
}

// endless counts what is taken from a body that never ends.
type endless struct{ taken int }

func (e *endless) Read(b []byte) (int, error) {
	copy(b, bytes.Repeat([]byte{' '}, len(b)))
	e.taken += len(b)
	return len(b), nil
}

func TestAnswerWithoutEndIsGivenUp(t *testing.T) {
	for _, kind := range []string{"application/json", "text/html", "application/problem+json"} {
		body := &endless{}
		err := newPeer(answers(func(*http.Request) (*http.Response, error) { return answer(200, kind, body), nil })).
			Call(t.Context(), http.MethodGet, "changes", nil, &link.Page{})
		if err == nil || body.taken > 33<<20 {
			t.Error(kind, err, body.taken)
		}
	}
}

// besides is a transport of loopback that can make another one.
type besides struct{ *http.Transport }

func (b besides) Beside() http.RoundTripper { return besides{b.Clone()} }

// Over HTTP/2 all calls would share one connection: a greeting would wait behind a
// page, and die with it.
func TestGreetingsHaveAConnectionOfTheirOwn(t *testing.T) {
	local, cloud := pair(t)
	cloud.add("milk")
	l := newLine(cloud)
	used := map[string]map[string]bool{}
	var mu gosync.Mutex
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if used[r.URL.Path] == nil {
			used[r.URL.Path] = map[string]bool{}
		}
		used[r.URL.Path][r.Proto+" "+r.RemoteAddr] = true
		mu.Unlock()
		l.server().ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	tr := s.Client().Transport.(*http.Transport)
	c := link.NewClient(local.log, link.NewPeer(s.URL, "cloud", "local", secret, besides{tr}), link.ClientOptions{
		Crash: func(string) {}, Logger: slog.New(slog.DiscardHandler),
		Hello: func() link.Hello { return link.Hello{Node: "local", Now: time.Now().UnixMilli()} },
	})
	for range 3 {
		must(t, c.Greet(t.Context()))
		fetchPage(t, c)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(used["/peer/v1/hello"]) != 1 || len(used["/peer/v1/changes"]) != 1 {
		t.Fatal(used)
	}
	for conn := range used["/peer/v1/hello"] {
		if used["/peer/v1/changes"][conn] || !strings.HasPrefix(conn, "HTTP/2") {
			t.Error(used)
		}
	}
}
