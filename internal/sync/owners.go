package sync

import (
	"context"
	"encoding/json"

	"tandem/internal/sqlite"
)

// HasRows reports whether there is a row or a fact of anybody here, deleted or not.
func (l *Log) HasRows(ctx context.Context) (bool, error) {
	return sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (bool, error) {
		names := []string{"facts"}
		for _, t := range l.order {
			names = append(names, t.Name)
		}
		for _, name := range names {
			if _, found, err := sqlite.One(tx, sqlite.Value[int], `SELECT 1 FROM `+name+` LIMIT 1`); err != nil || found {
				return found, err
			}
		}
		return false, nil
	})
}

// Orphans counts, by table, the rows that belong to none of some owners, those that were
// deleted apart. No foreign key can say so, since accounts are in a file of their own.
func (l *Log) Orphans(ctx context.Context, owners []string) (map[string]int, error) {
	list, err := json.Marshal(owners)
	if err != nil {
		return nil, err
	}
	return sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (map[string]int, error) {
		all := map[string]int{}
		for _, t := range l.order {
			n, _, err := sqlite.One(tx, sqlite.Value[int], `
				SELECT count(*)
				FROM `+t.Name+`
				WHERE deleted_at IS NULL AND owner NOT IN (SELECT value FROM json_each(?))`, string(list))
			if err != nil {
				return nil, err
			}
			if n > 0 {
				all[t.Name] = n
			}
		}
		return all, nil
	})
}

// MoveOwnersTx gives all rows and facts of some owners to others: the accounts of a
// node that was alone become those of the node it joins. It belongs before the first
// page that the peer reads, and is one commit with all else that moves, however long it
// takes (20,000 rows: 0.7 s): half of what a person has under each of two names would be
// worse than a wait. Stamps stay.
func (l *Log) MoveOwnersTx(tx *sqlite.Tx, to map[string]string) error {
	for old, owner := range to {
		if old == owner {
			continue
		}
		for _, t := range l.order {
			if err := l.moveOwnerTx(tx, t, old, owner); err != nil {
				return err
			}
		}
		facts, err := sqlite.All(tx, sqlite.Value[UID], `SELECT uid FROM facts WHERE owner = ?`, old)
		if err != nil {
			return err
		}
		for _, uid := range facts {
			if _, err := tx.Exec(`UPDATE facts SET owner = ?, seq = ? WHERE uid = ?`, owner, l.seqTx(tx), uid[:]); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(`UPDATE sync_quarantine SET owner = ? WHERE owner = ?`, owner, old); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) moveOwnerTx(tx *sqlite.Tx, t *Table, old, owner string) error {
	rows, err := sqlite.All(tx, t.scanLenient, t.selectAll+` WHERE owner = ?`, old)
	if err != nil {
		return err
	}
	var moved []UID
	for _, r := range rows {
		if t.Derived != nil {
			if err := l.rederiveTx(tx, t, r, owner); err != nil {
				return err
			}
			_, uid := t.Derived(owner)
			moved = append(moved, uid)
			continue
		}
		if _, err := tx.Exec(`UPDATE `+t.Name+` SET owner = ?, seq = ? WHERE uid = ?`, owner, l.seqTx(tx), r.UID[:]); err != nil {
			return err
		}
		moved = append(moved, r.UID)
	}
	if len(moved) == 0 || t.Applied == nil {
		return nil
	}
	return t.Applied(tx, moved)
}

// rederiveTx gives a row whose key follows from its owner the key of another owner.
// Where that one has a row already the larger stamp stays.
func (l *Log) rederiveTx(tx *sqlite.Tx, t *Table, r Row, owner string) error {
	if _, err := tx.Exec(`DELETE FROM `+t.Name+` WHERE uid = ?`, r.UID[:]); err != nil {
		return err
	}
	r.Ref, r.UID = t.Derived(owner)
	r.Owner = owner
	there, found, err := sqlite.One(tx, t.scanLenient, t.byUID, r.UID[:])
	if err != nil || found && !newer(r, there) {
		return err
	}
	r.Seq = l.seqTx(tx)
	return t.overwriteTx(tx, &r)
}

// learnTx moves fields that a newer version made into the columns that this version
// has for them by now. No stamp and no seq changes: to the peer it is no edit.
func (l *Log) learnTx(tx *sqlite.Tx) error {
	for _, t := range l.order {
		rows, err := sqlite.All(tx, func(r sqlite.Row) (*Row, error) {
			row, err := t.scan(r)
			if err != nil && row.UID != (UID{}) {
				return nil, nil // what of it cannot be read would be lost
			}
			return &row, err
		}, t.selectAll+` WHERE extra IS NOT NULL`)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row == nil {
				continue
			}
			fields, err := t.canonical(row.Fields)
			if err != nil {
				continue // not what the column holds: it stays among the fields that are only kept
			}
			row.Fields = fields
			if err := t.overwriteTx(tx, row); err != nil {
				return err
			}
		}
	}
	return nil
}
