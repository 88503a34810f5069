package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"tandem/internal/lease"
	"tandem/internal/loop"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

const (
	rounds    = 16              // run side by side: a service that hangs holds up one
	batch     = 32              // notices a round takes, all sent at once
	poll      = 5 * time.Second // of the first round: how late a retry may be found
	slowPoll  = time.Minute     // of the others, which a new notice wakes
	sendLimit = 15 * time.Second
	grace     = 10 * time.Second // for sends under way when the node stops
	held      = 3 * sendLimit    // a claim, renewed before each send
)

// intents are leased by the notice: whoever holds one sends it.
var intents = lease.New("delivery_intents", "id", "next_attempt_at <= ?1", "next_attempt_at")

// Notice is something to tell a person.
type Notice struct {
	FireID string // what rang
	Kind   string // "ring", or "sync" of what a node says of itself; one fire has at most one notice of a kind
	Owner  string
	Title  string
	Body   string
	Notes  []string
	DueAt  time.Time
	TTL    time.Duration // how long it is worth telling, from when it was due or enqueued, whichever is later
	Zone   string        // IANA, in which times are told; empty: UTC
}

// Route is one way to a person: a channel, and where it reaches an owner.
type Route struct {
	Channel Channel
	Targets func(ctx context.Context, owner string) ([]Target, error)

	// PerAddress says that the service throttles each address by itself, as Telegram
	// does a chat; otherwise a pause it asks for is for the whole channel.
	PerAddress bool
}

// OutboxOptions say how people are reached.
type OutboxOptions struct {
	// Routes come in order of preference: a later one is used only when no target of
	// those before took the notice. None at all is a node that tells nobody, and says
	// so of each notice.
	Routes []Route

	// Disabled, where set, names from memory the owners who are told nothing for now.
	// A notice of theirs waits, and goes on within its life once they are let in again.
	Disabled func() []string

	// Crash, where set, is called at push.sending (marked, nothing sent), push.taken
	// (a service took it, not recorded), push.recorded, and push.fallback (a channel's
	// failure recorded, the next one not begun).
	Crash func(point string)
	Log   *slog.Logger
}

// Outbox holds notices until a service has taken them or their time is up.
type Outbox struct {
	db       *sqlite.DB
	log      *sync.Log
	tokens   *Tokens
	routes   []Route
	disabled func() []string
	crash    func(string)
	logger   *slog.Logger
	loops    []*loop.Loop
}

// NewOutbox opens the outbox of a file. The claims of the process before are opened,
// so that what it was sending is taken up at once.
func NewOutbox(ctx context.Context, db *sqlite.DB, log *sync.Log, tokens *Tokens, options OutboxOptions) (*Outbox, error) {
	o := &Outbox{db: db, log: log, tokens: tokens, routes: options.Routes, disabled: options.Disabled, crash: options.Crash, logger: options.Log}
	if o.crash == nil {
		o.crash = func(string) {}
	}
	if o.disabled == nil {
		o.disabled = func() []string { return nil }
	}
	for i := range rounds {
		every := slowPoll
		if i == 0 {
			every = poll
		}
		o.loops = append(o.loops, loop.New("push-"+strconv.Itoa(i+1), every, o.logger, o.Deliver))
	}
	err := db.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := intents.OrphansTx(tx)
		return err
	})
	return o, err
}

// Loops are what runs while the node does. They do the same side by side, so that
// a service that hangs delays only what was sent with it.
func (o *Outbox) Loops() []*loop.Loop { return o.loops }

// EnqueueTx adds a notice to the outbox, unless one of its fire and kind is there.
func (o *Outbox) EnqueueTx(tx *sqlite.Tx, n Notice) error {
	if n.FireID == "" || n.Kind == "" || n.Owner == "" || n.DueAt.IsZero() || n.TTL <= 0 {
		return errors.New("push: a notice needs a fire, a kind, an owner, a time and a life")
	}
	notes, err := json.Marshal(append([]string{}, n.Notes...))
	if err != nil {
		return err
	}
	added, err := tx.Exec(`
		INSERT INTO delivery_intents
		  (id, fire_id, kind, owner, title, body, notes, zone, due_at, ttl, created_at, next_attempt_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (fire_id, kind) DO NOTHING`,
		tx.NewID(), n.FireID, n.Kind, n.Owner, n.Title, n.Body, string(notes), n.Zone,
		n.DueAt.UnixMilli(), n.TTL.Milliseconds(), tx.Millis(), tx.Millis())
	if added > 0 {
		tx.AfterCommit(o.wake)
	}
	return err
}

func (o *Outbox) wake() {
	for _, l := range o.loops {
		l.Wake()
	}
}

// Deliver is one round: it claims what is due and makes the attempts, all at once.
// No transaction is open while it sends; a crash before the outcome is written
// sends again rather than never. A send that fails is no error here but a row; a
// ctx that ends lets sends under way finish, and begins no other.
func (o *Outbox) Deliver(ctx context.Context) error {
	for ctx.Err() == nil {
		claimed, err := o.claim(ctx)
		if err != nil || len(claimed) == 0 {
			return err
		}
		if err := loop.Each(ctx, len(claimed), claimed, o.serve); err != nil || len(claimed) < batch {
			return err
		}
	}
	return nil
}

// claim takes up to a batch of what is due. While nothing is, it only reads.
func (o *Outbox) claim(ctx context.Context) (claimed []*intent, err error) {
	due, err := sqlite.Read(ctx, o.db, intents.DueTx)
	if err != nil || !due {
		return nil, err
	}
	err = o.db.Write(ctx, func(tx *sqlite.Tx) error {
		leases, err := intents.ClaimTx(tx, batch, held)
		if err != nil {
			return err
		}
		for _, l := range leases {
			in, found, err := sqlite.One(tx, scanIntent, `SELECT `+intentColumns+` FROM delivery_intents WHERE id = ?`, l.Key)
			if err != nil {
				return fmt.Errorf("intent %s: %w", l.Key, err)
			}
			if !found {
				return fmt.Errorf("intent %s is gone right after it was claimed", l.Key)
			}
			in.lease = l
			claimed = append(claimed, &in)
		}
		return nil
	})
	return claimed, err
}

// serve takes one intent as far as it goes now: channel after channel, until one
// took it or there is nothing more to try.
func (o *Outbox) serve(ctx context.Context, in *intent) error {
	for {
		s, err := o.begin(ctx, in)
		if err != nil || s == nil {
			return err
		}
		o.crash("push.sending")
		outcomes := o.send(ctx, s)
		if taken(outcomes) {
			o.crash("push.taken")
		}
		more, err := o.record(ctx, in, s, outcomes)
		if err != nil {
			return err
		}
		o.crash("push.recorded")
		if !more {
			return nil
		}
		o.crash("push.fallback")
	}
}
