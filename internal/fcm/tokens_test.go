package fcm_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fcm"
	"tandem/internal/push"
	"tandem/internal/standin"
)

// oneKey is made once: an RSA key takes its time.
var oneKey = sync.OnceValues(func() ([]byte, error) { return standin.ServiceAccount("http://login.test/token") })

// keyFile writes a service account's file, with text in it replaced, and returns its path.
func keyFile(t *testing.T, replace ...string) string {
	t.Helper()
	b, err := oneKey()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(string(b))), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// trusting returns a stand-in that asks for a login, and a channel that has one.
func trusting(t *testing.T) (*standin.FCM, *fcm.Channel, *counter) {
	t.Helper()
	path := keyFile(t)
	b, _ := os.ReadFile(path)
	far := standin.NewFCM("standin")
	if err := far.Trust(b); err != nil {
		t.Fatal(err)
	}
	count := &counter{base: standin.Transport(far)}
	c, err := fcm.New(t.Context(), fcm.Options{CredentialsFile: path, Transport: count, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return far, c, count
}

func TestServiceAccountLogsInOnceAndSends(t *testing.T) { // R:C11
	far, c, _ := trusting(t)
	succeed(t, c, phone, notice)
	succeed(t, c, phone, notice)
	if far.Grants() != 1 || far.Posts("") != 2 {
		t.Errorf("%d logins, %d posts", far.Grants(), far.Posts(""))
	}
}

func TestServiceAccountLogsInOverLoopback(t *testing.T) { // R:C11
	far := standin.NewFCM("standin")
	server := httptest.NewServer(far)
	defer server.Close()
	path := keyFile(t, "http://login.test", server.URL)
	b, _ := os.ReadFile(path)
	if err := far.Trust(b); err != nil {
		t.Fatal(err)
	}
	c, err := fcm.New(t.Context(), fcm.Options{CredentialsFile: path, Endpoint: server.URL, Transport: http.DefaultTransport, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, c, phone, notice)
	if far.Grants() != 1 {
		t.Errorf("%d logins", far.Grants())
	}
}

func TestSendWithoutALoginIsOurFaultAndKeepsTheAddress(t *testing.T) { // R:C11
	far, _, _ := trusting(t)
	c, _, _ := dial(t, far)
	if f := fail(t, c, phone, notice); f.Verdict != push.Misconfig || f.Code != "UNAUTHENTICATED" {
		t.Errorf("%+v", f)
	}
}

func TestExpiredTokenIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far, c, _ := trusting(t)
		succeed(t, c, phone, notice)
		time.Sleep(2 * time.Hour)
		succeed(t, c, phone, notice)
		if far.Grants() != 2 {
			t.Errorf("%d logins", far.Grants())
		}
	})
}

func TestRefusedTokenIsNotUsedAgain(t *testing.T) {
	far, c, _ := trusting(t)
	succeed(t, c, phone, notice)
	far.Revoke()
	before := far.Posts("")
	if f := fail(t, c, phone, notice); f.Verdict != push.Misconfig {
		t.Errorf("%+v", f)
	}
	if n := far.Posts("") - before; n != 1 {
		t.Errorf("%d posts in one attempt", n)
	}
	succeed(t, c, phone, notice)
}

func TestLoginFailures(t *testing.T) {
	cases := []struct {
		name    string
		fault   standin.Fault
		verdict push.Verdict
		code    string
	}{
		{"refused", standin.Forbidden, push.Misconfig, "token_refused"},
		{"500", standin.InternalError, push.Retry, "token_500"},
		{"too many", standin.Quota(time.Minute), push.Throttled, "token_429"},
		{"HTML 200", standin.HTML(200), push.Retry, "token_200"},
		{"HTML 403", standin.HTML(403), push.Retry, "token_403"},
		{"a redirect", standin.Redirect("http://elsewhere.test/token"), push.Retry, "token_307"},
		{"cut", standin.AcceptThenCut, push.Retry, "network"},
		{"torn", standin.AcceptThenTear, push.Retry, "network"},
		{"silence", standin.Hang, push.Retry, "timeout"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far, c, count := trusting(t)
				far.FailLogin(tc.fault)
				start := time.Now()
				f := fail(t, c, phone, notice)
				if f.Verdict != tc.verdict || f.Code != tc.code || f.MaybeTaken {
					t.Errorf("%+v", f)
				}
				if tc.name == "silence" && time.Since(start) != 10*time.Second {
					t.Errorf("gave up on the login after %v", time.Since(start))
				}
				if far.Posts("") != 0 || count.n != 1 {
					t.Errorf("%d posts, %d requests", far.Posts(""), count.n)
				}
				succeed(t, c, phone, notice)
			})
		})
	}
}

func TestUnknownAccountIsRefused(t *testing.T) {
	far, _, count := trusting(t)
	other := keyFile(t, "node@standin.test", "stranger@standin.test")
	c, err := fcm.New(t.Context(), fcm.Options{CredentialsFile: other, Transport: count, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	f := fail(t, c, phone, notice)
	if f.Verdict != push.Misconfig || f.Code != "token_refused" || !strings.Contains(f.Error(), "invalid_grant") {
		t.Errorf("%+v", f)
	}
	if far.Posts("") != 0 {
		t.Error("posted")
	}
}

func TestWaitingForALoginEndsWithEachContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far, c, _ := trusting(t)
		far.FailLogin(standin.Hang)
		start := time.Now()
		send := func(limit time.Duration, took *time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if _, err := c.Send(ctx, phone, notice); err == nil {
				t.Error("sent")
			}
			*took = time.Since(start)
		}
		var first, second time.Duration
		go send(6*time.Second, &first)
		synctest.Wait()
		go send(2*time.Second, &second)
		time.Sleep(time.Minute)
		synctest.Wait()
		if first != 6*time.Second || second != 2*time.Second {
			t.Errorf("the first gave up after %v, the second after %v", first, second)
		}
	})
}
