// Package push tells people. It keeps where they can be reached, and delivers
// notices through channels in order of preference, with an account of each
// attempt. A notice is enqueued in the transaction that gave rise to it, so it is
// sent if and only if that thing happened.
package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tandem/internal/sync"
)

// Message is one notice as a channel sends it. Everything in it may reach the
// screen of a locked phone; nothing in it is a secret of the node.
type Message struct {
	FireID string        // what rang; the phone shows one notice for one fire, under this tag
	Title  string        // a few words
	Body   string        // the reminder's text, any length; a channel cuts or splits it
	Notes  []string      // for a person, such as "late, was due 08:30"; shown after the body
	DueAt  time.Time     // when it was due
	TTL    time.Duration // how long the service keeps it for a phone that is off; never 0
}

// Target is one place where one owner can be reached through one channel.
type Target struct {
	Address  string // the device token or the chat's number
	Platform string // "android", "ios" or "web" for a device, empty for a chat

	device       string   // the installation's id: what a device is called in rows and facts
	registration sync.UID // zero for a chat
}

// place names the target where others can read it: an address of a device is a secret.
func (t Target) place() string {
	if t.device != "" {
		return t.device
	}
	return t.Address
}

// Channel is one way to reach a person.
type Channel interface {
	// Name is stable: it stands in rows and facts.
	Name() string
	// Send makes exactly one attempt and returns the service's id of the message
	// once the service has accepted it. Any other outcome is a *Failure.
	Send(context.Context, Target, Message) (messageID string, err error)
}

// Verdict is what a failed attempt says of the next one.
type Verdict string

// The verdicts.
const (
	Retry        Verdict = "retry"         // this target may take it later
	Throttled    Verdict = "throttled"     // nothing more through this channel before RetryAfter
	Unregistered Verdict = "unregistered"  // the address is gone for good: forget it
	Rejected     Verdict = "rejected"      // this message will never be taken there
	Misconfig    Verdict = "misconfigured" // our credentials or project are wrong; keep the address, tell the operator
)

// Failure is why an attempt did not end in acceptance.
type Failure struct {
	Verdict    Verdict
	Code       string        // the service's own word, such as "UNREGISTERED" or "429"; stable, no secret
	RetryAfter time.Duration // what the service asked for; 0 if it did not say
	MaybeTaken bool          // it is not known that the service refused: it may have taken the message
	Cause      error         // for the log; carries neither token nor text
}

func (f *Failure) Error() string {
	if f.Cause != nil {
		return fmt.Sprintf("%s (%s): %v", f.Code, f.Verdict, f.Cause)
	}
	return fmt.Sprintf("%s (%s)", f.Code, f.Verdict)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// failureOf returns the Failure within err; an error of another kind is one that
// may pass, since dropping a reminder for a reason we do not know is the worse
// mistake. Nor is it known to have been refused.
func failureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Verdict: Retry, Code: "unknown", MaybeTaken: true, Cause: err}
}
