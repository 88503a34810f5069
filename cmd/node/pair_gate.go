package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"tandem/internal/api"
	"tandem/internal/fault"
	"tandem/internal/loop"
	"tandem/internal/pairing"
	"tandem/internal/sync/link"
)

// joined is the way to the peer of a node whose accounts are the peer's. One that was
// alone and has accounts of its own says nothing there before they are: rows would
// cross that belong to nobody at the other end. One that was parted from its peer says
// nothing there at all.
type joined struct {
	*node
	over http.RoundTripper
}

// Beside implements link.Besider.
func (j joined) Beside() http.RoundTripper {
	if t, ok := j.over.(*http.Transport); ok {
		j.over = t.Clone()
	}
	return j
}

// CloseIdleConnections is what http.Client asks for by this name.
func (j joined) CloseIdleConnections() {
	if t, ok := j.over.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper. A call that is under way when the nodes are
// parted ends then, and so does the reading of its answer.
func (j joined) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, stop := context.WithCancel(r.Context())
	forget := context.AfterFunc(j.parting.Together(), stop)
	end := func() { forget(); stop() }
	if err := j.may(ctx); err != nil {
		end()
		if r.Body != nil {
			_ = r.Body.Close() // as the contract has it; it was not read
		}
		return nil, err
	}
	res, err := j.over.RoundTrip(r.WithContext(ctx))
	switch {
	case err == nil:
		res.Body = answer{res.Body, end}
		return res, nil
	case j.parting.Parted():
		err = pairing.ErrParted.Because(err)
	}
	end()
	return nil, err
}

// answer is the body of an answer, whose call ends as it is closed.
type answer struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (a answer) Close() error {
	defer a.end()
	return a.ReadCloser.Close()
}

// may says why the peer must not be called now.
func (j joined) may(ctx context.Context) error {
	switch {
	case j.parting.Parted():
		return pairing.ErrParted
	case j.users.Unjoined():
		return j.joinKnown(ctx)
	}
	return nil
}

// errPutOut is what a caller is answered that was let in, until the nodes were parted.
var errPutOut = fault.New(fault.Unauthenticated, "not_the_peer", "This node was parted from its peer meanwhile.")

// door lets the peer in until the nodes are parted; a poll that waits then is answered
// with what there was by then, and what cannot be done any more as to a stranger.
func (n *node) door(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == api.PairPath {
			server.ServeHTTP(w, r)
			return
		}
		ctx, stop := context.WithCancelCause(r.Context())
		defer stop(nil)
		defer context.AfterFunc(n.parting.Together(), func() { stop(errPutOut) })()
		server.ServeHTTP(w, r.WithContext(ctx))
	})
}

// letsIn reports whether whoever presents a secret is the peer.
func (n *node) letsIn(secret string) bool { return n.keys.Match(secret) && !n.parting.Parted() }

// joinKnown takes the peer's accounts over where each of this node's is among them,
// as after its folder was copied: nothing changes hands, and nobody need be asked.
func (n *node) joinKnown(ctx context.Context) error {
	var theirs link.Hello
	var all link.Whole
	mine := n.hello()
	if err := n.unjoined.Call(ctx, http.MethodPost, "hello", mine, &theirs); err != nil {
		return err
	}
	if err := theirs.Check(mine, n.Peer.Name); err != nil {
		return err
	}
	if err := n.unjoined.Call(ctx, http.MethodGet, "accounts", nil, &all); err != nil {
		return err
	}
	return n.users.Import(ctx, all.Generation, all.Body)
}

// quiet is the peer for those whose rounds fail with the link: the link says so once
// itself.
type quiet struct{ *link.Peer }

// Call implements push.Caller.
func (q quiet) Call(ctx context.Context, method, path string, in, out any) error {
	err := q.Peer.Call(ctx, method, path, in, out)
	if errors.Is(err, link.ErrPeerAway) || errors.Is(err, pairing.ErrParted) {
		return loop.Told(err)
	}
	return err
}
