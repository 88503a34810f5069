package push

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"tandem/internal/lease"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

// State is how far an intent, or one target of it, has come.
type State string

// The states. An intent begins as "prepared", when nothing was sent; Unknown is an
// intent's only.
const (
	Sending   State = "sending"          // it may have been sent
	Accepted  State = "accepted"         // a service took it
	Retryable State = "failed_retryable" // it is tried again
	Terminal  State = "failed_terminal"  // it is not
	Unknown   State = "unknown"          // its time is up, and nobody knows whether a service took it
)

// intent is a notice under way, as whoever holds its lease sees it.
type intent struct {
	lease     lease.Lease
	id        string
	notice    Notice
	createdAt int64
	state     State
	channel   string // the last one tried
	code      string // why it was not accepted, so far
	attempts  int
}

const intentColumns = `id, fire_id, kind, owner, title, body, notes, zone, due_at, ttl, created_at,
	state, coalesce(channel, ''), coalesce(code, ''), attempts`

func scanIntent(r sqlite.Row) (in intent, err error) {
	var notes string
	var due, ttl int64
	n := &in.notice
	if err := r.Scan(&in.id, &n.FireID, &n.Kind, &n.Owner, &n.Title, &n.Body, &notes, &n.Zone, &due, &ttl, &in.createdAt,
		&in.state, &in.channel, &in.code, &in.attempts); err != nil {
		return in, err
	}
	n.DueAt, n.TTL = sqlite.Time(due), time.Duration(ttl)*time.Millisecond
	if err := json.Unmarshal([]byte(notes), &n.Notes); err != nil {
		return in, fmt.Errorf("notes of intent %s: %w", in.id, err)
	}
	return in, nil
}

// expires is when the notice is no longer worth an attempt, but the first.
func (in *intent) expires() int64 {
	return max(in.notice.DueAt.UnixMilli(), in.createdAt) + in.notice.TTL.Milliseconds()
}

const (
	lateAfter = time.Minute
	lateNote  = "late, was due "
)

// doubt is why a service may have taken a notice though no attempt was accepted.
type doubt string

// againNotes are what a person reads on a notice that may come twice.
var againNotes = map[doubt]string{
	"restart":    "sent again after a restart",
	"unanswered": "sent again, the first may have arrived",
}

// message is what goes out now. A notice that is late says when it was due, and one
// that may be the second says why.
func (in *intent) message(now time.Time, why doubt) Message {
	n := in.notice
	notes := slices.Clone(n.Notes)
	if now.Sub(n.DueAt) > lateAfter {
		notes = append(notes, lateNote+clock(n.DueAt, now, n.Zone))
	}
	if again := againNotes[why]; again != "" {
		notes = append(notes, again)
	}
	return Message{FireID: n.FireID, Title: n.Title, Body: n.Body, Notes: notes, DueAt: n.DueAt, TTL: n.TTL}
}

// clock tells a past time to a person: in their zone, with the day unless that is
// today's.
func clock(at, now time.Time, zone string) string {
	loc, err := when.Zone(zone)
	if err != nil {
		return at.UTC().Format(time.RFC3339)
	}
	at, now = at.In(loc), now.In(loc)
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04")
	}
	return at.Format("2006-01-02 15:04")
}

// targetRow is how it stands with one target of an intent.
type targetRow struct {
	registration sync.UID // the one last tried; zero for a chat
	state        State
	attempts     int
	nextAt       int64
	doubt        doubt // of any attempt so far; of one that is not recorded it is the crash
}

// spot names a target among those of an intent, or a gate.
type spot struct{ channel, place string }

func targetsTx(tx *sqlite.Tx, intentID string) (map[spot]targetRow, error) {
	rows := map[spot]targetRow{}
	_, err := sqlite.All(tx, func(r sqlite.Row) (_ struct{}, err error) {
		var at spot
		var row targetRow
		var registration []byte
		var next *int64
		err = r.Scan(&at.channel, &at.place, &registration, &row.state, &row.attempts, &next, &row.doubt)
		copy(row.registration[:], registration)
		if next != nil {
			row.nextAt = *next
		}
		rows[at] = row
		return struct{}{}, err
	}, `
		SELECT channel, place, registration, state, attempts, next_attempt_at,
		  CASE state WHEN 'sending' THEN 'restart' ELSE coalesce(doubt, '') END
		FROM delivery_targets
		WHERE intent_id = ?`, intentID)
	return rows, err
}

// moveTx changes the state, with the audit row of the change. The intent's own row
// is for the caller to write, guarded by the lease.
func (in *intent) moveTx(tx *sqlite.Tx, to State, code string) error {
	_, err := tx.Exec(`
		INSERT INTO delivery_events (intent_id, from_state, to_state, channel, code, at)
		VALUES (?, ?, ?, nullif(?, ''), nullif(?, ''), ?)`, in.id, in.state, to, in.channel, code, tx.Millis())
	in.state = to
	return err
}
