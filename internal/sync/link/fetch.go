package link

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sync"
)

// arrival is a page that came.
type arrival struct {
	Page
	from  string            // the cursor it was asked with
	named map[string]string // the sets that it named, the letters among them
	tried error             // why the next one is not to be asked for at once
	batch sync.Batch
}

// underway are the pages that are neither asked for nor stored: at most one at each
// station. What is not durable here is asked for again after a crash.
type underway struct {
	read *arrival // to be stored
	came *arrival // to be read
	next string   // the cursor to ask with, where nothing is under way
	wait time.Duration
}

// Fetch applies page after page of the peer's log, and waits at its end for more.
// While a page is stored the next one is read and the one after that is under way,
// never more: three do not take longer than the slowest of the three works. It
// returns when a call fails, when the peer tries its patience, or when ctx ends.
func (c *Client) Fetch(ctx context.Context) error {
	defer c.caughtUp()
	if err := c.greet(ctx); err != nil {
		return err
	}
	cursor, err := c.log.Cursor(ctx, c.name)
	u := underway{next: cursor} // without a wait: the first page tells at once whether all is well again
	if c.patience.lost {        // unless that is just what it would not tell
		u.wait = MaxWait
	}
	for err == nil {
		if u, err = c.turn(ctx, u); err == nil {
			err = c.greet(ctx)
		}
	}
	return err
}

// turn takes each page under way to its next station.
func (c *Client) turn(ctx context.Context, u underway) (next underway, err error) {
	if u.read == nil && u.came == nil {
		next.came, err = c.ask(ctx, u.next, u.wait)
		return next, err
	}
	var work []func(context.Context) error
	next.next, next.wait = u.next, u.wait
	if u.read != nil {
		work = append(work, func(ctx context.Context) error { return c.store(ctx, u.read) })
	}
	if came := u.came; came != nil {
		next.read, next.next, next.wait = came, came.Cursor, MaxWait
		work = append(work, func(context.Context) error { came.batch = c.log.Decode(came.Entries); return nil })
		if came.More {
			next.wait = 0
		}
		if came.More && len(came.Sets) == 0 { // a set is not asked for before it has been stored
			work = append(work, func(ctx context.Context) (err error) { next.came, err = c.ask(ctx, came.Cursor, 0); return err })
		}
	}
	err = loop.Each(ctx, len(work), work, func(ctx context.Context, f func(context.Context) error) error { return f(ctx) })
	return next, err
}

// FetchPage applies one page of the peer's log, waiting so long for one, and reports
// whether the log goes on.
func (c *Client) FetchPage(ctx context.Context, wait time.Duration) (more bool, err error) {
	cursor, err := c.log.Cursor(ctx, c.name)
	if err != nil {
		return false, err
	}
	got, err := c.get(ctx, cursor, wait)
	if err == nil {
		got.batch = c.log.Decode(got.Entries)
		err = c.store(ctx, got)
	}
	if err != nil {
		c.caughtUp()
		return false, err
	}
	return got.More, nil
}

// ask is get for the loop, which asks again as soon as it has an answer.
func (c *Client) ask(ctx context.Context, cursor string, wait time.Duration) (*arrival, error) {
	began := time.Now()
	got, err := c.get(ctx, cursor, wait)
	if err == nil {
		got.tried = c.patience.judge(got, wait, time.Since(began))
	}
	return got, err
}

// get returns the page after cursor, waiting so long for one.
func (c *Client) get(ctx context.Context, cursor string, wait time.Duration) (*arrival, error) {
	query := url.Values{"cursor": {cursor}, "limit": {strconv.Itoa(sync.PageRows)}, "wait": {wait.String()}}
	for _, s := range c.sets {
		has, err := s.Generation(ctx)
		if err != nil {
			return nil, err
		}
		query.Set(s.Name, has)
	}
	if c.letters != nil {
		query.Set(lettersSet, c.lettersSeen)
	}
	query.Set(asideSet, c.asideSeen)
	b, err := c.peer.exchange(ctx, c.peer.http, http.MethodGet, "changes?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	got := &arrival{from: cursor}
	if got.Page, err = readPage(b); err != nil {
		return nil, ErrPeerStranger.Because(err)
	}
	if len(got.Entries) > sync.PageRows {
		return nil, ErrPeerStranger.Because(errTooManyEntries)
	}
	if got.Cursor == "" && got.Reset == "" && cursor != "" {
		return nil, ErrPeerStranger.Because(errors.New("JSON that is no page of a log"))
	}
	if got.Reset != "" {
		c.logger.InfoContext(ctx, "reading the peer's log from its start", "peer", c.name, "reason", got.Reset)
		c.status.wasReset(got.Reset, c.hello().Now)
		c.compare.due(c.hello().Now)
		c.doubtOffers()
	}
	got.named = maps.Clone(got.Sets)
	if oldest, ok := got.Sets[lettersSet]; ok && c.letters != nil {
		c.lettersSeen = oldest
		c.LettersWait()
		delete(got.Sets, lettersSet)
	}
	if aside, ok := got.Sets[asideSet]; ok {
		c.asideSeen = cut(aside, longReason)
		c.beatLoop.Wake() // the greeting tells all of it
		delete(got.Sets, asideSet)
	}
	if got.More {
		c.status.begins(got.End)
	}
	return got, nil
}

// store applies a page and what it names of the sets.
func (c *Client) store(ctx context.Context, got *arrival) error {
	// Before the rows, which may ring at once: at the phones and for the people of now.
	// A set that cannot be had keeps no row waiting.
	copied := c.copySets(ctx, got.Sets)
	if len(got.Entries) > 0 {
		c.crash("sync.fetched")
	}
	stored, err := c.log.Store(ctx, c.name, got.from, got.Cursor, got.batch)
	if err == nil && stored != got.Cursor {
		err = errors.New("somebody else reads the peer's log under this node's name")
	}
	if err != nil {
		return err
	}
	if len(got.Entries) > 0 {
		c.crash("sync.stored")
		c.tellAside()
	}
	was := c.withholds()
	c.status.brought(c.hello().Now, got.At, got.More)
	c.looking.Store(false)
	if was && !c.withholds() {
		c.offerLoop.Wake()
	}
	_ = c.status.note(lineFetch, got.tried)
	return cmp.Or(copied, got.tried)
}

// caughtUp ends what held this node's own entries back.
func (c *Client) caughtUp() {
	c.looking.Store(false)
	c.status.breaks()
	c.offerLoop.Wake()
}
