package push

import (
	"context"
	"slices"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sqlite"
)

// step is one attempt: a message to some targets through one route.
type step struct {
	route    Route
	found    []found
	at       int // the route's place in found
	targets  []Target
	messages []Message // one for each target
}

// begin decides what to do with the intent now. It marks and returns a step, which
// is durable before anything is sent; or it settles the intent and returns nil.
func (o *Outbox) begin(ctx context.Context, in *intent) (*step, error) {
	if ctx.Err() != nil { // stopping: whoever starts next goes on
		return nil, o.db.Write(context.WithoutCancel(ctx), func(tx *sqlite.Tx) error { return intents.ReleaseTx(tx, in.lease) })
	}
	ctx = context.WithoutCancel(ctx)
	routes := o.find(ctx, in.notice.Owner)
	var s *step
	err := o.db.Write(ctx, func(tx *sqlite.Tx) error {
		v, err := o.viewTx(tx, in, routes)
		if err != nil {
			return err
		}
		if slices.Contains(o.disabled(), in.notice.Owner) { // as late as can be: they may have been a moment ago
			v.disabled, v.routes = true, nil
		}
		d := v.decide()
		if len(d.targets) == 0 {
			if d.until == 0 {
				in.attempts++ // with nothing to show for it; the backoff grows
			}
			return in.settleTx(tx, d)
		}
		s = &step{route: o.routes[d.route], found: routes, at: d.route, targets: d.targets}
		for _, t := range d.targets {
			row := v.rows[spot{s.route.Channel.Name(), t.place()}]
			s.messages = append(s.messages, in.message(tx.Now, row.doubt))
		}
		return in.markTx(tx, s)
	})
	return s, err
}

// find asks each route for its targets. One that cannot say does not hold up the
// others.
func (o *Outbox) find(ctx context.Context, owner string) []found {
	var all []found
	for _, r := range o.routes {
		f := found{channel: r.Channel.Name(), perAddress: r.PerAddress}
		if f.targets, f.err = r.Targets(ctx, owner); f.err != nil {
			o.logger.WarnContext(ctx, "targets unknown", "channel", f.channel, "error", f.err)
		}
		all = append(all, f)
	}
	return all
}

func (o *Outbox) viewTx(tx *sqlite.Tx, in *intent, routes []found) (view, error) {
	v := view{now: tx.Millis(), expires: in.expires(), first: in.attempts == 0, routes: routes}
	var err error
	if v.rows, err = targetsTx(tx, in.id); err == nil {
		v.gates, err = gatesTx(tx)
	}
	return v, err
}

// markTx commits to the attempt: from here on it may have been sent.
func (in *intent) markTx(tx *sqlite.Tx, s *step) error {
	if err := intents.RenewTx(tx, in.lease, held); err != nil {
		return err
	}
	in.channel = s.route.Channel.Name()
	in.attempts++
	if err := in.moveTx(tx, Sending, ""); err != nil {
		return err
	}
	if err := intents.SetTx(tx, in.lease, `state = ?, channel = ?, attempts = ?`, in.state, in.channel, in.attempts); err != nil {
		return err
	}
	for _, t := range s.targets {
		var registration []byte
		if t.device != "" {
			registration = t.registration[:]
		}
		if _, err := tx.Exec(`
			INSERT INTO delivery_targets (intent_id, channel, place, registration, state, attempts)
			VALUES (?, ?, ?, ?, 'sending', 1)
			ON CONFLICT (intent_id, channel, place) DO UPDATE
			SET registration = excluded.registration, state = 'sending', attempts = attempts + 1, next_attempt_at = NULL, code = NULL,
				doubt = CASE state WHEN 'sending' THEN 'restart' ELSE doubt END`,
			in.id, in.channel, t.place(), registration); err != nil {
			return err
		}
	}
	return nil
}

// settleTx gives the intent up: done, or until its next attempt.
func (in *intent) settleTx(tx *sqlite.Tx, d decision) error {
	code := in.code
	switch {
	case d.state == Accepted:
		code = ""
	case d.code != "":
		code = d.code
	case code == "":
		code = expired // before there was any other reason
	}
	if d.state != in.state || code != in.code {
		if err := in.moveTx(tx, d.state, code); err != nil {
			return err
		}
	}
	var next *int64
	if d.state == Retryable {
		if d.until == 0 {
			d.until = tx.Now.Add(spread(tx, doubling(firstBackoff, longestBackoff, in.attempts))).UnixMilli()
		}
		next = &d.until
	}
	return intents.FinishTx(tx, in.lease, `state = ?, code = nullif(?, ''), attempts = ?, next_attempt_at = ?`, in.state, code, in.attempts, next)
}

// outcome is what became of one target.
type outcome struct {
	messageID string
	failure   *Failure // nil: a service took it
}

func taken(outcomes []outcome) bool {
	for _, r := range outcomes {
		if r.failure == nil {
			return true
		}
	}
	return false
}

// send makes the attempt, at all targets at once.
func (o *Outbox) send(ctx context.Context, s *step) []outcome {
	sending, done := outlast(ctx)
	defer done()
	outcomes := make([]outcome, len(s.targets))
	index := make([]int, len(s.targets))
	for i := range index {
		index[i] = i
		outcomes[i].failure = &Failure{Verdict: Retry, Code: "panic", MaybeTaken: true}
	}
	err := loop.Each(sending, len(index), index, func(ctx context.Context, i int) error {
		id, err := s.route.Channel.Send(ctx, s.targets[i], s.messages[i])
		outcomes[i] = outcome{messageID: id}
		if err != nil {
			outcomes[i].failure = failureOf(err)
		}
		return nil
	})
	if err != nil {
		o.logger.ErrorContext(ctx, "channel panicked", "channel", s.route.Channel.Name(), "error", err)
	}
	return outcomes
}

// outlast returns a context that bounds a send, and that goes on for a while after
// ctx has ended, so that what is under way when the node stops may finish.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendLimit)
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel() }
}
