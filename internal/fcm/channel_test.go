package fcm_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fcm"
	"tandem/internal/push"
	"tandem/internal/standin"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

var (
	phone  = push.Target{Address: "device-token-1", Platform: "android"}
	notice = push.Message{
		FireID: strings.Repeat("f1", 32),
		Title:  "Reminder",
		Body:   "water the ficus",
		DueAt:  time.Date(2026, 5, 6, 8, 30, 0, 0, time.UTC),
		TTL:    24 * time.Hour,
	}
)

// counter counts what leaves the channel, whether or not it arrives.
type counter struct {
	base http.RoundTripper
	n    int
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n++
	return c.base.RoundTrip(r)
}

// dial returns a channel to a stand-in in memory that asks for no login.
func dial(t *testing.T, far http.Handler) (*fcm.Channel, *standin.Wire, *counter) {
	t.Helper()
	wire := standin.Transport(far)
	count := &counter{base: wire}
	c, err := fcm.New(t.Context(), fcm.Options{ProjectID: "standin", Endpoint: "http://fcm.test", Transport: count, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return c, wire, count
}

// fail sends, expects a failure, and returns it.
func fail(t *testing.T, c *fcm.Channel, to push.Target, m push.Message) *push.Failure {
	t.Helper()
	id, err := c.Send(t.Context(), to, m)
	f, ok := err.(*push.Failure)
	if !ok || id != "" {
		t.Fatalf("id %q, error %v; want a failure", id, err)
	}
	for _, secret := range []string{to.Address, m.Body, m.Title} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %q: %v", secret, err)
		}
	}
	return f
}

func succeed(t *testing.T, c *fcm.Channel, to push.Target, m push.Message) string {
	t.Helper()
	id, err := c.Send(t.Context(), to, m)
	if err != nil || id == "" {
		t.Fatalf("id %q, error %v", id, err)
	}
	return id
}

func TestSendPostsOnceAndReturnsFCMsName(t *testing.T) {
	far := standin.NewFCM("standin")
	c, _, count := dial(t, far)
	if count.n != 0 {
		t.Fatal("New made a call")
	}
	id := succeed(t, c, phone, notice)
	if got := far.Messages(); len(got) != 1 || got[0].Name != id || count.n != 1 {
		t.Fatalf("id %q, %d posts, arrived %+v", id, count.n, got)
	}
	if c.Name() != "fcm" {
		t.Error(c.Name())
	}
}

// What FCM calls a message goes into a fact, which the other node must be able to take.
func TestAnAcceptedMessageWithAnUnheardOfNameIsAcceptedAllTheSame(t *testing.T) {
	for _, name := range []string{strings.Repeat("x", 300_000), `a\u0000b`, "two words"} {
		far := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"name": "%s"}`, name)
		})
		c, _, _ := dial(t, far)
		if id, err := c.Send(t.Context(), phone, notice); id != "" || err != nil {
			t.Errorf("a name of %d bytes, error %v", len(id), err)
		}
	}
}

func TestEachSendIsOnePostAndNeverWaits(t *testing.T) {
	faults := map[string]standin.Fault{
		"R:C1 503":                         standin.Unavailable(0),
		"R:C2 503 with Retry-After 120 s":  standin.Unavailable(120 * time.Second),
		"R:C2 429 with Retry-After 60 s":   standin.Quota(60 * time.Second),
		"R:C2 429":                         standin.Quota(0),
		"500":                              standin.InternalError,
		"502 in HTML":                      standin.HTML(502),
		"401":                              standin.Unauthenticated,
		"R:C1 taken, then the answer lost": standin.AcceptThenCut,
		"R:C1 taken, then half an answer":  standin.AcceptThenTear,
		"a redirect":                       standin.Redirect("http://elsewhere.test/"),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far := standin.NewFCM("standin")
				c, _, count := dial(t, far)
				start := time.Now()
				for range 5 {
					far.Fail(phone.Address, fault)
					fail(t, c, phone, notice)
				}
				if count.n != 5 || far.Posts(phone.Address) != 5 {
					t.Errorf("5 sends made %d posts, %d arrived", count.n, far.Posts(phone.Address))
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("5 sends took %v", d)
				}
			})
		})
	}
}

func TestNetworkErrorsAreOneDialAndNoAnswer(t *testing.T) { // R:C1
	synctest.Test(t, func(t *testing.T) {
		far := standin.NewFCM("standin")
		c, wire, count := dial(t, far)
		start := time.Now()
		wire.Cut()
		f := fail(t, c, phone, notice)
		if f.Verdict != push.Retry || f.MaybeTaken || f.Code != "network" {
			t.Errorf("%+v", f)
		}
		if count.n != 1 || time.Since(start) != 0 {
			t.Errorf("%d dials in %v", count.n, time.Since(start))
		}
		wire.Mend()
		succeed(t, c, phone, notice)
	})
}

func TestClosedPortIsToldAtOnce(t *testing.T) { // R:C1
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c, err := fcm.New(t.Context(), fcm.Options{ProjectID: "standin", Endpoint: "http://" + l.Addr().String(), Transport: http.DefaultTransport, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if f := fail(t, c, phone, notice); f.Verdict != push.Retry || f.MaybeTaken {
		t.Errorf("%+v", f)
	}
}

func TestLostAnswerShowsOnceOnThePhone(t *testing.T) { // R:C1
	for name, lose := range map[string]func(*standin.FCM, *standin.Wire){
		"cut":     func(f *standin.FCM, _ *standin.Wire) { f.Fail("", standin.AcceptThenCut) },
		"torn":    func(f *standin.FCM, _ *standin.Wire) { f.Fail("", standin.AcceptThenTear) },
		"dropped": func(_ *standin.FCM, w *standin.Wire) { w.DropAnswers(1) },
	} {
		t.Run(name, func(t *testing.T) {
			far := standin.NewFCM("standin")
			c, wire, _ := dial(t, far)
			lose(far, wire)
			if f := fail(t, c, phone, notice); f.Verdict != push.Retry || !f.MaybeTaken {
				t.Fatalf("%+v", f)
			}
			succeed(t, c, phone, notice)
			if len(far.Messages()) != 2 {
				t.Fatalf("%d messages arrived; the far end took the first too", len(far.Messages()))
			}
			if shown := far.Screen(phone.Address); len(shown) != 1 || shown[0].Data["fire_id"] != notice.FireID {
				t.Errorf("the phone shows %+v", shown)
			}
		})
	}
}

func TestSendEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := standin.NewFCM("standin")
		far.FailAlways("", standin.Hang)
		c, _, count := dial(t, far)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		_, err := c.Send(ctx, phone, notice)
		f, ok := err.(*push.Failure)
		if !ok || f.Verdict != push.Retry || !f.MaybeTaken || f.Code != "timeout" {
			t.Errorf("%v", err)
		}
		if d := time.Since(start); d != 7*time.Second || count.n != 1 {
			t.Errorf("%d posts in %v", count.n, d)
		}
	})
}

func TestSendAfterItsContextPostsNothing(t *testing.T) {
	far := standin.NewFCM("standin")
	c, _, _ := dial(t, far)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Send(ctx, phone, notice)
	if f, ok := err.(*push.Failure); !ok || f.Verdict != push.Retry || f.MaybeTaken || f.Code != "cancelled" {
		t.Errorf("%v", err)
	}
	if far.Posts("") != 0 {
		t.Error("posted")
	}
}

func TestThreePhonesFareEachOnTheirOwn(t *testing.T) { // R:C3
	far := standin.NewFCM("standin")
	c, _, _ := dial(t, far)
	second, third := push.Target{Address: "device-token-2"}, push.Target{Address: "device-token-3"}
	far.Fail(second.Address, standin.InternalError)
	far.FailAlways(third.Address, standin.Unregistered)

	succeed(t, c, phone, notice)
	if f := fail(t, c, second, notice); f.Verdict != push.Retry {
		t.Errorf("%+v", f)
	}
	if f := fail(t, c, third, notice); f.Verdict != push.Unregistered {
		t.Errorf("%+v", f)
	}
	succeed(t, c, second, notice)
	for target, posts := range map[push.Target]int{phone: 1, second: 2, third: 1} {
		if far.Posts(target.Address) != posts {
			t.Errorf("%d posts to %s, want %d", far.Posts(target.Address), target.Address, posts)
		}
	}
}

func TestMessageWithoutAnAddressIsNotPosted(t *testing.T) {
	far := standin.NewFCM("standin")
	c, _, _ := dial(t, far)
	_, err := c.Send(t.Context(), push.Target{}, notice)
	if f, ok := err.(*push.Failure); !ok || f.Verdict != push.Rejected || far.Posts("") != 0 {
		t.Errorf("%v, %d posts", err, far.Posts(""))
	}
}

func TestStandInOverLoopbackServesTheSame(t *testing.T) {
	far := standin.NewFCM("standin")
	server := httptest.NewServer(far)
	defer server.Close()
	c, err := fcm.New(t.Context(), fcm.Options{ProjectID: "standin", Endpoint: server.URL, Transport: http.DefaultTransport, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, c, phone, notice)
	for _, fault := range []standin.Fault{standin.AcceptThenCut, standin.AcceptThenTear} {
		before := far.Posts("")
		far.Fail("", fault)
		if f := fail(t, c, phone, notice); f.Verdict != push.Retry || !f.MaybeTaken {
			t.Errorf("%+v", f)
		}
		if n := far.Posts("") - before; n != 1 {
			t.Errorf("%d posts over a real connection", n)
		}
	}
}
