package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// drain is how long requests under way may take to end.
const drain = 10 * time.Second

// run serves on l and runs the loops until ctx ends. Then it stops in the order
// in which nothing is cut off: no new request, the polls let go, what is under way
// finished, the loops awaited. The files are the caller's to close afterwards.
func (n *node) run(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           n.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(n.logger.Handler(), slog.LevelWarn),
	}
	srv.RegisterOnShutdown(n.stopPolls)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.runLoops(ctx) })
	g.Go(func() error {
		err := n.serveOn(srv, l)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
	g.Go(func() error {
		<-ctx.Done()
		grace, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer stop()
		if err := srv.Shutdown(grace); err != nil { // somebody is still sending: that is theirs to repeat
			n.logger.Warn("requests were cut off", "after", drain)
			return srv.Close()
		}
		return nil
	})
	return g.Wait()
}

func (n *node) serveOn(srv *http.Server, l net.Listener) error {
	if t := n.HTTP.TLS; t.On() {
		return srv.ServeTLS(l, t.Cert, t.Key)
	}
	return srv.Serve(knownOnly{l, slices.Concat(n.HTTP.TrustedProxies, n.Peer.AllowPlainOn)})
}

// knownOnly accepts plain connections from this machine, from the proxies that end
// TLS in front of the node, and from networks that encrypt by themselves. Whoever
// else finds the port would send a password in the open, and is hung up on.
type knownOnly struct {
	net.Listener
	from []netip.Prefix
}

func (k knownOnly) Accept() (net.Conn, error) {
	for {
		c, err := k.Listener.Accept()
		if err != nil || k.knows(c.RemoteAddr()) {
			return c, err
		}
		_ = c.Close()
	}
}

func (k knownOnly) knows(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return false
	}
	ip := at.Addr().Unmap().WithZone("")
	return ip.IsLoopback() || slices.ContainsFunc(k.from, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// runLoops runs all that a node does by itself until ctx ends.
func (n *node) runLoops(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range n.loops {
		g.Go(func() error { return l.Run(ctx) })
	}
	err := g.Wait()
	if n.contact != nil {
		closing, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer stop()
		err = errors.Join(err, n.contact.Close(closing))
	}
	return err
}
