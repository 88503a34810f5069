package sync

import (
	"errors"

	"tandem/internal/sqlite"
)

// errKeyTaken sets a row aside until it comes under another key: the node that gives
// out keys of that origin will move it.
var errKeyTaken = errors.New("its key belongs to another row here")

// place stores one row under its key, whoever else has that key or this uid here.
func (a *applying) place(t *Table, in Row) error {
	mine, known, err := sqlite.One(a.tx, t.scanLenient, t.byUID, in.UID[:])
	if err != nil {
		return err
	}
	if known && mine.Ref != in.Ref {
		return a.oneKey(t, in, mine)
	}
	if known {
		if won, err := a.meet(t, &in, &mine); err != nil || !won {
			return err
		}
	} else if err := a.free(t, in); err != nil {
		return err
	}
	return a.write(t, t.upsert(1), []*Row{&in})
}

// free makes the key of a row that comes free for it. The node that gives out the
// keys of that origin moves what it holds to a fresh one; the other node keeps its
// own, and waits for the row to come under the fresh key.
func (a *applying) free(t *Table, in Row) error {
	holder, taken, err := sqlite.One(a.tx, scanKeyed, `SELECT origin, id, uid FROM `+t.Name+` WHERE origin = ? AND id = ?`, in.Origin, in.ID)
	switch {
	case err != nil || !taken || holder.uid == in.UID:
		return err
	case in.Origin != a.origin, t.Derived != nil, in.AliasOf != nil && *in.AliasOf == holder.uid:
		return errKeyTaken // in the last case the row itself comes under its other key, and makes way
	}
	id, err := a.nextID(t.Name)
	if err != nil {
		return err
	}
	a.moved(t, holder.uid)
	_, err = a.tx.Exec(`UPDATE `+t.Name+` SET id = ?, seq = ? WHERE uid = ?`, id, a.seqTx(a.tx), holder.uid[:])
	return err
}

func (a *applying) moved(t *Table, uid UID) {
	a.changed[t.Name] = append(a.changed[t.Name], uid)
	a.rekeyed = true
}

// oneKey settles a row that has one key here and came under another: the same
// request was made at both nodes, or a lost key was given out again. The smaller key
// stays, with the version that wins; the other one stays as a tombstone that leads
// to it.
func (a *applying) oneKey(t *Table, in, mine Row) error {
	keep, drop := in.Ref, mine.Ref
	if drop.before(keep) {
		keep, drop = drop, keep
	}
	won, err := a.meet(t, &in, &mine)
	if err != nil {
		return err
	}
	stays := mine
	if won {
		stays = in
	}
	stays.Ref = keep
	if keep != mine.Ref {
		err := a.free(t, stays)
		switch {
		case errors.Is(err, errKeyTaken) && !won:
			return nil // a call from before the row was moved off that key: it says nothing new
		case errors.Is(err, errKeyTaken):
			in.Ref = mine.Ref // who wrote it will give it another key, or has lost it: it has one here
			return a.write(t, t.upsert(1), []*Row{&in})
		case err != nil:
			return err
		}
	}
	// Of a version that stays only the key changes: it may hold what cannot be read.
	if _, err := a.tx.Exec(`UPDATE `+t.Name+` SET origin = ?, id = ?, seq = ?, seen = ? WHERE uid = ?`,
		keep.Origin, keep.ID, a.seqTx(a.tx), string(mine.Seen.merged(in.Seen)), stays.UID[:]); err != nil {
		return err
	}
	if won {
		err = a.write(t, t.upsert(1), []*Row{&stays})
	} else {
		err = a.took(t, &stays)
	}
	if err != nil {
		return err
	}
	a.rekeyed = true
	if err := a.place(t, alias(t, drop, stays)); !errors.Is(err, errKeyTaken) {
		return err
	}
	return nil // the key has gone to another row: there is nothing to lead from
}

// alias is the tombstone that leads from a key to the row that no longer has it,
// the same on both nodes.
func alias(t *Table, from Ref, to Row) Row {
	at := to.UpdatedAt
	return Row{Table: t.Name, AliasOf: &to.UID, Head: Head{
		Ref: from, UID: KeyedUID("alias", t.Name, from.String()), Owner: to.Owner, CreatedAt: to.CreatedAt,
		UpdatedAt: at, UpdatedBy: to.UpdatedBy, DeletedAt: &at, Seen: nothingSeen,
	}}
}

// before orders keys.
func (r Ref) before(other Ref) bool {
	return r.Origin < other.Origin || r.Origin == other.Origin && r.ID < other.ID
}

// AliasTx is where a key leads that a row had and has no longer.
func (l *Log) AliasTx(tx *sqlite.Tx, table string, from Ref) (Ref, bool, error) {
	to, found, err := sqlite.One(tx, scanKeyed, `
		SELECT r.origin, r.id, r.uid FROM `+table+` a JOIN `+table+` r ON r.uid = a.alias_of
		WHERE a.origin = ? AND a.id = ?`, from.Origin, from.ID)
	return to.Ref, found, err
}
