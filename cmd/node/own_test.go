package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/internal/pairing"
)

// Sessions, and the keys under which requests were made, are each node's own: they are
// good at no other, and nothing of them is in any call between the two.
func TestSessionsAndKeysOfRequestsNeverCross(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var mu sync.Mutex
		var said bytes.Buffer
		b.link.answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(asked))
			r.Header.Del("Accept-Encoding") // so that what passes can be read
			h, _ := b.cloud.listens()
			far := httptest.NewRecorder()
			h.ServeHTTP(far, r)
			mu.Lock()
			said.WriteString(r.URL.String() + "\n" + string(asked) + "\n" + far.Body.String() + "\n")
			mu.Unlock()
			for name, values := range far.Header() {
				if name != "Accept-Encoding" {
					w.Header()[name] = values
				}
			}
			w.WriteHeader(far.Code)
			_, _ = w.Write(far.Body.Bytes())
		}))
		healed()
		const key = "the-key-of-a-request"
		for _, m := range []*machine{b.home, b.cloud} {
			m.login()
			m.do(http.MethodPost, "/v1/todos", map[string]string{"content": "crosses from " + m.config.Node.Name}, nil, "Idempotency-Key: "+key+m.config.Node.Name)
		}
		settle(2 * time.Minute)
		b.alike()
		own := b.home.token
		b.home.token = b.cloud.token
		b.home.in(false)
		b.home.token = own
		mu.Lock()
		defer mu.Unlock()
		text := strings.NewReplacer(b.home.config.Node.Data, "", b.cloud.config.Node.Data, "").Replace(said.String()) // this test's name is in their paths
		for _, crosses := range []string{"crosses from home", "crosses from cloud"} {
			if !strings.Contains(text, crosses) {
				t.Errorf("%q is in no call: nothing was recorded", crosses)
			}
		}
		for _, token := range []string{b.home.token, b.cloud.token, key} {
			hash := sha256.Sum256([]byte(token))
			for _, form := range []string{token, hex.EncodeToString(hash[:]), base64.StdEncoding.EncodeToString(hash[:]), base64.RawURLEncoding.EncodeToString(hash[:])} {
				if strings.Contains(text, form) {
					t.Errorf("%q is in a call between the nodes", form)
				}
			}
		}
		for _, table := range []string{"session", "idempotency"} {
			if strings.Contains(strings.ToLower(text), table) {
				t.Errorf("a call between the nodes speaks of %q", table)
			}
		}
	})
}

// A code to pair with is in no file: a node that was put back, or only started anew, does
// not know it any more.
func TestAPairingCodeIsVoidOnceTheNodeWasPutBack(t *testing.T) {
	for name, putBack := range map[string]bool{"started anew": false, "put back": true} {
		t.Run(name, func(t *testing.T) {
			inStrangeBubble(t, func(t *testing.T, b *bubble) {
				code, err := b.cloud.node.openPairing(t.Context(), struct{}{})
				must(t, err)
				dir := b.cloud.backup()
				b.cloud.off()
				if putBack {
					b.cloud.restore(dir)
				}
				b.cloud.on()
				settle(time.Second)
				join := pairing.Request{Code: code.Code, Passwords: map[string]string{demoEmail: homesPassword}}
				if _, err := b.home.node.pairJoin(t.Context(), join); err == nil {
					t.Error("the code was taken")
				}
				must(t, b.pairs(homesPassword))
			})
		})
	}
}
