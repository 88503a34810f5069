package link

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	gosync "sync"
	"sync/atomic"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
)

const (
	helloEvery = 20 * time.Second // how often local says that it is alive
	helloLimit = 15 * time.Second // how long it waits for the answer
)

// Client keeps this node and its peer alike, from the side that can call. Reading
// and offering are one thing seen from two ends: whoever reads holds a cursor into
// the other's log, and whoever writes checks it.
//
// Greet, FetchPage, OfferPage, Exchange and Compare are single steps without timers. Those of
// one kind are not to be made at once, and none beside the loops.
type Client struct {
	end
	peer    *Peer
	sets    []Set
	crash   func(point string)
	greeted atomic.Bool
	looking atomic.Bool // whether the loops run and the first page is not here yet
	offers  offers
	compare compare
	live    live

	fetchLoop, offerLoop, lettersLoop, beatLoop, compareLoop *loop.Loop

	patience    patience // with answers to polls; the fetch loop's own
	lettersSeen string   // the peer's oldest letter that was told of; the fetch loop's own
	asideSeen   string   // what the peer told of its quarantine with a page; likewise

	lettersDue   atomic.Bool // whether there may be letters to be had or sent
	lettersAsked time.Time   // when they were asked for last; the letters loop's own
}

// ClientOptions are what a Client needs besides the log and the peer.
type ClientOptions struct {
	Sets    []Set
	Letters *letters.Box       // nil: none cross
	Hello   func() Hello       // what this node is, now: its name, origin, version, scheduler and clock
	Crash   func(point string) // called at sync.fetched, sync.stored, sync.offering and sync.offered
	Logger  *slog.Logger
}

// NewClient returns a client that is not yet running.
func NewClient(l *sync.Log, p *Peer, o ClientOptions) *Client {
	c := &Client{end: end{log: l, name: p.name, letters: o.Letters, hello: o.Hello, logger: o.Logger}, peer: p, sets: o.Sets, crash: o.Crash, live: live{running: map[*round]bool{}}}
	c.compare.due(c.hello().Now + firstCompare.Milliseconds())
	c.fetchLoop = loop.New("fetch", loop.Shortest, o.Logger, c.noting(lineFetch, c.Fetch))
	c.offerLoop = loop.New("offer", loop.Longest, o.Logger, c.noting(lineOffer, c.Offer))
	c.lettersLoop = loop.New("letters", loop.Longest, o.Logger, c.noting(lineLetters, c.exchangeLetters))
	c.beatLoop = loop.New("hello", helloEvery, o.Logger, c.beat)
	c.compareLoop = loop.New("compare", time.Minute, o.Logger, c.compareWhenDue)
	l.OnChange(c.offerLoop.Wake)
	return c
}

// Loops are what runs while the node does. They begin by a look at the peer's log:
// until its first page is here nothing is offered.
func (c *Client) Loops() []*loop.Loop {
	c.looking.Store(true)
	return c.loops()
}

// Wake has each of the loops look at once, whether it fails or not: something has
// changed that may let it.
func (c *Client) Wake() {
	c.lettersDue.Store(true)
	for _, l := range c.loops() {
		l.Again()
	}
}

func (c *Client) loops() []*loop.Loop {
	all := []*loop.Loop{c.beatLoop, c.fetchLoop, c.offerLoop, c.compareLoop}
	if c.letters != nil {
		all = append(all, c.lettersLoop)
	}
	return all
}

// LettersWait has letters go to the peer, and come from there, now; it is for Box.OnChange.
func (c *Client) LettersWait() {
	c.lettersDue.Store(true)
	c.lettersLoop.Wake()
}

// Status returns how the last calls went.
func (c *Client) Status() Status { return c.status.snapshot(c.name, c.log.QuarantineCounts()) }

// Greet tells the peer who calls and hears who answers. Nothing else is said to a
// node that turns out to be a copy of this one or to speak another protocol.
func (c *Client) Greet(ctx context.Context) error {
	theirs, err := c.exchangeHellos(ctx)
	c.greeted.Store(err == nil)
	if err == nil && theirs.Compare {
		c.CompareSoon()
	}
	return c.status.note(lineHello, err)
}

func (c *Client) exchangeHellos(ctx context.Context) (theirs Hello, err error) {
	mine, err := c.introduce(ctx)
	if err != nil {
		return theirs, err
	}
	mine.Compared = c.status.lastCompared()
	if theirs, err = c.callHello(ctx, mine); err != nil {
		return theirs, err
	}
	after := c.hello().Now
	if err := c.check(mine, theirs); err != nil {
		return theirs, err
	}
	c.hasTold(mine)
	if err := c.meet(ctx, mine, theirs); err != nil {
		return theirs, err
	}
	read, known := c.status.read()
	was := c.status.peerIncarnation()
	if was != "" && was != theirs.Incarnation || known && theirs.Read != nil && *theirs.Read != read {
		c.doubtOffers() // its file was put back, or only looks so because an offer is under way
		c.LettersWait()
	}
	c.offers.grow(theirs.PageLimit)
	c.status.met(theirs, after, apart(theirs.Now, (mine.Now+after)/2))
	return theirs, nil
}

// check returns why nothing is to be said to who answered a greeting.
func (c *Client) check(mine, theirs Hello) error {
	if err := theirs.Check(mine, c.name); err != nil {
		return err
	}
	if theirs.Twin != nil {
		return twinOf(mine.Node, mine.Process, *theirs.Twin)
	}
	if other, found := c.twins.met(theirs.Process, time.Now()); found {
		return twinOf(c.name, theirs.Process, other)
	}
	return nil
}

// doubtOffers has this node ask how far the peer has read, now.
func (c *Client) doubtOffers() {
	c.offers.doubt()
	c.offerLoop.Wake()
}

func (c *Client) callHello(ctx context.Context, mine Hello) (Hello, error) {
	ctx, stop := context.WithTimeout(ctx, helloLimit)
	defer stop()
	body, err := json.Marshal(mine)
	if err != nil {
		return Hello{}, err
	}
	b, err := c.peer.exchange(ctx, c.peer.beat, http.MethodPost, "hello", body)
	if err != nil {
		return Hello{}, err
	}
	theirs, err := readHello(b)
	if err != nil {
		return Hello{}, ErrPeerStranger.Because(err)
	}
	return theirs, nil
}

// greet greets unless that has been done since the last failure.
func (c *Client) greet(ctx context.Context) error {
	if c.greeted.Load() {
		return nil
	}
	return c.Greet(ctx)
}

// beat is the heartbeat. One that is answered after one that was not means that the
// line was down: a call from before may wait for an answer that was lost with it.
func (c *Client) beat(ctx context.Context) error {
	was, began := c.greeted.Load(), time.Now()
	err := c.Greet(ctx)
	if ctx.Err() != nil {
		return nil
	}
	c.status.tell(ctx, c.logger, c.name)
	if err == nil && c.live.missed && !was {
		c.live.breakOff(began.Add(-loop.Shortest))
		c.peer.http.CloseIdleConnections() // they may lead nowhere any more, and the next call would find out by waiting
	}
	c.live.missed = err != nil
	return loop.Told(err)
}

// noting keeps how a round went for Status, has one that follows a failure greet
// first, and makes one again that was broken off since its line was dead.
func (c *Client) noting(l line, work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := errLineDead
		for errors.Is(err, errLineDead) && ctx.Err() == nil {
			err = c.live.while(ctx, work)
		}
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			c.greeted.Store(false)
		}
		err = c.status.note(l, err)
		c.tellAside()
		c.status.tell(ctx, c.logger, c.name)
		return loop.Told(err)
	}
}

// tellAside greets soon where the peer does not know what is in quarantine here by now.
func (c *Client) tellAside() {
	if _, news := c.untold(); news {
		c.beatLoop.Wake()
	}
}

// live breaks calls off that wait on a line which is found to have been dead.
type live struct {
	missed bool // whether the last heartbeat was not answered; the beat loop's own

	mu      gosync.Mutex
	running map[*round]bool
}

// round is work of a loop that is being done.
type round struct {
	began time.Time
	stop  context.CancelCauseFunc
}

var errLineDead = errors.New("the line was dead")

// breakOff ends the rounds that began before a time. What was sent a moment before the
// line healed is sent again by TCP itself, and may already have been taken.
func (v *live) breakOff(before time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for r := range v.running {
		if r.began.Before(before) {
			r.stop(errLineDead)
		}
	}
}

func (v *live) while(ctx context.Context, work func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &round{began: time.Now(), stop: stop}
	v.begins(r)
	defer v.ends(r)
	err := work(ctx)
	if err != nil && context.Cause(ctx) == errLineDead {
		return errLineDead
	}
	return err
}

func (v *live) begins(r *round) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.running[r] = true
}

func (v *live) ends(r *round) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.running, r)
}
