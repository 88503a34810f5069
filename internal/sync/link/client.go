package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sync"
)

// helloEvery is how often local says that it is alive.
const helloEvery = 20 * time.Second

// Offer is what POST changes carries: entries of the caller's log, and where the
// stretch begins and ends.
type Offer struct {
	From    string            `json:"from"`
	To      string            `json:"to"`
	Entries []json.RawMessage `json:"rows"`
}

// Ack answers an Offer: how far the caller's log has been read.
type Ack struct {
	Cursor string `json:"cursor"`
}

// Client keeps this node and its peer alike, from the side that can call. Reading
// and offering are one thing seen from two ends: whoever reads holds a cursor into
// the other's log, and whoever writes checks it.
type Client struct {
	log     *sync.Log
	peer    *Peer
	sets    []Set
	hello   func() Hello
	crash   func(point string)
	logger  *slog.Logger
	greeted atomic.Bool
	status  status

	ack   Ack  // how far the peer has read; the offer loop's own
	asked bool // whether ack came from the peer since the last failure

	fetch, offer, beat *loop.Loop
}

// ClientOptions are what a Client needs besides the log and the peer.
type ClientOptions struct {
	Sets  []Set
	Hello func() Hello       // what this node is, now
	Crash func(point string) // called at sync.fetched, sync.stored, sync.offering and sync.offered
	Log   *slog.Logger
}

// NewClient returns a client that is not yet running.
func NewClient(l *sync.Log, p *Peer, o ClientOptions) *Client {
	c := &Client{log: l, peer: p, sets: o.Sets, hello: o.Hello, crash: o.Crash, logger: o.Log}
	c.fetch = loop.New("fetch", loop.Shortest, o.Log, c.noting(lineFetch, c.Fetch))
	c.offer = loop.New("offer", loop.Longest, o.Log, c.noting(lineOffer, c.Offer))
	c.beat = loop.New("hello", helloEvery, o.Log, c.Greet)
	l.OnChange(c.offer.Wake)
	return c
}

// Loops are what runs while the node does.
func (c *Client) Loops() []*loop.Loop { return []*loop.Loop{c.beat, c.fetch, c.offer} }

// Greet tells the peer who calls and hears who answers. Nothing else is said to a
// node that turns out to be a copy of this one or to speak another protocol.
func (c *Client) Greet(ctx context.Context) error {
	mine := c.hello()
	var theirs Hello
	if err := c.peer.Call(ctx, http.MethodPost, "hello", mine, &theirs); err != nil {
		c.greeted.Store(false)
		return c.status.note(lineHello, err)
	}
	after := c.hello().Now
	if err := theirs.Check(mine, c.peer.name); err != nil {
		c.greeted.Store(false)
		return c.status.note(lineHello, err)
	}
	c.status.heard(theirs, time.Duration(theirs.Now-(mine.Now+after)/2)*time.Millisecond)
	c.greeted.Store(true)
	return nil
}

// greet greets unless that has been done since the last failure.
func (c *Client) greet(ctx context.Context) error {
	if c.greeted.Load() {
		return nil
	}
	return c.Greet(ctx)
}

// noting keeps how a round went for Status, and has one that follows a failure
// greet first.
func (c *Client) noting(l line, work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := work(ctx)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			c.greeted.Store(false)
		}
		return c.status.note(l, err)
	}
}

// Fetch applies page after page of the peer's log, and waits at its end for more.
// It returns when a call fails or ctx ends.
func (c *Client) Fetch(ctx context.Context) error {
	var wait time.Duration // the first page tells at once whether all is well again
	for {
		if err := c.greet(ctx); err != nil {
			return err
		}
		if err := c.FetchPage(ctx, wait); err != nil {
			return err
		}
		wait = MaxWait
	}
}

// FetchPage applies one page of the peer's log, waiting so long for one.
func (c *Client) FetchPage(ctx context.Context, wait time.Duration) error {
	cursor, err := c.log.Cursor(ctx, c.peer.name)
	if err != nil {
		return err
	}
	query := url.Values{"cursor": {cursor}, "wait": {wait.String()}}
	for _, s := range c.sets {
		held, err := s.Held(ctx)
		if err != nil {
			return err
		}
		query.Set(s.Name, held)
	}
	var page Page
	if err := c.peer.Call(ctx, http.MethodGet, "changes?"+query.Encode(), nil, &page); err != nil {
		return err
	}
	if page.Cursor == "" && page.Reset == "" && cursor != "" {
		return ErrPeerStranger.Because(errors.New("JSON that is no page of a log"))
	}
	if page.Reset != "" {
		c.logger.InfoContext(ctx, "reading the peer's log from its start", "peer", c.peer.name, "reason", page.Reset)
	}
	// Before the rows, which may ring at once: at the phones and for the people of now.
	// A set that cannot be had keeps no row waiting.
	copied := c.copySets(ctx, page.Sets)
	if len(page.Entries) > 0 {
		c.crash("sync.fetched")
	}
	if _, err := c.log.Apply(ctx, c.peer.name, cursor, page.Cursor, page.Entries); err != nil {
		return err
	}
	if len(page.Entries) > 0 {
		c.crash("sync.stored")
	}
	c.status.fetched.Store(c.hello().Now)
	_ = c.status.note(lineFetch, nil)
	return copied
}

// copySets copies what is newer at the peer. One that cannot be taken does not keep
// the others away.
func (c *Client) copySets(ctx context.Context, newer map[string]string) error {
	var failed []error
	for _, s := range c.sets {
		if _, ok := newer[s.Name]; !ok {
			continue
		}
		var whole Whole
		err := c.peer.Call(ctx, http.MethodGet, s.Path, nil, &whole)
		if err == nil {
			err = s.Import(ctx, whole.Generation, whole.Body)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	return errors.Join(failed...)
}

// Offer hands the peer whatever of this node's log it has not read, until there
// is nothing left. How far it has read is its own knowledge, asked for after each
// failure and never kept on disk: a position kept there could be one from before
// a restore.
func (c *Client) Offer(ctx context.Context) (err error) {
	defer func() { c.asked = err == nil }()
	if err := c.greet(ctx); err != nil {
		return err
	}
	if !c.asked {
		if err := c.peer.Call(ctx, http.MethodPost, "changes", Offer{Entries: []json.RawMessage{}}, &c.ack); err != nil {
			return err
		}
	}
	for {
		page, err := c.log.Page(ctx, c.ack.Cursor, sync.PageRows)
		if err != nil {
			return err
		}
		if len(page.Entries) == 0 {
			c.status.offered.Store(c.hello().Now)
			return nil
		}
		c.crash("sync.offering")
		offer := Offer{From: c.ack.Cursor, To: page.Cursor, Entries: page.Entries}
		if err := c.peer.Call(ctx, http.MethodPost, "changes", offer, &c.ack); err != nil {
			return err
		}
		c.crash("sync.offered")
		if c.ack.Cursor != page.Cursor {
			return ErrPeerFailed.Because(fmt.Errorf("the peer did not take the cursor it was offered: does another node share its name?"))
		}
	}
}
