package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	gosync "sync"

	"tandem/internal/loop"
	"tandem/internal/sync"
)

// Offer is what POST changes carries besides entries of the caller's log: where the
// stretch begins and ends, and whether another follows at once.
type Offer struct {
	From string `json:"from"`
	To   string `json:"to"`
	More bool   `json:"more,omitempty"`
}

// Ack answers an Offer: how far the caller's log has been read.
type Ack struct {
	Cursor string `json:"cursor"`
}

// offers is what a client knows of the way up.
type offers struct {
	ack   string // how far the peer has read
	asked bool   // whether ack came from the peer since the last failure
	limit int    // how many entries a call may carry now; 0: as many as the peer takes

	mu    gosync.Mutex
	max   int  // what the peer takes; 0: it has not said
	stale bool // the peer may have lost what it said it had read
}

// doubt has the next round ask the peer how far it has read: its file may have been
// put back, and an end of this log that has nothing new would never find out.
func (o *offers) doubt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stale = true
}

// doubted reports whether there was a doubt, and forgets it.
func (o *offers) doubted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.stale
	o.stale = false
	return was
}

// grow keeps how many entries the peer takes.
func (o *offers) grow(limit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.max = limit
}

func (o *offers) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := sync.PageRows
	for _, n := range []int{o.max, o.limit} {
		if n > 0 {
			size = min(size, n)
		}
	}
	return size
}

// Offer hands the peer whatever of this node's log it has not read, until there is
// nothing left. While a page is on its way the next one is made.
func (c *Client) Offer(ctx context.Context) error {
	if c.withholds() {
		return nil
	}
	if err := c.greet(ctx); err != nil {
		return err
	}
	page, err := c.nextOffer(ctx)
	for err == nil && len(page.Entries) > 0 && !c.withholds() {
		page, err = c.sendAndMake(ctx, page)
	}
	return c.offered(err)
}

// OfferPage hands the peer one page of this node's log, and reports whether there
// are more. While this node is catching up with the peer it offers nothing: most of
// what is new here came from there.
func (c *Client) OfferPage(ctx context.Context) (more bool, err error) {
	if c.withholds() {
		return false, nil
	}
	page, err := c.nextOffer(ctx)
	if err == nil && len(page.Entries) > 0 {
		var taken bool
		taken, err = c.send(ctx, page)
		more = !taken || page.More
	}
	return more && err == nil, c.offered(err)
}

// withholds reports whether nothing is offered now: a pass is being made, or it is not
// known yet whether one will be.
func (c *Client) withholds() bool { return c.looking.Load() || c.status.passing() }

// offered has the next round ask the peer where it is, when this one failed.
func (c *Client) offered(err error) error {
	if err != nil {
		c.offers.asked = false
	}
	return err
}

// nextOffer returns the page after the one that the peer has taken. How far it has
// read is its own knowledge, asked for after each failure and never kept on disk: a
// position kept there could be one from before a restore.
func (c *Client) nextOffer(ctx context.Context) (page sync.Page, err error) {
	if c.offers.doubted() || !c.offers.asked {
		var ack Ack
		if err := c.post(ctx, Offer{}, nil, &ack); err != nil {
			return page, err
		}
		c.offers.ack, c.offers.asked, c.offers.limit = ack.Cursor, true, 0
	}
	if page, err = c.log.Page(ctx, c.offers.ack, c.offers.size()); err != nil {
		return page, err
	}
	if page.Reset != "" {
		c.logger.InfoContext(ctx, "the peer reads this node's log from its start", "peer", c.name, "reason", page.Reset)
		c.status.wasReset(page.Reset, c.hello().Now)
		c.compare.due(c.hello().Now)
	}
	if len(page.Entries) == 0 {
		c.offers.limit = 0
		c.status.took(c.offers.ack, c.hello().Now, true)
	}
	return page, nil
}

// sendAndMake sends a page and meanwhile makes the next one.
func (c *Client) sendAndMake(ctx context.Context, page sync.Page) (next sync.Page, err error) {
	if !page.More {
		if _, err := c.send(ctx, page); err != nil {
			return next, err
		}
		return c.nextOffer(ctx)
	}
	taken, limit := false, c.offers.size()
	work := []func(context.Context) error{
		func(ctx context.Context) (err error) { taken, err = c.send(ctx, page); return err },
		func(ctx context.Context) (err error) { next, err = c.log.Page(ctx, page.Cursor, limit); return err },
	}
	err = loop.Each(ctx, len(work), work, func(ctx context.Context, f func(context.Context) error) error { return f(ctx) })
	if err == nil && (!taken || len(next.Entries) == 0) {
		return c.nextOffer(ctx)
	}
	return next, err
}

// send offers a page, and reports whether the peer took it. It did not where it was
// too large for something on the way: the next one is half as long, and an entry
// that does not cross alone is set aside and passed over.
func (c *Client) send(ctx context.Context, page sync.Page) (taken bool, err error) {
	c.crash("sync.offering")
	err = c.move(ctx, page, page.Entries)
	switch {
	case errors.Is(err, ErrPeerTooLarge) && len(page.Entries) > 1:
		c.offers.limit = len(page.Entries) / 2
		return false, nil
	case errors.Is(err, ErrPeerTooLarge):
		return true, c.passOver(ctx, page, err)
	case err != nil:
		return false, err
	}
	c.crash("sync.offered")
	return true, nil
}

// move has the peer take entries of a page, and with them the cursor of its end.
func (c *Client) move(ctx context.Context, page sync.Page, entries []json.RawMessage) error {
	var ack Ack
	if err := c.post(ctx, Offer{From: c.offers.ack, To: page.Cursor, More: page.More}, entries, &ack); err != nil {
		return err
	}
	if ack.Cursor != page.Cursor {
		return ErrPeerFailed.Because(errors.New("the peer did not take the cursor it was offered: does another node share its name?"))
	}
	c.offers.ack = ack.Cursor
	c.status.took(ack.Cursor, c.hello().Now, !page.More)
	return nil
}

// passOver sets the one entry of a page aside and has the peer go on after it. A
// crash between the two sets it aside again.
func (c *Client) passOver(ctx context.Context, page sync.Page, why error) error {
	c.logger.WarnContext(ctx, "an entry is too large to cross", "peer", c.name, "bytes", len(page.Entries[0]), "error", why)
	if err := c.log.QuarantineOwn(ctx, page.Entries[0], "something on the way to the other node takes no call of its size"); err != nil {
		return err
	}
	return c.move(ctx, page, nil)
}

// post sends entries of this node's log and reads the answer into ack.
func (c *Client) post(ctx context.Context, o Offer, entries []json.RawMessage, ack *Ack) error {
	body, err := joinRows(entries, o)
	if err != nil {
		return err
	}
	b, err := c.peer.exchange(ctx, c.peer.http, http.MethodPost, "changes", body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, ack); err != nil {
		return ErrPeerStranger.Because(fmt.Errorf("an answer to an offer: %w", errShape))
	}
	return nil
}
