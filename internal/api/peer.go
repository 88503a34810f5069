package api

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"tandem/internal/fault"
	"tandem/internal/sync/link"
)

var errNotPeer = fault.New(fault.Unauthenticated, "not_the_peer", "Only this node's peer may call here, with the secret that both share.")

// Peer is the other node as it calls this one. Its calls are no part of the API that
// phones rely on: both nodes are one program.
type Peer struct {
	Name   string                   // what the caller must call itself
	Match  func(secret string) bool // in constant time
	Server http.Handler             // of every path under /peer/

	// TurnedAway is told who was not let in, as it calls itself, and whether it had the
	// secret.
	TurnedAway func(name string, secret bool)

	// Pairing reports whether a code makes its bearer the peer-to-be, who may call
	// PairPath and nothing else. It counts the tries.
	Pairing func(code string) bool
}

// PairPath is the one peer call that is made without the secret.
const PairPath = "/peer/v1/pair"

// guard comes before routing: to a stranger each path under /peer/ is alike.
func (p *Peer) guard(a *api) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			req := c.Request()
			if !strings.HasPrefix(req.URL.Path, "/peer/") {
				return next(c)
			}
			presented := bearer(req.Header.Get("Authorization"))
			name, secret := req.Header.Get(link.NodeHeader), p.Match(presented)
			known := req.URL.Path != PairPath && secret && name == p.Name
			if req.URL.Path == PairPath { // whoever calls it says its name in the body
				known = p.Pairing(presented)
			}
			if !known && req.URL.Path != PairPath {
				p.TurnedAway(name, secret)
			}
			if !known {
				return a.problem(req.Context(), "peer", errNotPeer)
			}
			p.Server.ServeHTTP(c.Response(), req)
			return nil
		}
	}
}
