package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"tandem/internal/fault"
	"tandem/internal/scheduler"
	"tandem/internal/sqlite"
	"tandem/internal/when"
)

type messageBody struct {
	RowFields
	Content   string         `json:"content"`
	Action    string         `json:"action"`
	TriggerAt *string        `json:"trigger_at" doc:"An instant, in UTC"`
	CronExpr  *string        `json:"cron_expr"`
	RRule     *string        `json:"rrule" doc:"RFC 5545, with its DTSTART line"`
	Zone      string         `json:"tz" doc:"Where the schedule is read"`
	Enabled   bool           `json:"enabled"`
	From      *string        `json:"schedule_effective_from" doc:"Occurrences up to it belong to an older schedule"`
	Next      []fireTime     `json:"next" doc:"The next three times it rings; fewer when it ends before"`
	Warnings  []when.Warning `json:"warnings" doc:"What the schedule does that you may not expect"`
	Problem   *messageFault  `json:"problem,omitempty" doc:"Why it cannot ring on this node"`
}

type fireTime struct {
	At    string `json:"at" doc:"In UTC"`
	Local string `json:"local" doc:"In tz"`
}

type messageFault struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// upcoming is how many of the next ringings an answer tells.
const upcoming = 3

func (a *api) showMessage(m scheduler.Message) messageBody {
	b := messageBody{
		RowFields: fieldsOf(m.Head), Content: m.Content, Action: m.Action, TriggerAt: showTime(m.TriggerAt),
		CronExpr: m.CronExpr, RRule: m.RRule, Zone: m.EffectiveZone(), Enabled: m.Enabled, From: showTime(m.EffectiveFrom),
		Next: []fireTime{}, Warnings: m.Warnings(),
	}
	if f := m.Problem(); f != nil {
		b.Problem = &messageFault{f.Code, f.Detail}
	}
	if loc, err := when.Zone(m.EffectiveZone()); err == nil {
		for _, t := range m.Upcoming(a.DB.Now(), upcoming) {
			b.Next = append(b.Next, fireTime{when.Format(t), when.Local(t, loc)})
		}
	}
	return b
}

type newMessageInput struct {
	Keyed
	Body struct {
		Content   string `json:"content" doc:"1 byte to 64 KiB"`
		Action    string `json:"action,omitempty" enum:"notify" doc:"What happens then: the content is said"`
		TriggerAt string `json:"trigger_at,omitempty" minLength:"1" doc:"Once: RFC 3339 with an offset, or local time in tz" example:"2026-05-06T17:00"`
		CronExpr  string `json:"cron_expr,omitempty" minLength:"1" doc:"Again and again: five fields" example:"30 7 * * 1-5"`
		RRule     string `json:"rrule,omitempty" minLength:"1" doc:"Again and again: RFC 5545" example:"FREQ=MONTHLY;BYMONTHDAY=-1"`
		Zone      string `json:"tz,omitempty" minLength:"1" doc:"An IANA zone; your own by default" example:"Europe/Berlin"`
		Enabled   *bool  `json:"enabled,omitempty" doc:"true by default"`
	}
}

func (a *api) addMessage(ctx context.Context, in *newMessageInput) (*onceOutput[messageBody], error) {
	b := in.Body
	n := scheduler.Draft{Content: b.Content, TriggerAt: b.TriggerAt, CronExpr: b.CronExpr, RRule: b.RRule, Zone: b.Zone,
		Disabled: b.Enabled != nil && !*b.Enabled, Asked: asked(ctx, in.Keyed)}
	return once(ctx, a, in.Keyed, in.Body, func(tx *sqlite.Tx) (made[messageBody], error) {
		m, warnings, err := a.Scheduler.AddTx(tx, caller(ctx).UserID, n)
		if err != nil {
			return made[messageBody]{}, err
		}
		out := a.message(m)
		out.Body.Warnings = a.warned(warnings)
		return made[messageBody]{"/v1/scheduled-messages/" + out.Body.Ref, out.ETag, out.Body}, nil
	})
}

// warned adds to what a schedule may do unexpectedly that nobody hears it.
func (a *api) warned(warnings []when.Warning) []when.Warning {
	if a.Mute {
		warnings = append(warnings[:len(warnings):len(warnings)], when.Warning{Code: "no_channel",
			Detail: "This node rings, and no way to reach you is configured on it: it is noted that it rang, and nobody hears it before push.telegram or push.fcm is set."})
	}
	return warnings
}

func (a *api) getMessage(ctx context.Context, in *GetInput) (*rowOutput[messageBody], error) {
	ref, err := in.ref(scheduler.ErrNotFound)
	if err != nil {
		return nil, err
	}
	m, err := a.Scheduler.Get(ctx, caller(ctx).UserID, ref)
	if err != nil {
		return nil, err
	}
	return unlessKnown(in, a.message(m))
}

// message is a reminder with its tag, which tells apart also what no edit changes:
// when it rings next moves with the clock and with where its owner lives.
func (a *api) message(m scheduler.Message) *rowOutput[messageBody] {
	body := a.showMessage(m)
	derived, _ := json.Marshal([]any{body.Zone, body.Next, body.Warnings, body.Problem}) // texts marshal
	hash := sha256.Sum256(derived)
	return &rowOutput[messageBody]{derivedTag(etag(m.Head), hex.EncodeToString(hash[:6])), body}
}

type changeMessageInput struct {
	EditInput
	Body struct {
		Content   patched[string] `json:"content,omitzero"`
		TriggerAt patched[string] `json:"trigger_at,omitzero" minLength:"1"`
		CronExpr  patched[string] `json:"cron_expr,omitzero" minLength:"1"`
		RRule     patched[string] `json:"rrule,omitzero" minLength:"1"`
		Zone      patched[string] `json:"tz,omitzero" minLength:"1"`
		Enabled   patched[bool]   `json:"enabled,omitzero"`
	}
}

func (a *api) changeMessage(ctx context.Context, in *changeMessageInput) (*rowOutput[messageBody], error) {
	ref, err := in.ref(scheduler.ErrNotFound)
	if err != nil {
		return nil, err
	}
	b, owner := in.Body, caller(ctx).UserID
	c := scheduler.Change{Content: b.Content.or(""), TriggerAt: b.TriggerAt.or(""), CronExpr: b.CronExpr.or(""), RRule: b.RRule.or(""),
		Zone: b.Zone.or(""), Enabled: b.Enabled.or(true)}
	var m scheduler.Message
	var warnings []when.Warning
	err = a.DB.Write(ctx, func(tx *sqlite.Tx) error {
		now, err := a.Scheduler.GetTx(tx, owner, ref)
		if err != nil {
			return err
		}
		if err := fresh(in.IfMatch, now.Head); err != nil {
			return err
		}
		m, warnings, err = a.Scheduler.EditTx(tx, owner, ref, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := a.message(m)
	out.Body.Warnings = a.warned(warnings)
	return out, nil
}

func (a *api) deleteMessage(ctx context.Context, in *EditInput) (*struct{}, error) {
	ref, err := in.ref(scheduler.ErrNotFound)
	if err != nil {
		return nil, err
	}
	owner := caller(ctx).UserID
	return nil, a.DB.Write(ctx, func(tx *sqlite.Tx) error {
		now, err := a.Scheduler.GetTx(tx, owner, ref)
		if err == nil {
			err = fresh(in.IfMatch, now.Head)
		}
		if err != nil && !fault.Of(err, fault.NotFound) {
			return err
		}
		return a.Scheduler.DeleteTx(tx, owner, ref)
	})
}

func (a *api) listMessages(ctx context.Context, in *ListInput) (*listOutput[messageBody], error) {
	owner := caller(ctx).UserID
	list := []string{"scheduled-messages", owner}
	after, err := a.rowPlace(in.Cursor, list)
	if err != nil {
		return nil, err
	}
	rows, err := a.Scheduler.List(ctx, owner, after, in.limit()+1)
	if err != nil {
		return nil, err
	}
	return page(a, rows, in.limit(), a.showMessage, func(m scheduler.Message) []byte { return placeOf(m.Head) }, list), nil
}
