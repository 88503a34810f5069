package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"tandem/internal/fault"
	"tandem/internal/push"
	"tandem/internal/sync"
)

var errNotPeer = fault.New(fault.Unauthenticated, "not_the_peer", "Only this node's peer may call here, with the secret that both share.")

// maxPage bounds what the peer may send at once, in bytes.
const maxPage = 16 << 20

// Peer is the side of the peer's calls that answers.
type Peer struct {
	Name  string                   // what the caller must call itself
	Match func(secret string) bool // in constant time
	Log   *sync.Log
	Sets  []sync.Set // what this node holds whole
	Hello func() sync.Hello
	Heard func(sync.Hello) // each greeting of the peer
	Stop  context.Context  // ends the polls that are held open
}

type peerRoutes struct {
	*Peer
	*api
}

// routes are the calls of the other node. They are no part of the API that phones
// rely on: both nodes are one program.
func (p *Peer) routes(e *echo.Echo, a *api) {
	r := peerRoutes{p, a}
	e.Pre(r.guard)
	v1 := e.Group("/peer/v1")
	v1.POST("/hello", r.hello)
	v1.GET("/changes", r.poll)
	v1.POST("/changes", r.take)
	for _, s := range p.Sets {
		v1.GET("/"+s.Path, r.whole(s))
	}
	v1.POST("/push-tokens", r.forwarded)
	v1.POST("/push-tokens/unregistered", r.unregistered)
}

// guard comes before routing: to a stranger each path under /peer/ is alike.
func (r peerRoutes) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		req := c.Request()
		if !strings.HasPrefix(req.URL.Path, "/peer/") {
			return next(c)
		}
		known := r.Match(bearer(req.Header.Get("Authorization")))
		if !known || req.Header.Get(sync.NodeHeader) != r.Name {
			return r.problem(req.Context(), "peer", errNotPeer)
		}
		err := next(c)
		if fault.Of(err, fault.Malformed) || fault.Of(err, fault.TooLarge) { // the peer hears only that it was refused
			r.api.Log.WarnContext(req.Context(), "the peer sent what cannot be taken", "path", req.URL.Path, "error", err)
		}
		return err
	}
}

func (r peerRoutes) hello(c echo.Context) error {
	var theirs sync.Hello
	if err := take(c, &theirs); err != nil {
		return err
	}
	mine := r.Peer.Hello()
	if err := theirs.Check(mine, r.Name); err != nil {
		r.api.Log.WarnContext(c.Request().Context(), "greeted by a node that cannot be the peer", "error", err)
	} else {
		r.Heard(theirs)
	}
	return c.JSON(http.StatusOK, mine) // the caller sees for itself, and says so at its end too
}

func (r peerRoutes) poll(c echo.Context) error {
	wait, err := time.ParseDuration(c.QueryParam("wait"))
	if err != nil || wait < 0 {
		wait = 0
	}
	held := map[string]string{}
	for _, s := range r.Sets {
		if v, ok := c.QueryParams()[s.Name]; ok {
			held[s.Name] = v[0]
		}
	}
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	defer context.AfterFunc(r.Stop, cancel)()
	p, err := r.Peer.Log.Poll(ctx, c.QueryParam("cursor"), r.Sets, held, wait)
	if err != nil {
		return err
	}
	if p.Entries == nil {
		p.Entries = []json.RawMessage{}
	} else {
		r.Crash("sync.served")
	}
	return c.JSON(http.StatusOK, p)
}

func (r peerRoutes) take(c echo.Context) error {
	var offer sync.Offer
	if err := take(c, &offer); err != nil {
		return err
	}
	cursor, err := r.Peer.Log.Apply(c.Request().Context(), r.Name, offer.From, offer.To, offer.Entries)
	if err != nil {
		return err
	}
	if len(offer.Entries) > 0 { // an empty one only asks for the cursor
		r.Crash("sync.applied")
	}
	return c.JSON(http.StatusOK, sync.Ack{Cursor: cursor})
}

func (r peerRoutes) whole(s sync.Set) echo.HandlerFunc {
	return func(c echo.Context) error {
		generation, body, err := s.Export(c.Request().Context())
		if err != nil {
			return err
		}
		c.Response().Header().Set("Cache-Control", "no-store")
		return c.JSON(http.StatusOK, sync.Whole{Generation: generation, Body: body})
	}
}

func (r peerRoutes) forwarded(c echo.Context) error {
	var f push.Forwarded
	if err := take(c, &f); err != nil {
		return err
	}
	if err := r.Tokens.Receive(c.Request().Context(), f); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (r peerRoutes) unregistered(c echo.Context) error {
	var lapsed []push.Lapsed
	if err := take(c, &lapsed); err != nil {
		return err
	}
	if err := r.Tokens.Unregistered(c.Request().Context(), lapsed); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// take reads a body of the peer's.
func take(c echo.Context, v any) error {
	b, err := io.ReadAll(io.LimitReader(c.Request().Body, maxPage+1))
	switch {
	case err != nil:
		return sync.ErrBadPage.Because(err)
	case len(b) > maxPage:
		return fault.New(fault.TooLarge, "body_too_large", "The body is too large: at most 16 MiB.")
	}
	if err = checkJSON(b, pageDepth); err == nil {
		err = unmarshal(b, v)
	}
	if err != nil {
		return sync.ErrBadPage.Because(err)
	}
	return nil
}
