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

func (s *Store) saveTx(tx *sqlite.Tx, owner string, v *Settings) (err error) {
	if v.UID == (sync.UID{}) {
		if v.Head, err = s.log.AddAtTx(tx, owner, place(owner), uid(owner)); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO settings (`+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(v.Args(), v.Zone)...)
		return err
	}
	if err := s.log.EditTx(tx, &v.Head); err != nil {
		return err
	}
	_, err = tx.Exec(`
		UPDATE settings SET updated_at = ?, updated_by = ?, seq = ?, seen = ?, tz = ? WHERE origin = ? AND id = ?`,
		v.UpdatedAt, v.UpdatedBy, v.Seq, string(v.Seen), v.Zone, v.Origin, v.ID)
	return err
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
