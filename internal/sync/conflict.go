package sync

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// KindConflict is the fact of a version that lost against one that had not seen it.
const KindConflict = "conflict"

// ErrNoConflict is returned for a conflict that is not the owner's, or not kept any more.
var ErrNoConflict = fault.New(fault.NotFound, "conflict_not_found", "There is no such conflict.")

// concurrent reports whether neither of two versions contains the other. Each says
// in seen which versions it contains; a larger stamp alone does not say that who
// made it had seen the smaller one.
func concurrent(a, b *Row) bool {
	if a.AliasOf != nil || b.AliasOf != nil || a.UpdatedAt == b.UpdatedAt && a.Seen == b.Seen {
		return false
	}
	x, y := a.Seen.entries(), b.Seen.entries()
	byA, byB := writerOf(a, x), writerOf(b, y)
	return byA != "" && byB != "" && a.UpdatedAt > y[byA] && b.UpdatedAt > x[byB]
}

// writerOf is who wrote a version: the entry of its node that has its stamp.
func writerOf(r *Row, seen map[string]int64) string {
	who := ""
	for w, at := range seen {
		if at == r.UpdatedAt && strings.HasPrefix(w, r.UpdatedBy+"/") && w > who {
			who = w
		}
	}
	return who
}

// lost is the body of a conflict: the version that lost, and of what.
type lost struct {
	Table string `json:"table"`
	Lost  Row    `json:"lost"`
}

// conflictTx tells of a version that lost, once on whichever node it is seen. One
// that says what the other says has lost nothing.
func (l *Log) conflictTx(tx *sqlite.Tx, stays, goes *Row) error {
	if (stays.DeletedAt != nil) == (goes.DeletedAt != nil) && (goes.DeletedAt != nil || fieldsEqual(stays.Fields, goes.Fields)) {
		return nil
	}
	version := *goes
	version.Seen = ""
	if version.DeletedAt != nil {
		version.Fields = nil // what the delete removed came with it to one node alone, or not any more
	}
	body, err := json.Marshal(lost{goes.Table, version})
	if err != nil {
		return fmt.Errorf("conflict of %s %s: %w", goes.Table, goes.Ref, err)
	}
	_, err = l.addFact(tx, Fact{
		UID:  KeyedUID(KindConflict, goes.UID.String(), fmt.Sprint(goes.UpdatedAt), goes.UpdatedBy),
		Kind: KindConflict, Subject: goes.UID.String(), Owner: stays.Owner, Node: l.node, At: clock(tx), Body: canonical(body),
	})
	return err
}

// Version is what people see of a version.
type Version struct {
	UpdatedAt int64
	UpdatedBy string
	DeletedAt *int64
	Fields    map[string]json.RawMessage // those that are not their defaults
}

func (r *Row) version() Version {
	v := Version{UpdatedAt: r.UpdatedAt, UpdatedBy: r.UpdatedBy, DeletedAt: r.DeletedAt, Fields: map[string]json.RawMessage{}}
	for _, f := range r.Fields {
		v.Fields[f.Name] = f.Value
	}
	return v
}

// Conflict is a version that lost, beside the one that is there now.
type Conflict struct {
	UID     UID
	Table   string
	Ref     Ref
	At      int64
	Lost    Version
	Stands  Version
	Differs []string // the fields in which they differ, by name; or deleted_at alone
}

// ConflictPlace is where a conflict stands in the list, newest first.
type ConflictPlace struct {
	At  int64
	UID UID
}

// Conflicts returns the owner's conflicts, newest first, at most limit after a
// place; nil is the start.
func (l *Log) Conflicts(ctx context.Context, owner string, after *ConflictPlace, limit int) ([]Conflict, error) {
	if after == nil {
		after = &ConflictPlace{At: LastTime + 1}
	}
	return sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) ([]Conflict, error) {
		facts, err := sqlite.All(tx, scanFact, `
			SELECT `+factColumns+` FROM facts
			WHERE kind = 'conflict' AND owner = ? AND at >= ? AND (at, uid) < (?, ?)
			ORDER BY at DESC, uid DESC LIMIT ?`, owner, factsFrom(tx.Millis()), after.At, after.UID[:], limit)
		if err != nil {
			return nil, err
		}
		var all []Conflict
		for _, f := range facts {
			c, _, err := l.conflict(tx, f)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
		return all, nil
	})
}

// conflict reads a fact of one, and the row as it is now. Where that is not here the
// version that stands is empty.
func (l *Log) conflict(tx *sqlite.Tx, f Fact) (Conflict, lost, error) {
	c := Conflict{UID: f.UID, At: f.At}
	var body lost
	if err := json.Unmarshal(f.Body, &body); err != nil || !body.Lost.dated() {
		return c, lost{}, nil // told by something that is not this program: there is nothing to show
	}
	c.Table, c.Ref, c.Lost = body.Table, body.Lost.Ref, body.Lost.version()
	t := l.tables[body.Table]
	if t == nil {
		return c, body, nil
	}
	if _, err := t.canonical(slices.Clone(body.Lost.Fields)); err != nil {
		return Conflict{UID: f.UID, At: f.At}, lost{}, nil // likewise
	}
	now, found, err := sqlite.One(tx, t.scanLenient, t.byUID, body.Lost.UID[:])
	if err != nil || !found || now.Owner != f.Owner {
		return c, body, err
	}
	c.Ref, c.Stands = now.Ref, now.version()
	c.Differs = c.Lost.differs(c.Stands)
	return c, body, nil
}

// differs returns the names of the fields in which two versions differ, sorted; of a
// delete, only that it is one.
func (v Version) differs(other Version) []string {
	if (v.DeletedAt == nil) != (other.DeletedAt == nil) {
		return []string{"deleted_at"}
	}
	both := maps.Clone(v.Fields)
	maps.Copy(both, other.Fields)
	names := slices.DeleteFunc(slices.Collect(maps.Keys(both)), func(name string) bool {
		return bytes.Equal(v.Fields[name], other.Fields[name])
	})
	slices.Sort(names)
	return names
}

// BringBackTx makes the version that lost the newest one, as an edit of this node,
// and returns the row's table and key. Where the row is as that version was, there is
// nothing to edit.
func (l *Log) BringBackTx(tx *sqlite.Tx, owner string, uid UID) (string, Ref, error) {
	f, found, err := sqlite.One(tx, scanFact, `SELECT `+factColumns+` FROM facts WHERE uid = ? AND kind = 'conflict' AND owner = ?`, uid[:], owner)
	if err != nil {
		return "", Ref{}, err
	}
	if !found {
		return "", Ref{}, ErrNoConflict
	}
	_, body, err := l.conflict(tx, f)
	t := l.tables[body.Table]
	if err != nil || t == nil {
		return "", Ref{}, cmp.Or(err, error(ErrNoConflict))
	}
	now, found, err := sqlite.One(tx, t.scanLenient, t.byUID, body.Lost.UID[:])
	if err != nil || !found || now.Owner != owner {
		return "", Ref{}, cmp.Or(err, error(ErrNoConflict))
	}
	next := now
	if next.DeletedAt = body.Lost.DeletedAt; next.DeletedAt != nil {
		at := clock(tx)
		next.DeletedAt = &at
	} else if next.Fields, err = t.canonical(body.Lost.Fields); err != nil {
		return "", Ref{}, ErrNoConflict.Because(err)
	} else if err := next.check(); err != nil { // it lost here and was never sent
		return "", Ref{}, ErrNoConflict.Because(err)
	}
	as := now.Fields
	if t.BroughtBack != nil {
		as = t.BroughtBack(clock(tx), as)
		next.Fields = t.BroughtBack(clock(tx), next.Fields)
	}
	if (now.DeletedAt == nil) == (next.DeletedAt == nil) && (next.DeletedAt != nil || fieldsEqual(as, next.Fields)) {
		return t.Name, next.Ref, nil
	}
	return t.Name, next.Ref, l.rewriteTx(tx, t, &next)
}

// rewriteTx stores a new version of this node's of a row that replication itself
// edits, and lets its table derive.
func (l *Log) rewriteTx(tx *sqlite.Tx, t *Table, next *Row) error {
	l.EditTx(tx, &next.Head)
	args, err := t.appendArgs(nil, next)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(t.upsert(1), args...); err != nil {
		return fmt.Errorf("%s %s: %w", t.Name, next.Ref, err)
	}
	if t.Applied == nil {
		return nil
	}
	return t.Applied(tx, []UID{next.UID})
}
