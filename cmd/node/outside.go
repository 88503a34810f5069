package main

import (
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"time"
)

// outside is what a node cannot make for itself, so that a test may stand in for it.
type outside struct {
	now      func() time.Time
	rand     io.Reader
	peer     http.RoundTripper  // to the other node
	fcm      http.RoundTripper  // to Google
	telegram http.RoundTripper  // to Telegram
	crash    func(point string) // called at each crash point
	maxPages int                // of each database file; 0: as many as the disk holds
}

// world is the real outside.
func world() outside {
	t := transport()
	return outside{now: time.Now, rand: rand.Reader, peer: t, fcm: t, telegram: t, crash: crashPoints(), maxPages: maxPages()}
}

// transport is how a node reaches others. A node at home changes networks and
// sleeps: a ping finds the connection that died meanwhile, long before a call on
// it would give up.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second}
	t.Proxy = proxy
	return t
}

// proxy is the environment's for https. A plain call goes to this machine or into
// a network that encrypts by itself, and carries its secret to nobody between.
func proxy(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme == "http" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}
