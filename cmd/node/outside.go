package main

import (
	"crypto/rand"
	"io"
	"net/http"
	"time"
)

// outside is what a node cannot make for itself, so that a test may stand in for it.
type outside struct {
	now      func() time.Time
	rand     io.Reader
	peer     http.RoundTripper  // to the other node
	fcm      http.RoundTripper  // to Google; nil: the library's own
	telegram http.RoundTripper  // to Telegram
	crash    func(point string) // called at each crash point
}

// world is the real outside.
func world() outside {
	return outside{now: time.Now, rand: rand.Reader, peer: peerTransport(), telegram: plainTransport(), crash: crashPoints()}
}

// peerTransport keeps its own connections to the peer: a long poll holds one, a
// page another, and the greeting must not wait behind either.
func peerTransport() http.RoundTripper {
	t := plainTransport()
	t.MaxIdleConnsPerHost = 8
	t.ResponseHeaderTimeout = 75 * time.Second
	return t
}

func plainTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSHandshakeTimeout = 10 * time.Second
	t.IdleConnTimeout = 90 * time.Second
	return t
}
