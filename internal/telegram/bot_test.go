package telegram_test

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/push"
	"tandem/internal/standin"
	"tandem/internal/telegram"
)

const (
	token  = "123456:AA-secret_half"
	secret = "AA-secret_half"
)

var (
	chat   = push.Target{Address: "42"}
	notice = push.Message{FireID: "f1", Title: "Reminder", Body: "water the ficus", TTL: time.Hour}
)

func TestMain(m *testing.M) {
	flag.Set("rapid.seed", "20260506") // the same texts in each run
	os.Exit(m.Run())
}

func dial(far http.Handler) (*telegram.Bot, *standin.Wire) {
	wire := standin.Transport(far)
	return telegram.New(telegram.Options{Token: token, Endpoint: "https://telegram.test", Transport: wire}), wire
}

// fail sends, expects a failure that shows neither token nor text, and returns it.
func fail(t *testing.T, b *telegram.Bot, to push.Target, m push.Message) *push.Failure {
	t.Helper()
	id, err := b.Send(t.Context(), to, m)
	f, ok := err.(*push.Failure)
	if !ok || id != "" {
		t.Fatalf("id %q, error %v; want a failure", id, err)
	}
	for cause := error(f); cause != nil; cause = errors.Unwrap(cause) {
		for _, hidden := range []string{secret, m.Body, m.Title} {
			if hidden != "" && strings.Contains(fmt.Sprintf("%v %+v %#v", cause, cause, cause), hidden) {
				t.Errorf("the error shows %q: %#v", hidden, cause)
			}
		}
	}
	return f
}

func succeed(t *testing.T, b *telegram.Bot, to push.Target, m push.Message) string {
	t.Helper()
	id, err := b.Send(t.Context(), to, m)
	if err != nil || id == "" {
		t.Fatalf("id %q, error %v", id, err)
	}
	return id
}

func TestNoticeReachesTheChat(t *testing.T) {
	far := standin.NewTelegram(token)
	b, _ := dial(far)
	m := notice
	m.Notes = []string{"(late, was due 08:30)", "(sent again after a restart)"}
	if id := succeed(t, b, chat, m); id != "1" || b.Name() != "telegram" {
		t.Errorf("id %q", id)
	}
	got := far.Messages()[0]
	if got.Chat != 42 || got.Text != "Reminder\nwater the ficus\n(late, was due 08:30)\n(sent again after a restart)" {
		t.Errorf("%+v", got)
	}
	if len(got.Entities) != 1 || got.Entities[0] != (standin.TelegramEntity{Type: "bold", Length: len("Reminder")}) {
		t.Errorf("%+v", got.Entities)
	}
}

func TestStartMakesNoCallAndOutlivesAnOutage(t *testing.T) { // R:D12
	far := standin.NewTelegram(token)
	wire := standin.Transport(far)
	wire.Cut()
	b := telegram.New(telegram.Options{Token: token, Transport: wire})
	if f := fail(t, b, chat, notice); f.Verdict != push.Retry || f.MaybeTaken || f.Code != "network" {
		t.Errorf("%+v", f)
	}
	wire.Mend()
	succeed(t, b, chat, notice)
	if far.Calls("getMe") != 0 || far.Calls("sendMessage") != 1 {
		t.Errorf("%d getMe, %d sendMessage", far.Calls("getMe"), far.Calls("sendMessage"))
	}
}

func TestVerdicts(t *testing.T) {
	cases := []struct {
		name    string
		fault   standin.Fault
		verdict push.Verdict
		code    string
		wait    time.Duration
		maybe   bool // it may have been taken
	}{
		{"R:D11 429", standin.Flood(51 * time.Second), push.Throttled, "429", 51 * time.Second, false},
		{"R:D13 blocked", standin.Blocked, push.Unregistered, "403", 0, false},
		{"R:D4 400", standin.TelegramError(400, "Bad Request: chat not found"), push.Rejected, "400", 0, false},
		{"401", standin.TelegramError(401, "Unauthorized"), push.Misconfig, "401", 0, false},
		{"404", standin.TelegramError(404, "Not Found"), push.Misconfig, "404", 0, false},
		{"409", standin.TelegramError(409, "Conflict"), push.Retry, "409", 0, false},
		{"500", standin.TelegramError(500, "Internal Server Error"), push.Retry, "500", 0, false},
		{"R:D1 HTML 502", standin.HTML(502), push.Retry, "502", 0, true},
		{"HTML 200", standin.HTML(200), push.Retry, "unreadable_answer", 0, true},
		{"HTML 403", standin.HTML(403), push.Retry, "403", 0, false},
		{"HTML 404", standin.HTML(404), push.Retry, "404", 0, false},
		{"HTML 429", standin.HTML(429), push.Throttled, "429", 0, false},
		{"R:D1 a redirect", standin.Redirect("https://elsewhere.test/bot" + token), push.Retry, "307", 0, false},
		{"R:D1 a redirect to nowhere", standin.Redirect("https://elsewhere.test/bot" + token + "/%zz"), push.Retry, "307", 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			far := standin.NewTelegram(token)
			b, _ := dial(far)
			far.FailAlways(42, c.fault)
			m := notice
			m.Title = "" // no emphasis, so no second call
			f := fail(t, b, chat, m)
			if f.Verdict != c.verdict || f.Code != c.code || f.RetryAfter != c.wait || f.MaybeTaken != c.maybe {
				t.Errorf("%+v", f)
			}
			if far.Calls("sendMessage") != 1 || len(far.Messages()) != 0 {
				t.Errorf("%d calls, %d accepted", far.Calls("sendMessage"), len(far.Messages()))
			}
		})
	}
}

func TestYesWithAnErrorsStatusIsNoAcceptance(t *testing.T) {
	for _, status := range []int{302, 500, 502} {
		b, _ := dial(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, `{"ok": true, "result": {"message_id": 5}}`)
		}))
		if f := fail(t, b, chat, notice); f.Verdict != push.Retry || f.MaybeTaken != (status >= 500) {
			t.Errorf("%d: %+v", status, f)
		}
	}
	for _, body := range []string{`{"ok": true}`, `{"ok": true, "result": true}`, `{"ok": true, "result": {}}`, `{}`, `[]`, ``} {
		b, _ := dial(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
		if f := fail(t, b, chat, notice); f.Verdict != push.Retry || f.Code != "unreadable_answer" || !f.MaybeTaken {
			t.Errorf("%q: %+v", body, f)
		}
	}
}

func TestEndpointMayHaveAPathOfItsOwn(t *testing.T) {
	far := standin.NewTelegram(token)
	wire := standin.Transport(http.StripPrefix("/a b/%s", far))
	b := telegram.New(telegram.Options{Token: token, Endpoint: "https://telegram.test/a%20b/%25s", Transport: wire})
	succeed(t, b, chat, notice)
}

func TestWrongTokenIsOurFault(t *testing.T) {
	for name, wrong := range map[string]string{"unknown": "123456:other", "no token at all": "junk"} {
		t.Run(name, func(t *testing.T) {
			b := telegram.New(telegram.Options{Token: wrong, Transport: standin.Transport(standin.NewTelegram(token))})
			if f := fail(t, b, chat, notice); f.Verdict != push.Misconfig || f.MaybeTaken {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestRefusedEmphasisIsLeftOutOnce(t *testing.T) { // R:D4
	far := standin.NewTelegram(token)
	b, _ := dial(far)
	refusal := standin.TelegramError(400, "Bad Request: can't parse entities")
	far.Fail(42, refusal)
	succeed(t, b, chat, notice)
	if got := far.Messages(); len(got) != 1 || got[0].Entities != nil || far.Calls("sendMessage") != 2 {
		t.Errorf("%d calls, %+v", far.Calls("sendMessage"), got)
	}
	far.Fail(42, refusal, refusal)
	if f := fail(t, b, chat, notice); f.Verdict != push.Rejected {
		t.Errorf("%+v", f)
	}
	if n := far.Calls("sendMessage"); n != 4 {
		t.Errorf("%d calls in all; the second attempt makes two and stops", n)
	}
}

func TestLostAnswerIsNotAnAcceptance(t *testing.T) {
	for name, lose := range map[string]standin.Fault{"cut": standin.AcceptThenCut, "torn": standin.AcceptThenTear} {
		t.Run(name, func(t *testing.T) {
			far := standin.NewTelegram(token)
			b, _ := dial(far)
			far.Fail(0, lose)
			if f := fail(t, b, chat, notice); f.Verdict != push.Retry || !f.MaybeTaken {
				t.Errorf("%+v", f)
			}
			if len(far.Messages()) != 1 || far.Calls("sendMessage") != 1 {
				t.Errorf("%d calls", far.Calls("sendMessage"))
			}
		})
	}
}

func TestSilenceEndsWithTheContext(t *testing.T) { // R:D12
	synctest.Test(t, func(t *testing.T) {
		far := standin.NewTelegram(token)
		far.FailAlways(0, standin.Hang)
		b, _ := dial(far)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := b.Send(ctx, chat, notice)
		if f, ok := errors.AsType[*push.Failure](err); !ok || f.Verdict != push.Retry || !f.MaybeTaken || f.Code != "timeout" {
			t.Errorf("%v", err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("after %v", d)
		}
	})
}

// broken is a transport that fails before it reaches anyone.
type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

// Every way in which the network itself can fail, over real sockets. R:D1
func TestNoErrorShowsTheToken(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := silent.Addr().String()
	silent.Close()
	// echo answers with a status line that repeats the request's path.
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\n\r\n", r.URL.Path)
			conn.Close()
		}
	}))
	defer echo.Close()
	secure := httptest.NewUnstartedServer(standin.NewTelegram(token))
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()

	for name, c := range map[string]struct {
		endpoint string
		maybe    bool // it may have been taken
	}{
		"a closed port":            {"http://" + closed, false},
		"an unknown certificate":   {secure.URL, false},
		"no TLS where it is asked": {strings.Replace(echo.URL, "http:", "https:", 1), false},
		"an answer that echoes":    {echo.URL, true},
		"no URL":                   {"http://bad host", false},
		"a percent sign":           {"http://" + closed + "/%s%d%zz", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := telegram.New(telegram.Options{Token: token, Endpoint: c.endpoint, Transport: http.DefaultTransport})
			f := fail(t, b, chat, notice)
			if f.MaybeTaken != c.maybe {
				t.Errorf("%+v", f)
			}
		})
	}
	for name, err := range map[string]error{
		"a name that is none":        &net.DNSError{Err: "no such host", Name: "api.telegram.org", IsNotFound: true},
		"a proxy that names the URL": &url.Error{Op: "Post", URL: "https://telegram.test/bot" + token + "/sendMessage", Err: io.EOF},
		"an error around that": fmt.Errorf("proxy: %w",
			&url.Error{Op: "Post", URL: "https://telegram.test/bot" + token + "/sendMessage", Err: io.EOF}),
	} {
		t.Run(name, func(t *testing.T) {
			b := telegram.New(telegram.Options{Token: token, Transport: broken{err}})
			f := fail(t, b, chat, notice)
			if f.Verdict != push.Retry || !f.MaybeTaken { // for all that such a transport says
				t.Errorf("%+v", f)
			}
			if inner, ok := errors.AsType[*url.Error](err); ok && !errors.Is(f, inner.Err) {
				t.Errorf("the reason was lost with the URL: %v", f)
			}
		})
	}
	t.Run("a token that breaks the URL", func(t *testing.T) {
		b := telegram.New(telegram.Options{Token: "123456:" + secret + "\n", Endpoint: "http://" + closed, Transport: http.DefaultTransport})
		if f := fail(t, b, chat, notice); f.Verdict != push.Misconfig {
			t.Errorf("%+v", f)
		}
	})
}

func TestAddressThatIsNoChatIsRefused(t *testing.T) {
	far := standin.NewTelegram(token)
	b, _ := dial(far)
	for _, address := range []string{"", "@someone", "4 2"} {
		if f := fail(t, b, push.Target{Address: address}, notice); f.Verdict != push.Rejected {
			t.Errorf("%q: %+v", address, f)
		}
	}
	if f := fail(t, b, chat, push.Message{Body: " \n "}); f.Verdict != push.Rejected {
		t.Errorf("%+v", f)
	}
	if far.Calls("sendMessage") != 0 {
		t.Error("called")
	}
}
