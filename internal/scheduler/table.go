package scheduler

import (
	"encoding/json"
	"strconv"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

// oldest is the age of the oldest occurrence that still rings. One that is found
// later than that is told of as missed.
const oldest = 90 * 24 * time.Hour

// What the facts of this package are called.
const (
	Fired  = "fired"  // a reminder rang; the notice was handed to the outbox in the same commit
	Missed = "missed" // a reminder was found when it was too old to ring
)

// Table keeps next_fire_at. That column is this node's own and derived, from the
// row and from the facts that either node told, in whatever transaction changes
// one of them: an edit here, a page from the peer, or a ringing.
type Table struct {
	zone func(tx *sqlite.Tx, owner string) (string, error)
	wake func() // runs after each commit that changed when something rings; set before the node runs
}

// NewTable returns the derivation. Zone is where an owner lives, an IANA name, or
// empty where nobody knows.
func NewTable(zone func(tx *sqlite.Tx, owner string) (string, error)) *Table {
	return &Table{zone: zone, wake: func() {}}
}

// Table describes the scheduled messages to replication.
func (t *Table) Table() *sync.Table {
	return &sync.Table{Name: "scheduled_messages", Applied: t.deriveTx, BroughtBack: countFrom, Columns: []sync.Column{
		{Name: "content"},
		{Name: "action", Default: Notify},
		{Name: "args", Kind: sync.JSON, Null: true},
		{Name: "trigger_at", Kind: sync.Time, Null: true},
		{Name: "cron_expr", Null: true},
		{Name: "rrule", Null: true},
		{Name: "from_completion", Kind: sync.Bool},
		{Name: "tz", Null: true},
		{Name: "tz_mode", Default: fixed},
		{Name: "enabled", Kind: sync.Bool, Default: "1"},
		{Name: "nag", Kind: sync.JSON, Null: true},
		{Name: "must_ring", Kind: sync.Bool},
		{Name: "schedule_effective_from", Kind: sync.Time, Null: true},
	}}
}

// countFrom has the schedule of a version that is brought back count from now: what
// passed while another one stood does not ring.
func countFrom(now int64, fields []sync.Field) []sync.Field {
	return sync.With(fields, "schedule_effective_from", strconv.AppendInt(nil, now, 10))
}

// fixed is the tz_mode of a schedule that is read in its own zone.
const fixed = "fixed"

// Facts derives anew what the peer's facts are about, in the transaction that
// stores them. Facts that cannot be read concern no reminder of ours.
func (t *Table) Facts(tx *sqlite.Tx, facts []sync.Fact) error {
	var uids []sync.UID
	for _, f := range facts {
		var told story
		if f.Kind == Fired && json.Unmarshal(f.Body, &told) == nil {
			uids = append(uids, told.Reminder)
		}
	}
	return t.deriveTx(tx, uids)
}

// MovedTx derives anew the owner's messages that name no zone of their own. It
// belongs in each transaction that writes or applies where the owner lives.
func (t *Table) MovedTx(tx *sqlite.Tx, owner string) error {
	uids, err := sqlite.All(tx, sqlite.Value[sync.UID], `
		SELECT uid FROM scheduled_messages WHERE owner = ? AND deleted_at IS NULL AND coalesce(tz, '') = ''`, owner)
	if err != nil {
		return err
	}
	return t.deriveTx(tx, uids)
}

// deriveTx writes next_fire_at of the messages anew. A uid that is not here yet is
// derived when its row comes.
func (t *Table) deriveTx(tx *sqlite.Tx, uids []sync.UID) error {
	homes := t.homes(tx)
	for _, uid := range uids {
		m, found, err := sqlite.One(tx, scan, selectMessage+`WHERE uid = ?`, uid[:])
		if err == nil && found {
			err = homes.fill(&m)
		}
		if err == nil && found {
			err = t.planTx(tx, &m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// planTx writes the message's next_fire_at anew, and wakes the scheduler after the
// commit if it is another.
func (t *Table) planTx(tx *sqlite.Tx, m *Message) error {
	next, err := nextTx(tx, *m)
	if err != nil {
		return err
	}
	m.NextFireAt = next
	changed, err := tx.Exec(`UPDATE scheduled_messages SET next_fire_at = ? WHERE uid = ? AND next_fire_at IS NOT ?`,
		sqlite.MillisPtr(next), m.UID[:], sqlite.MillisPtr(next))
	if changed > 0 {
		tx.AfterCommit(t.wake)
	}
	return err
}

// nextTx returns when the message rings next, which may be a time that has passed,
// or nil when it does not.
func nextTx(tx *sqlite.Tx, m Message) (*time.Time, error) {
	s, err := m.plan()
	if err != nil || !m.Enabled || m.DeletedAt != nil {
		return nil, nil // why it does not ring is for Problem to say
	}
	o, ok, err := firstTx(tx, m, s)
	if err != nil || !ok {
		return nil, err
	}
	return &o.At, nil
}

// firstTx returns the first occurrence that belongs to the schedule, is not too
// old, comes after the newest that rang, and has not rung itself. Such a one may
// have: a wrong clock may have rung what was still to come, and whoever moves west
// sees the same hour on the wall again.
func firstTx(tx *sqlite.Tx, m Message, s when.Schedule) (when.Occurrence, bool, error) {
	after := tx.Millis() - oldest.Milliseconds()
	if m.EffectiveFrom != nil {
		after = max(after, m.EffectiveFrom.UnixMilli())
	} else {
		after = max(after, m.CreatedAt)
	}
	rang, _, err := sqlite.One(tx, sqlite.Value[int64], newestFired, m.UID.String(), m.scheduleHash(), tx.Millis())
	if err != nil {
		return when.Occurrence{}, false, err
	}
	o, ok := s.Next(sqlite.Time(max(after, rang)))
	for ok {
		rung, err := rungTx(tx, m.fireID(o))
		if err != nil || !rung {
			return o, true, err
		}
		o, ok = s.Next(o.At)
	}
	return o, false, nil
}

// newestFired leaves out what was rung ahead of its time: taken for the newest it
// would silence all that comes before it.
const newestFired = `
	SELECT CAST(body ->> '$.due_at' AS INTEGER) FROM facts
	WHERE kind = 'fired' AND json_valid(body)
	  AND body ->> '$.reminder' = ? AND body ->> '$.schedule_hash' = ? AND CAST(body ->> '$.due_at' AS INTEGER) <= ?
	ORDER BY CAST(body ->> '$.due_at' AS INTEGER) DESC
	LIMIT 1`

// rungTx reports whether anyone has told that the fire rang.
func rungTx(tx *sqlite.Tx, fireID string) (bool, error) {
	rung, _, err := sqlite.One(tx, sqlite.Value[bool], `
		SELECT EXISTS (SELECT 1 FROM facts WHERE subject = ? AND kind = 'fired')`, fireID)
	return rung, err
}

// homes looks up where owners live, each once in a transaction.
type homes struct {
	tx    *sqlite.Tx
	zone  func(tx *sqlite.Tx, owner string) (string, error)
	known map[string]string
}

func (t *Table) homes(tx *sqlite.Tx) homes { return homes{tx, t.zone, map[string]string{}} }

// fill tells the message where its owner lives.
func (h homes) fill(m *Message) (err error) {
	zone, ok := h.known[m.Owner]
	if !ok {
		if zone, err = h.zone(h.tx, m.Owner); err != nil {
			return err
		}
		h.known[m.Owner] = zone
	}
	m.home = zone
	return nil
}

func (h homes) fillAll(list []Message) error {
	for i := range list {
		if err := h.fill(&list[i]); err != nil {
			return err
		}
	}
	return nil
}
