// Package contact keeps when a node and its peer last read each other's log, over
// restarts, and tells the first admin of a silence that lasts. How a call went is
// package link's; what rings goes through package push.
package contact

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	gosync "sync"
	"time"

	"tandem/internal/loop"
	"tandem/internal/push"
	"tandem/internal/sqlite"
	nodesync "tandem/internal/sync"
	"tandem/internal/sync/link"
	"tandem/internal/when"
)

const (
	silenceTold = 24 * time.Hour   // a direction in which nothing succeeds for so long is told of, and again after as long
	silenceSure = 10 * time.Minute // it lasts so long while this node is awake: one that was off or asleep has yet to try
	contactKept = 10 * time.Minute // how exactly the file knows of the last success: an idle disk is left alone

	syncNotice = "sync" // the kind of notice, beside those that ring
)

// Contact is when this node and its peer last read each other's log. It tells the
// first admin, through this node's own channels, when that is long ago. Each node that
// runs does: who hears of both knows that it is the link that is cut.
type Contact struct {
	Options

	// Of the loop alone.
	saw    [2]int64  // the last successes as the link tells them
	looked time.Time // the last round
	silent time.Time // since when each round has found a silence; zero: the last one has not

	mu    gosync.Mutex
	known touch
	filed touch // as in the file
	met   bool  // whether the peer's log was ever read, before this process
}

// Options are what a Contact needs.
type Options struct {
	DB         *sqlite.DB // todos.db
	Outbox     *push.Outbox
	Node, Peer string
	Status     func() link.Status // of whichever end of the link is here
	Admin      func(context.Context) (id string, found bool, err error)
	Zone       func(tx *sqlite.Tx, owner string) (string, error)
}

// New returns a contact that is not kept up to date before its loop runs.
func New(o Options) *Contact { return &Contact{Options: o} }

// touch is what is known of the last successes. Unix ms.
type touch struct {
	known            int64 // since when the peer is one that should be in touch
	fetched, offered int64 // 0: never
	told             int64 // when the owner was last told of the silence that lasts; 0: none does
}

// since is when the direction that has been silent for longer last worked.
func (t touch) since() int64 { return max(t.known, min(t.fetched, t.offered)) }

func (t touch) late(now int64) bool { return now-t.since() >= silenceTold.Milliseconds() }

// Loop is what runs while the node does: it looks once a minute.
func (c *Contact) Loop(log *slog.Logger) *loop.Loop {
	return loop.New("contact", time.Minute, log, c.look)
}

// last is when what last succeeded.
func (c *Contact) last() touch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// look is one round: it notes what has succeeded since the last one, and tells of a
// silence or of its end.
func (c *Contact) look(ctx context.Context) error {
	t, err := c.begin(ctx)
	if err != nil {
		return err
	}
	status, now := c.Status(), c.DB.Now()
	t = c.advance(t, status, now.UnixMilli())
	if status.Code == link.CodeParted { // nobody waits for the other one
		t.known, t.told = now.UnixMilli(), 0
		return c.keep(ctx, t)
	}
	next := t
	switch {
	case c.lasts(t, now) && (t.told == 0 || now.UnixMilli()-t.told >= silenceTold.Milliseconds()):
		next.told = now.UnixMilli()
	case t.told > 0 && !t.late(now.UnixMilli()):
		next.told = 0
	}
	if next.told == t.told {
		return c.keep(ctx, t)
	}
	owner, found, err := c.Admin(ctx)
	if err != nil {
		return err
	}
	if !found { // there is nobody to tell yet
		return c.keep(ctx, t)
	}
	return c.tell(ctx, next, owner, status.Detail)
}

// Close writes down what is known, since the process ends; the loop has ended.
func (c *Contact) Close(ctx context.Context) error {
	t := c.last()
	if t == (touch{}) {
		return nil
	}
	status := c.Status()
	if status.Code == link.CodeParted { // which tells of no success; what there was is kept
		return nil
	}
	t = c.advance(t, status, c.DB.Now().UnixMilli())
	c.mu.Lock()
	filed := c.filed
	c.mu.Unlock()
	if t == filed {
		return nil
	}
	return c.write(ctx, t, func(*sqlite.Tx) error { return nil })
}

// State is how the link stands, with what is known from before this process, and since
// when one direction works no more, where that is a day or longer: Unix ms, 0: both do.
// Two that have never been in touch are not yet a pair.
func (c *Contact) State() (s link.Status, silent int64) {
	s, t := c.Status(), c.last()
	if s.Code == link.CodeParted {
		return s, 0
	}
	if s.FetchedAt == 0 {
		s.FetchedAt = t.fetched
	}
	if s.OfferedAt == 0 {
		s.OfferedAt = t.offered
	}
	if c.never(t, s) {
		s.State, s.Code = link.Alone, link.CodeStranger
		s.Detail = fmt.Sprintf("%s and %s have never been in touch: they are no pair yet.", c.Node, c.Peer)
		return s, 0
	}
	if t.late(c.DB.Now().UnixMilli()) && t != (touch{}) {
		silent = t.since()
	}
	return s, silent
}

// never reports whether the nodes have not met in any way, and nothing says why.
func (c *Contact) never(t touch, s link.Status) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waits := s.State == link.CatchingUp || s.Code == link.CodeSilent
	return waits && t != (touch{}) && !c.met && t.fetched+t.offered+s.HeardAt == 0
}

// begin returns what is known; of a peer that is new, that it is known since now.
func (c *Contact) begin(ctx context.Context) (touch, error) {
	if t := c.last(); t != (touch{}) {
		return t, nil
	}
	t, found, err := sqlite.ReadOne(ctx, c.DB, func(r sqlite.Row) (t touch, err error) {
		return t, r.Scan(&t.known, &t.fetched, &t.offered, &t.told)
	}, `SELECT known_at, fetched_at, offered_at, coalesce(told_at, 0) FROM sync_contact WHERE peer = ?`, c.Peer)
	if err != nil {
		return t, err
	}
	_, met, err := sqlite.ReadOne(ctx, c.DB, sqlite.Value[int], `SELECT 1 FROM sync_cursors WHERE peer = ?`, c.Peer)
	if err != nil {
		return t, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.filed, c.met = t, met; !found {
		t.known = c.DB.Now().UnixMilli()
	}
	c.known = t
	return t, nil
}

// advance notes successes by the clock of now: what was noted by one that was ahead
// would hide a silence until then.
func (c *Contact) advance(t touch, s link.Status, now int64) touch {
	t = touch{min(t.known, now), min(t.fetched, now), min(t.offered, now), min(t.told, now)}
	if s.FetchedAt != c.saw[0] {
		t.fetched = min(s.FetchedAt, now)
	}
	if s.OfferedAt != c.saw[1] {
		t.offered = min(s.OfferedAt, now)
	}
	c.saw = [2]int64{s.FetchedAt, s.OfferedAt}
	return t
}

// lasts reports whether a silence has been found in each round for long enough.
func (c *Contact) lasts(t touch, now time.Time) bool {
	slept := now.Sub(c.looked) > silenceSure/2
	c.looked = now
	switch {
	case !t.late(now.UnixMilli()):
		c.silent = time.Time{}
	case slept || c.silent.IsZero():
		c.silent = now
	}
	return !c.silent.IsZero() && now.Sub(c.silent) >= silenceSure
}

// keep notes what is known, and writes it down where the file is too far from it.
func (c *Contact) keep(ctx context.Context, t touch) error {
	c.mu.Lock()
	c.known = t
	near := func(a, b int64) bool { return max(a-b, b-a) < contactKept.Milliseconds() }
	enough := near(t.known, c.filed.known) && near(t.fetched, c.filed.fetched) && near(t.offered, c.filed.offered) && t.told == c.filed.told
	c.mu.Unlock()
	if enough {
		return nil
	}
	return c.write(ctx, t, func(*sqlite.Tx) error { return nil })
}

// tell gives the notice of a silence or of its end. It commits with the note that it
// was given.
func (c *Contact) tell(ctx context.Context, t touch, owner, why string) error {
	return c.write(ctx, t, func(tx *sqlite.Tx) error {
		zone, err := c.Zone(tx, owner)
		if err != nil {
			return err
		}
		n := push.Notice{
			FireID: nodesync.KeyedUID("contact", c.Node, c.Peer, strconv.FormatInt(tx.Millis(), 10)).String(),
			Kind:   syncNotice, Owner: owner, DueAt: tx.Now, TTL: silenceTold, Zone: zone,
		}
		if t.told > 0 {
			n.Title, n.Body = c.silence(t, tx.Now, zone, why)
		} else {
			n.Title = c.Peer + " syncs again"
			n.Body = fmt.Sprintf("%s and %s are in touch. What was written meanwhile crosses now.", c.Node, c.Peer)
		}
		return c.Outbox.EnqueueTx(tx, n)
	})
}

// silence is what a person reads of one.
func (c *Contact) silence(t touch, now time.Time, zone, why string) (title, body string) {
	since := sqlite.Time(t.since())
	loc, err := when.Zone(zone)
	if err != nil {
		loc = time.UTC
	}
	what := fmt.Sprintf("Nothing has crossed between %s and %s", c.Node, c.Peer)
	switch edge := t.told - silenceTold.Milliseconds(); {
	case t.fetched > edge:
		what = fmt.Sprintf("%s has not read what %s wrote", c.Peer, c.Node)
	case t.offered > edge:
		what = fmt.Sprintf("%s has not read what %s wrote", c.Node, c.Peer)
	}
	title = fmt.Sprintf("%s not synced for %d h", c.Peer, int(now.Sub(since).Hours()))
	body = what + " since " + since.In(loc).Format("2006-01-02 15:04 MST") + "."
	if why != "" {
		body += " " + why
	}
	return title, body
}

func (c *Contact) write(ctx context.Context, t touch, do func(*sqlite.Tx) error) error {
	err := c.DB.Write(ctx, func(tx *sqlite.Tx) error {
		if _, err := tx.Exec(`
			INSERT INTO sync_contact (peer, known_at, fetched_at, offered_at, told_at)
			VALUES (?, ?, ?, ?, nullif(?, 0))
			ON CONFLICT (peer) DO UPDATE
			SET known_at = excluded.known_at, fetched_at = excluded.fetched_at, offered_at = excluded.offered_at, told_at = excluded.told_at`,
			c.Peer, t.known, t.fetched, t.offered, t.told); err != nil {
			return err
		}
		return do(tx)
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.filed = t, t
	return nil
}
