// Package settings keeps how each person wants to be served: one replicated row
// a person, made by their first change.
package settings

import (
	"context"
	"encoding/binary"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

// Settings are one person's.
type Settings struct {
	sync.Head
	Zone string // IANA; empty until it is chosen
}

// Moved is called in each transaction that changes where an owner lives, so that
// what is derived from it changes with it.
type Moved func(tx *sqlite.Tx, owner string) error

// Store reads and writes settings.
type Store struct {
	db    *sqlite.DB
	log   *sync.Log
	moved Moved
}

// NewStore returns a store that tells log what changes.
func NewStore(db *sqlite.DB, log *sync.Log, moved Moved) *Store {
	return &Store{db: db, log: log, moved: moved}
}

const columns = sync.HeadColumns + `, tz`

func scan(r sqlite.Row) (s Settings, err error) {
	var zone *string
	err = r.Scan(append(s.Dest(), &zone)...)
	if zone != nil {
		s.Zone = *zone
	}
	return s, err
}

// Get returns the owner's settings; where nothing was ever chosen, the zero value.
func (s *Store) Get(ctx context.Context, owner string) (Settings, error) {
	return sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) (Settings, error) { return GetTx(tx, owner) })
}

// GetTx is Get within a transaction.
func GetTx(tx *sqlite.Tx, owner string) (Settings, error) {
	v, _, err := sqlite.One(tx, scan, `SELECT `+columns+` FROM settings WHERE owner = ? AND deleted_at IS NULL`, owner)
	return v, err
}

// ZoneTx returns the owner's zone, or nothing where none was chosen.
func ZoneTx(tx *sqlite.Tx, owner string) (string, error) {
	v, err := GetTx(tx, owner)
	return v.Zone, err
}

// SetZoneTx keeps the owner's zone, an IANA name.
func (s *Store) SetZoneTx(tx *sqlite.Tx, owner, zone string) (Settings, error) {
	if _, err := when.Zone(zone); err != nil {
		return Settings{}, err
	}
	return s.zoneTx(tx, owner, zone)
}

// ClearZoneTx takes the owner's choice back.
func (s *Store) ClearZoneTx(tx *sqlite.Tx, owner string) (Settings, error) {
	return s.zoneTx(tx, owner, "")
}

func (s *Store) zoneTx(tx *sqlite.Tx, owner, zone string) (Settings, error) {
	v, err := GetTx(tx, owner)
	if err != nil || v.Zone == zone {
		return v, err
	}
	v.Zone = zone
	if err := s.saveTx(tx, owner, &v); err != nil {
		return v, err
	}
	return v, s.moved(tx, owner)
}

func (s *Store) saveTx(tx *sqlite.Tx, owner string, v *Settings) error {
	at := place(owner)
	old, found, err := sqlite.One(tx, scan, `SELECT `+columns+` FROM settings WHERE origin = ? AND id = ?`, at.Origin, at.ID)
	if err != nil {
		return err
	}
	if !found {
		v.Head = s.log.AddAtTx(tx, owner, at, uid(owner))
		_, err = tx.Exec(`INSERT INTO settings (`+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(v.Args(), v.zone())...)
		return err
	}
	v.Head = old.Head
	v.DeletedAt = nil // a row that was deleted lives again under the one key it can have
	s.log.EditTx(tx, &v.Head)
	_, err = tx.Exec(`
		UPDATE settings SET updated_at = ?, updated_by = ?, deleted_at = NULL, seq = ?, seen = ?, tz = ? WHERE origin = ? AND id = ?`,
		v.UpdatedAt, v.UpdatedBy, v.Seq, string(v.Seen), v.zone(), v.Origin, v.ID)
	return err
}

// zone is Zone as the file keeps it.
func (s Settings) zone() *string {
	if s.Zone == "" {
		return nil
	}
	return &s.Zone
}

func uid(owner string) sync.UID { return sync.KeyedUID("settings", owner) }

// place is the key of an owner's row. It is derived from the owner and not
// counted, so that two nodes that are apart and both make the row make the same
// one. 52 bits of a hash: exact in every reader of JSON, and far more than there
// are people.
func place(owner string) sync.Ref {
	u := uid(owner)
	return sync.Ref{ID: int64(binary.BigEndian.Uint64(u[:8])>>12) + 1}
}

// Table describes the settings to replication.
func Table(moved Moved) *sync.Table {
	return &sync.Table{
		Name:    "settings",
		Columns: []sync.Column{{Name: "tz", Null: true}},
		Derived: func(owner string) (sync.Ref, sync.UID) { return place(owner), uid(owner) },
		Applied: func(tx *sqlite.Tx, uids []sync.UID) error {
			for _, uid := range uids {
				owner, found, err := sqlite.One(tx, sqlite.Value[string], `SELECT owner FROM settings WHERE uid = ?`, uid[:])
				if err == nil && found {
					err = moved(tx, owner)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}
