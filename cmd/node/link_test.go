package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/internal/sync/link"
)

// says answers everything alike.
func says(status int, kind, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// hello is what the wrong node would say of itself.
func hello(node string, origin, protocol int) string {
	return fmt.Sprintf(`{"node":%q,"origin":%d,"incarnation":"x","protocol":%d,"version":"x","scheduler":"off","now":0}`, node, origin, protocol)
}

// Whatever stands where the peer should be: the node works on, tells what is wrong,
// and needs nobody to be well again.
func TestANodeOutlivesWhateverAnswersInItsPeersPlace(t *testing.T) {
	for name, c := range map[string]struct {
		proxy http.Handler
		code  string
		says  string // what is known of this one
	}{
		"a login page":          {says(200, "text/html; charset=utf-8", "<p>Welcome to our hotel"), "peer_stranger", ""},
		"a gateway's error":     {says(502, "text/html", "<h1>Bad Gateway"), "peer_stranger", "502 with content type"},
		"401":                   {says(401, "application/problem+json", `{"code":"not_the_peer"}`), "peer_refused", ""},
		"401 of a proxy":        {says(401, "text/html", "<h1>Unauthorized"), "peer_refused", ""},
		"a redirect":            {http.RedirectHandler("http://elsewhere.test/", http.StatusTemporaryRedirect), "peer_stranger", "with 307 to \"http://elsewhere.test/\""},
		"a lasting redirect":    {http.RedirectHandler("http://elsewhere.test/", http.StatusPermanentRedirect), "peer_stranger", ""},
		"other JSON":            {says(200, "application/json", `{"ok":true}`), "peer_stranger", ""},
		"a list":                {says(200, "application/json", `[]`), "peer_stranger", ""},
		"half an answer":        {says(200, "application/json", `{"node":"clo`), "peer_stranger", ""},
		"nothing":               {says(200, "", ""), "peer_stranger", ""},
		"a problem":             {says(500, "application/problem+json", `{"code":"internal"}`), "peer_failed", "500 \"internal\""},
		"itself":                {says(200, "application/json", hello("home", 0, 1)), "peer_self", ""},
		"a copy of itself":      {says(200, "application/json", hello("cloud", 0, 1)), "peer_self", ""},
		"a third node":          {says(200, "application/json", hello("shed", 1, 1)), "peer_name", "it says that it is \"shed\", not \"cloud\""},
		"a node without a peer": {says(404, "application/problem+json", `{"code":"no_such_route"}`), "peer_alone", "no section peer"},
		"too many requests":     {says(429, "text/plain", "slow down"), "peer_stranger", "too many requests"},
		"another protocol":      {says(200, "application/json", hello("cloud", 1, 2)), "peer_version", ""},
		"silence": {http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}), "peer_away", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				var elsewhere, secrets int
				b.link.answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Host != "cloud.test" {
						elsewhere++
						secrets += len(r.Header["Authorization"])
					}
					c.proxy.ServeHTTP(w, r)
				}))
				b.cloud.add("from the cloud")
				b.home.add("from home")
				settle(3 * time.Minute)
				equal(t, "home works", b.home.todos(), "0-1 from home")
				status := b.home.node.client.Status()
				equal(t, "what is wrong", status.Code, c.code)
				found := b.home.node.examinePeer()[0]
				level := fail
				if status.State == link.Offline {
					level = warn
				}
				if found.Level != level || !strings.Contains(found.Detail, status.Detail) || status.Detail == "" || found.Mend == "" {
					t.Errorf("the doctor says %s %q → %q", found.Level, found.Detail, found.Mend)
				}
				if told := b.home.syncStatus(); !strings.Contains(told.Detail, status.Detail) || !strings.HasSuffix(told.Detail, found.Mend) {
					t.Errorf("an admin reads %q, and the doctor says to do %q", told.Detail, found.Mend)
				}
				if c.says != "" && !strings.Contains(found.Detail, c.says) {
					t.Errorf("the doctor says %q, and not %q", found.Detail, c.says)
				}
				equal(t, "requests to a place that nobody configured", elsewhere+secrets, 0)
				b.link.answer(nil)
				healed()
				equal(t, "home, healed", b.home.todos(), "0-1 from home, 1-1 from the cloud")
				equal(t, "the state, healed", b.home.node.client.Status().State, "ok")
				equal(t, "the doctor, healed", b.home.node.examinePeer()[0].Level, fine)
				b.alike()
				b.home.off()
				if strings.Contains(b.home.log.String(), bubbleSecret) {
					t.Error("the log holds the secret of the link")
				}
			})
		})
	}
}

// The cloud answers a caller that is not its peer as it answers any stranger.
func TestOnlyThePeerMayCall(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		for name, p := range map[string]*link.Peer{
			"another secret": link.NewPeer("http://cloud.test", "cloud", "home", strings.Repeat("x", 43), b.link),
			"another name":   link.NewPeer("http://cloud.test", "cloud", "shed", bubbleSecret, b.link),
			"no secret":      link.NewPeer("http://cloud.test", "cloud", "home", "", b.link),
		} {
			for _, path := range []string{"hello", "changes", "accounts", "push-tokens", "nothing"} {
				err := p.Call(t.Context(), http.MethodGet, path, nil, nil)
				if !errors.Is(err, link.ErrPeerRefused) {
					t.Errorf("%s, GET %s: %v", name, path, err)
				}
			}
		}
		b.cloud.refused(http.MethodGet, "/peer/v1/accounts", nil, http.StatusUnauthorized, "not_the_peer") // Ada's own session
		b.home.refused(http.MethodGet, "/peer/v1/accounts", nil, http.StatusNotFound, "no_such_route")     // nobody calls home
	})
}

// Answers that are lost on the way back are asked for again, and nothing is done twice.
func TestLostAnswersCostNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		lose := 0
		b.link.answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h, _ := b.cloud.listens()
			if lose++; lose%3 == 0 {
				h.ServeHTTP(&void{http.Header{}}, r)
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		}))
		for range 10 {
			b.home.add("from home")
			b.cloud.add("from the cloud")
			b.home.register("phone")
			settle(7 * time.Second)
		}
		b.link.answer(nil)
		healed()
		equal(t, "rows", len(b.alike()), 20)
		equal(t, "phones at the cloud", b.cloud.phones(), "phone")
		b.quiet()
	})
}

// void takes an answer that nobody will see.
type void struct{ header http.Header }

func (v *void) Header() http.Header         { return v.header }
func (v *void) Write(b []byte) (int, error) { return len(b), nil }
func (v *void) WriteHeader(int)             {}
