package push

import (
	"context"
	"slices"
	"strconv"

	"tandem/internal/sqlite"
)

// Attempt is the body of the fact "attempt": one try through one channel.
type Attempt struct {
	Kind    string          `json:"kind"`
	Attempt int             `json:"attempt"`
	Channel string          `json:"channel"`
	Targets []AttemptTarget `json:"targets"`
}

// AttemptTarget is what an attempt came to at one device or chat.
type AttemptTarget struct {
	Place string `json:"place"`          // the device's id or the chat's number
	Code  string `json:"code,omitempty"` // the service's word for the failure; empty: accepted
}

// Acceptance is the body of the fact "accepted": a service took the notice.
type Acceptance struct {
	Kind      string `json:"kind"`
	Channel   string `json:"channel"`
	Place     string `json:"place"`
	MessageID string `json:"message_id"` // the service's
}

// record writes what became of a step, in one transaction, and reports whether
// there is another channel to try at once. It does not wait for a ctx that ended:
// what was sent must be known.
func (o *Outbox) record(ctx context.Context, in *intent, s *step, outcomes []outcome) (more bool, err error) {
	channel := s.route.Channel.Name()
	for _, r := range outcomes {
		if f := r.failure; f != nil && f.Verdict == Misconfig {
			o.logger.WarnContext(ctx, "channel misconfigured", "channel", channel, "code", f.Code, "error", f)
		}
	}
	// Each way out of it writes through the lease: one that was lost undoes it all.
	err = o.db.Write(context.WithoutCancel(ctx), func(tx *sqlite.Tx) error {
		code, err := o.outcomesTx(tx, in, s, outcomes)
		if err != nil {
			return err
		}
		v, err := o.viewTx(tx, in, s.found)
		if err != nil {
			return err
		}
		d := v.decide()
		if code != "" { // a service's word says more than ours
			d.code = code
		}
		if more = len(d.targets) > 0; !more {
			return in.settleTx(tx, d)
		}
		if err := in.moveTx(tx, Retryable, code); err != nil {
			return err
		}
		in.code = code
		return intents.SetTx(tx, in.lease, `state = ?, code = ?, next_attempt_at = ?`, in.state, code, tx.Millis())
	})
	return more, err
}

// outcomesTx writes each target's outcome and tells the facts. It returns the first
// failure's code. An address that is gone for good goes from the step too.
func (o *Outbox) outcomesTx(tx *sqlite.Tx, in *intent, s *step, outcomes []outcome) (code string, err error) {
	n, channel := in.notice, s.route.Channel.Name()
	told := Attempt{Kind: n.Kind, Attempt: in.attempts, Channel: channel}
	for i, r := range outcomes {
		t := s.targets[i]
		at := AttemptTarget{Place: t.place()}
		if r.failure == nil {
			err = o.acceptedTx(tx, in, s, t, r.messageID)
		} else {
			at.Code = r.failure.Code
			if code == "" {
				code = at.Code
			}
			err = o.failedTx(tx, in, s, t, r.failure)
		}
		if err != nil {
			return "", err
		}
		told.Targets = append(told.Targets, at)
	}
	_, err = o.log.FactTx(tx, "attempt", n.FireID, n.Owner, n.Kind+"/"+strconv.Itoa(in.attempts), told)
	return code, err
}

func (o *Outbox) acceptedTx(tx *sqlite.Tx, in *intent, s *step, t Target, messageID string) error {
	n, channel := in.notice, s.route.Channel.Name()
	if err := openTx(tx, s.found[s.at].gate(t)); err != nil {
		return err
	}
	if _, err := tx.Exec(`
		UPDATE delivery_targets
		SET state = 'accepted', message_id = ?
		WHERE intent_id = ? AND channel = ? AND place = ?`, messageID, in.id, channel, t.place()); err != nil {
		return err
	}
	_, err := o.log.FactTx(tx, "accepted", n.FireID, n.Owner, n.Kind+"/"+channel+"/"+t.place(),
		Acceptance{Kind: n.Kind, Channel: channel, Place: t.place(), MessageID: messageID})
	return err
}

// failedTx writes a failure with what follows from its verdict: when the target is
// tried again, if ever, whether the channel pauses, and whether the address goes.
func (o *Outbox) failedTx(tx *sqlite.Tx, in *intent, s *step, t Target, f *Failure) error {
	channel := s.route.Channel.Name()
	attempts, _, err := sqlite.One(tx, sqlite.Value[int],
		`SELECT attempts FROM delivery_targets WHERE intent_id = ? AND channel = ? AND place = ?`, in.id, channel, t.place())
	if err != nil {
		return err
	}
	state, next := Retryable, tx.Now.Add(max(spread(tx, doubling(firstBackoff, longestBackoff, attempts)), f.RetryAfter)).UnixMilli()
	switch f.Verdict {
	case Throttled:
		next, err = shutTx(tx, s.found[s.at].gate(t), f.RetryAfter)
	case Misconfig: // an operator must act; asking often helps nobody
		next = tx.Now.Add(longestBackoff).UnixMilli()
	case Rejected:
		state = Terminal
	case Unregistered:
		if state = Terminal; t.device != "" {
			err = o.tokens.buryTx(tx, t)
			here := &s.found[s.at]
			here.targets = slices.DeleteFunc(slices.Clone(here.targets), func(other Target) bool { return other == t })
		}
	}
	if err != nil {
		return err
	}
	var at *int64
	if state == Retryable {
		at = &next
	}
	_, err = tx.Exec(`
		UPDATE delivery_targets
		SET state = ?, next_attempt_at = ?, code = ?, doubt = CASE WHEN ? THEN 'unanswered' ELSE doubt END
		WHERE intent_id = ? AND channel = ? AND place = ?`, state, at, f.Code, f.MaybeTaken, in.id, channel, t.place())
	return err
}
