package scheduler

import (
	"context"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

// Store reads and writes scheduled messages. Every method is asked on behalf of an
// owner and sees nobody else's.
type Store struct {
	db    *sqlite.DB
	log   *sync.Log
	table *Table
}

// NewStore returns a store that tells log what changes. Table is the one that the
// log was given.
func NewStore(db *sqlite.DB, log *sync.Log, table *Table) *Store { return &Store{db, log, table} }

// AddTx makes a message. Its faults are Invalid: scheduled_message_invalid,
// trigger_at_past, and those of package when. The warnings tell what its maker may
// not expect. What the same request has made at the other node is answered instead,
// also when its time has passed by now.
func (s *Store) AddTx(tx *sqlite.Tx, owner string, d Draft) (Message, []when.Warning, error) {
	if ref, made, err := s.log.MadeTx(tx, "scheduled_messages", owner, d.Asked); err != nil || made {
		var m Message
		if err == nil {
			m, _, err = s.oneTx(tx, owner, ref)
		}
		return m, nil, err
	}
	m := Message{Head: sync.Head{Owner: owner}, Action: Notify, zoneMode: fixed}
	if err := s.table.homes(tx).fill(&m); err != nil {
		return m, nil, err
	}
	warnings, err := d.change().apply(&m, tx.Now)
	if err != nil {
		return m, nil, err
	}
	m.EffectiveFrom = nil // that is when it was made
	if m.Head, err = s.log.AddAskedTx(tx, "scheduled_messages", owner, d.Asked); err != nil {
		return m, nil, err
	}
	_, err = tx.Exec(`
		INSERT INTO scheduled_messages (`+columns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, m.args()...)
	if err != nil {
		return m, nil, err
	}
	return m, warnings, s.table.planTx(tx, &m)
}

// EditTx alters a message and returns its new version; a change that alters
// nothing makes none. Another schedule counts from now: nothing rings for times
// that were passed under the old one. A notice that was handed out already keeps
// its text.
func (s *Store) EditTx(tx *sqlite.Tx, owner string, ref sync.Ref, c Change) (Message, []when.Warning, error) {
	m, err := s.GetTx(tx, owner, ref)
	if err != nil {
		return m, nil, err
	}
	before := m
	warnings, err := c.apply(&m, tx.Now)
	if err != nil || same(before, m) {
		return before, warnings, err
	}
	return m, warnings, s.saveTx(tx, &m)
}

// same reports whether two versions say the same.
func same(a, b Message) bool {
	return a.Content == b.Content && a.Enabled == b.Enabled && a.scheduleHash() == b.scheduleHash()
}

// DeleteTx deletes a message. One that is gone already stays gone, without an
// error; one that never was is ErrNotFound.
func (s *Store) DeleteTx(tx *sqlite.Tx, owner string, ref sync.Ref) error {
	m, found, err := s.oneTx(tx, owner, ref)
	switch {
	case err != nil:
		return err
	case !found:
		return ErrNotFound
	case m.DeletedAt != nil:
		return nil
	}
	now := tx.Millis()
	m.DeletedAt = &now
	return s.saveTx(tx, &m)
}

// saveTx writes what this version can change; what came from a newer one stays.
func (s *Store) saveTx(tx *sqlite.Tx, m *Message) error {
	s.log.EditTx(tx, &m.Head)
	_, err := tx.Exec(`
		UPDATE scheduled_messages SET updated_at = ?, updated_by = ?, deleted_at = ?, seq = ?, seen = ?,
			content = ?, trigger_at = ?, cron_expr = ?, rrule = ?, tz = ?, enabled = ?, schedule_effective_from = ?
		WHERE origin = ? AND id = ?`,
		m.UpdatedAt, m.UpdatedBy, m.DeletedAt, m.Seq, string(m.Seen),
		m.Content, sqlite.MillisPtr(m.TriggerAt), m.CronExpr, m.RRule, m.Zone, m.Enabled, sqlite.MillisPtr(m.EffectiveFrom),
		m.Origin, m.ID)
	if err != nil {
		return err
	}
	return s.table.planTx(tx, m)
}

// GetTx returns a message of the owner, or ErrNotFound.
func (s *Store) GetTx(tx *sqlite.Tx, owner string, ref sync.Ref) (Message, error) {
	m, found, err := s.oneTx(tx, owner, ref)
	if err == nil && (!found || m.DeletedAt != nil) {
		return Message{}, ErrNotFound
	}
	return m, err
}

// Get is GetTx in a transaction of its own.
func (s *Store) Get(ctx context.Context, owner string, ref sync.Ref) (Message, error) {
	return sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) (Message, error) { return s.GetTx(tx, owner, ref) })
}

// oneTx returns a message of the owner, also one that was deleted. A key that was
// merged into another one leads to the message under that.
func (s *Store) oneTx(tx *sqlite.Tx, owner string, ref sync.Ref) (Message, bool, error) {
	const where = `WHERE origin = ? AND id = ? AND owner = ?`
	m, found, err := sqlite.One(tx, scan, selectMessage+where, ref.Origin, ref.ID, owner)
	if err == nil && (!found || m.DeletedAt != nil) {
		to, leads, failed := s.log.AliasTx(tx, "scheduled_messages", ref)
		if err = failed; leads {
			m, found, err = sqlite.One(tx, scan, selectMessage+where, to.Origin, to.ID, owner)
		}
	}
	if err == nil && found {
		err = s.table.homes(tx).fill(&m)
	}
	return m, found, err
}

// List returns up to limit messages after a place in the order they were made,
// oldest first. Those that have rung for the last time are among them.
func (s *Store) List(ctx context.Context, owner string, after sync.Place, limit int) ([]Message, error) {
	return sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) ([]Message, error) {
		list, err := sqlite.All(tx, scan, selectMessage+`
			WHERE owner = ? AND deleted_at IS NULL AND (created_at, origin, id) > (?, ?, ?)
			ORDER BY created_at, origin, id
			LIMIT ?`, owner, after.CreatedAt, after.Origin, after.ID, limit)
		if err != nil {
			return nil, err
		}
		return list, s.table.homes(tx).fillAll(list)
	})
}
