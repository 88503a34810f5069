// Package lease lets one holder at a time work on a row, and takes the row back
// from a holder that has died. The holder of a claim writes through its Lease
// alone: expiry opens a claim, and the epoch is the fence behind which a holder
// that comes back late finds every statement refused.
package lease

import (
	"errors"
	"time"

	"tandem/internal/sqlite"
)

// ErrLost says that the lease ran out or went to another. Nothing was written;
// returned from a transaction it undoes the rest of it too.
var ErrLost = errors.New("lease: lost")

// Table is a table whose rows are leased. It has the columns
//
//	lease_token BLOB,                        -- NULL: nobody holds the row
//	lease_epoch INTEGER NOT NULL DEFAULT 0,  -- one more with each claim
//	lease_until INTEGER NOT NULL DEFAULT 0   -- ms; from then on the row may be claimed
type Table struct {
	guarded string // UPDATE … SET, to be followed by what is set
	guard   string
	due     string
	claim   string
	orphans string
}

// Lease is the right to change one row, until it expires.
type Lease struct {
	Key   string
	Epoch int64 // of the claim; larger than that of any before it
	token []byte
}

// New describes a table with a text key. Open says in SQL which rows want work,
// whoever holds them, and order which of them come first; ?1 in open is the time
// in ms.
func New(name, key, open, order string) *Table {
	free := `(` + open + `) AND lease_until <= ?1`
	return &Table{
		guarded: `UPDATE ` + name + ` SET `,
		guard:   ` WHERE ` + key + ` = ? AND lease_epoch = ? AND lease_token = ? AND lease_until > ?`,
		due:     `SELECT 1 FROM ` + name + ` WHERE ` + free + ` LIMIT 1`,
		claim: `
			UPDATE ` + name + `
			SET lease_token = ?2, lease_epoch = lease_epoch + 1, lease_until = ?3
			WHERE ` + key + ` IN (SELECT ` + key + ` FROM ` + name + ` WHERE ` + free + ` ORDER BY ` + order + ` LIMIT ?4)
			RETURNING ` + key + `, lease_epoch`,
		orphans: `UPDATE ` + name + ` SET lease_token = NULL, lease_until = 0 WHERE lease_until > 0`,
	}
}

// DueTx reports whether there is anything to claim. It only reads, so that whoever
// polls with it writes nothing while there is nothing to do.
func (t *Table) DueTx(tx *sqlite.Tx) (bool, error) {
	_, found, err := sqlite.One(tx, sqlite.Value[int], t.due, tx.Millis())
	return found, err
}

// ClaimTx takes up to limit rows for ttl. The holder must finish, renew or release
// each before that, or another may claim it. Ttl is at least three times the
// interval of the renewals, or longer than the longest work without one.
func (t *Table) ClaimTx(tx *sqlite.Tx, limit int, ttl time.Duration) ([]Lease, error) {
	token := tx.Random(16)
	scan := func(r sqlite.Row) (Lease, error) {
		l := Lease{token: token}
		return l, r.Scan(&l.Key, &l.Epoch)
	}
	return sqlite.All(tx, scan, t.claim, tx.Millis(), token, until(tx, ttl), limit)
}

// RenewTx holds the row for ttl from now on. It also proves the lease for the
// statements that follow in the same transaction.
func (t *Table) RenewTx(tx *sqlite.Tx, l Lease, ttl time.Duration) error {
	return t.setTx(tx, l, `lease_until = ?`, []any{until(tx, ttl)})
}

// FinishTx sets columns of the row and gives it up.
func (t *Table) FinishTx(tx *sqlite.Tx, l Lease, set string, args ...any) error {
	return t.setTx(tx, l, `lease_token = NULL, lease_until = 0, `+set, args)
}

// SetTx sets columns of the row and keeps it.
func (t *Table) SetTx(tx *sqlite.Tx, l Lease, set string, args ...any) error {
	return t.setTx(tx, l, set, args)
}

// ReleaseTx gives the row up as it is, for another to claim at once: what a holder
// does that is asked to stop.
func (t *Table) ReleaseTx(tx *sqlite.Tx, l Lease) error {
	return t.setTx(tx, l, `lease_token = NULL, lease_until = 0`, nil)
}

// OrphansTx opens every claim and returns how many it opened. It is for the start
// of a process that has the data folder to itself, before it claims anything: the
// holders were in the process before, and need not be waited for.
func (t *Table) OrphansTx(tx *sqlite.Tx) (int64, error) { return tx.Exec(t.orphans) }

func (t *Table) setTx(tx *sqlite.Tx, l Lease, set string, args []any) error {
	args = append(args[:len(args):len(args)], l.Key, l.Epoch, l.token, tx.Millis())
	n, err := tx.Exec(t.guarded+set+t.guard, args...)
	if err == nil && n == 0 {
		return ErrLost
	}
	return err
}

func until(tx *sqlite.Tx, ttl time.Duration) int64 { return tx.Now.Add(ttl).UnixMilli() }
