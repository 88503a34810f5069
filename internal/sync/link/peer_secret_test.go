package link_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sync/link"
)

// S:63. Whatever goes wrong on the way, before a connection, within it and in the code
// that makes the call: the secret is in no error, no status, no log, and in nothing that
// is kept.
func TestTheSecretIsNowhereWhateverGoesWrongOnTheWay(t *testing.T) {
	for name, far := range map[string]answers{
		"no such host": func(r *http.Request) (*http.Response, error) {
			return nil, &net.DNSError{Err: "no such host", Name: r.URL.Host, IsNotFound: true}
		},
		"a certificate of nobody": func(*http.Request) (*http.Response, error) { return nil, x509.UnknownAuthorityError{} },
		"401":                     says(401, "application/problem+json", `{"code":"not_the_peer"}`),
		"500":                     says(500, "text/html", "<h1>oops"),
		"a panic with the request in it": func(r *http.Request) (*http.Response, error) {
			panic(fmt.Sprintf("cannot send %+v", r))
		},
		"a panic with an error that has it": func(r *http.Request) (*http.Response, error) {
			panic(errors.New("bad header " + r.Header.Get("Authorization")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local, _ := pair(t)
				local.add("milk")
				asked := 0
				c, said := clientLogging(local, answers(func(r *http.Request) (*http.Response, error) {
					if asked++; !strings.Contains(r.Header.Get("Authorization"), "canary") {
						t.Error("the secret was not in the call: nothing is tested")
					}
					return far(r)
				}))
				stop := started(c)
				time.Sleep(10 * time.Minute)
				stop()
				if asked == 0 || said.String() == "" {
					t.Error("no call was made, or nothing was logged of it")
				}
				for what, text := range map[string]string{
					"log": said.String(), "status": fmt.Sprintf("%+v", c.Status()), "quarantine": fmt.Sprintf("%+v", aside(t, local)),
					"facts": read[string](local, `SELECT coalesce(group_concat(body), '') FROM facts`),
				} {
					if strings.Contains(text, "canary") {
						t.Errorf("the secret is in the %s: %.400s", what, text)
					}
				}
			})
		})
	}
}

// A panic that is none of the secret's goes on as it was: who catches it may know it.
func TestAPanicWithoutTheSecretIsLeftAsItIs(t *testing.T) {
	own := errors.New("of the transport")
	defer func() { equal(t, "panic", recover(), any(own)) }()
	_ = newPeer(answers(func(*http.Request) (*http.Response, error) { panic(own) })).Call(t.Context(), http.MethodGet, "changes", nil, nil)
}

// S:63. A TLS server with a certificate that nobody here knows.
func TestAServerWithAnotherCertificateIsToldWithoutTheSecret(t *testing.T) {
	reached := false
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	err := link.NewPeer(s.URL, "cloud", "local", secret, &http.Transport{}).Call(t.Context(), http.MethodGet, "changes", nil, nil)
	if !errors.Is(err, link.ErrPeerAway) || reached {
		t.Errorf("got %v; the server was reached: %t", err, reached)
	}
	noSecret(t, err)
}
