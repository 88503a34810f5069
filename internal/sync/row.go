package sync

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tandem/internal/sqlite"
)

// Field is one value of a row, as JSON.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Row is one version of one row as it crosses between the nodes: the head, and
// whatever fields it has, those that this version does not know among them.
type Row struct {
	Table string
	Head
	AliasOf *UID    // of a tombstone that stands for a key which a row no longer has: the row
	Fields  []Field // sorted by name; defaults and nulls left out

	own []any // Fields as arguments of its table's upsert, where they have been read already
}

// With returns fields, sorted by name, with one of them set.
func With(fields []Field, name string, value json.RawMessage) []Field {
	fields = slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return f.Name == name })
	fields = append(fields, Field{name, value})
	slices.SortFunc(fields, byName)
	return fields
}

// MarshalJSON writes the row flat: a field that only the reader knows looks like
// any other.
func (r Row) MarshalJSON() ([]byte, error) {
	return r.appendJSON(make([]byte, 0, 400), r.Fields), nil
}

// appendJSON writes the row with some fields; what is empty is left out.
func (r *Row) appendJSON(b []byte, fields []Field) []byte {
	b = append(b, '{')
	if r.Table != "" {
		b = append(appendText(append(b, `"table":`...), r.Table), ',')
	}
	b = strconv.AppendInt(append(b, `"origin":`...), r.Origin, 10)
	b = strconv.AppendInt(append(b, `,"id":`...), r.ID, 10)
	b = append(hex.AppendEncode(append(b, `,"uid":"`...), r.UID[:]), '"')
	if r.Owner != "" {
		b = appendText(append(b, `,"owner":`...), r.Owner)
	}
	if r.CreatedAt != 0 {
		b = strconv.AppendInt(append(b, `,"created_at":`...), r.CreatedAt, 10)
	}
	b = strconv.AppendInt(append(b, `,"updated_at":`...), r.UpdatedAt, 10)
	b = appendText(append(b, `,"updated_by":`...), r.UpdatedBy)
	if r.DeletedAt != nil {
		b = strconv.AppendInt(append(b, `,"deleted_at":`...), *r.DeletedAt, 10)
	}
	if r.AliasOf != nil {
		b = append(hex.AppendEncode(append(b, `,"alias_of":"`...), r.AliasOf[:]), '"')
	}
	if r.Seen != "" {
		b = append(append(b, `,"seen":`...), r.Seen...)
	}
	return appendMembers(b, fields)
}

// appendMembers ends an object that was begun.
func appendMembers(b []byte, fields []Field) []byte {
	for _, f := range fields {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(appendText(b, f.Name), ':'), f.Value...)
	}
	return append(b, '}')
}

// UnmarshalJSON reads what MarshalJSON wrote, here or in another version.
func (r *Row) UnmarshalJSON(b []byte) error {
	all, err := unsorted(nil, b)
	if err != nil {
		return err
	}
	return r.read(all)
}

// read fills the row from its members. Names are taken as they are written: one
// that differs in case is a field of its own.
func (r *Row) read(all []Field) error {
	*r = Row{Head: Head{Ref: Ref{Origin: -1}, Seen: nothingSeen}, Fields: all[:0]}
	var had uint
	for _, f := range all {
		place := headPlace(f.Name)
		switch {
		case place >= 0 && had&(1<<place) != 0:
			return fmt.Errorf("two members %q", f.Name)
		case place >= 0:
			had |= 1 << place
		}
		if string(f.Value) == "null" {
			continue
		}
		if place < 0 {
			r.Fields = append(r.Fields, Field{f.Name, canonical(f.Value)})
		} else if err := r.set(f.Name, f.Value); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return sortFields(r.Fields)
}

// headPlace numbers the members of a row that are not fields, in the order in which
// they are written; below 0: it is a field.
func headPlace(name string) int {
	switch name {
	case "table":
		return 0
	case "origin":
		return 1
	case "id":
		return 2
	case "uid":
		return 3
	case "owner":
		return 4
	case "created_at":
		return 5
	case "updated_at":
		return 6
	case "updated_by":
		return 7
	case "deleted_at":
		return 8
	case "alias_of":
		return 9
	case "seen":
		return 10
	}
	return -1
}

// set reads a member of the head.
func (r *Row) set(name string, v json.RawMessage) (err error) {
	switch name {
	case "table":
		r.Table, err = text(v)
	case "origin":
		r.Origin, err = integer(v)
	case "id":
		r.ID, err = integer(v)
	case "uid":
		err = r.UID.read(v)
	case "owner":
		r.Owner, err = text(v)
	case "created_at":
		r.CreatedAt, err = integer(v)
	case "updated_at":
		r.UpdatedAt, err = integer(v)
	case "updated_by":
		r.UpdatedBy, err = text(v)
	case "deleted_at":
		var at int64
		at, err = integer(v)
		r.DeletedAt = &at
	case "alias_of":
		r.AliasOf = &UID{}
		err = r.AliasOf.read(v)
	case "seen":
		r.Seen, err = readSeen(v)
	}
	return err
}

// addExtra adds the members of a JSON object that this file keeps.
func (r *Row) addExtra(object string) error {
	all, err := members([]byte(object))
	if err != nil {
		return err
	}
	for _, f := range all {
		// A column that was made since, and holds a value, says what the field is.
		if !slices.ContainsFunc(r.Fields, func(own Field) bool { return own.Name == f.Name }) {
			r.Fields = append(r.Fields, f)
		}
	}
	slices.SortFunc(r.Fields, byName)
	return nil
}

// hash is the third comparison, for two versions of one stamp: SHA-256 of what
// the row says, the same on both nodes whatever their versions. A tombstone says
// only that it is one.
func (r Row) hash() [sha256.Size]byte {
	r.Table, r.Seen = "", ""
	fields := r.Fields
	if r.DeletedAt != nil {
		r.Owner, r.CreatedAt, fields = "", 0, nil
	}
	return sha256.Sum256(r.appendJSON(make([]byte, 0, 400), fields))
}

// newer is the rule: the larger stamp wins, then the larger name of who wrote it,
// and only between two versions that share both the larger hash. It is the only
// place that compares two versions.
func newer(a, b Row) bool {
	if a.UpdatedAt != b.UpdatedAt {
		return a.UpdatedAt > b.UpdatedAt
	}
	if a.UpdatedBy != b.UpdatedBy {
		return a.UpdatedBy > b.UpdatedBy
	}
	if a.says(b) {
		return false
	}
	x, y := a.hash(), b.hash()
	return bytes.Compare(x[:], y[:]) > 0
}

// says reports whether two versions of one row say the same, whoever said it when.
func (r Row) says(other Row) bool {
	if r.Ref != other.Ref || r.UID != other.UID || !alike(r.DeletedAt, other.DeletedAt) || !alike(r.AliasOf, other.AliasOf) {
		return false
	}
	return r.DeletedAt != nil || r.Owner == other.Owner && r.CreatedAt == other.CreatedAt && fieldsEqual(r.Fields, other.Fields)
}

func fieldsEqual(a, b []Field) bool { return slices.EqualFunc(a, b, Field.equal) }

func (f Field) equal(other Field) bool {
	return f.Name == other.Name && bytes.Equal(f.Value, other.Value)
}

func alike[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// LastTime is the end of the year 9999 in Unix ms: what is later has no RFC 3339.
const LastTime = 253402300799999

// Times in Unix ms. Below the last one that has a spelling there are two steps, so that
// an edit of what was written under any clock has a stamp that is later, and crosses.
const (
	firstTime = -62135596800000  // the beginning of the year 1
	lastStamp = LastTime - year  // no version that says it is later is taken, or written
	lastClock = lastStamp - year // no clock counts further; above it there are edits of what came
	year      = int64(366) * day
)

var (
	errTooLate = errors.New("it says that it was written after 30 December 9998, so that no edit could be later: set the clock of the node that wrote it, and change it there once more")
	errNoDate  = errors.New("a time outside of the years 1 to 9999")
)

// clock is this node's, as it may stand in a stamp.
func clock(tx *sqlite.Tx) int64 { return max(1, min(tx.Millis(), lastClock)) }

// check returns what is structurally wrong with a row from outside. What is only
// unwise, such as a schedule that never fires, is stored as it came.
func (r Row) check() error {
	switch {
	case r.Origin != 0 && r.Origin != 1, r.ID < 1 || r.ID > maxID:
		return errors.New("no key")
	case r.UID == UID{}:
		return errors.New("no uid")
	case r.UpdatedAt < 1 || r.UpdatedBy == "" || !plain(r.UpdatedBy):
		return errors.New("no stamp")
	case r.UpdatedAt > lastStamp:
		return errTooLate
	case r.Owner == "" && r.DeletedAt == nil || !plain(r.Owner):
		return errors.New("no owner")
	case r.AliasOf != nil && (r.DeletedAt == nil || *r.AliasOf == r.UID):
		return errors.New("an alias that is a row")
	case r.CreatedAt < 0 || r.CreatedAt > LastTime, r.DeletedAt != nil && (*r.DeletedAt < 0 || *r.DeletedAt > LastTime):
		return errors.New("no time")
	}
	size := 0
	for _, f := range r.Fields {
		size += len(f.Name) + weight(f.Value)
	}
	if size > maxText {
		return fmt.Errorf("%d bytes; at most %d", size, maxText)
	}
	return nil
}

// dated reports whether the times of a version's head have a spelling.
func (r *Row) dated() bool {
	return r.UpdatedAt <= LastTime && r.CreatedAt <= LastTime && (r.DeletedAt == nil || firstTime <= *r.DeletedAt && *r.DeletedAt <= LastTime)
}

// maxID bounds the ids: exact in every reader of JSON, and with room to count on.
const maxID = 1 << 53

// believedID bounds the ids of this node's own that it takes the peer's word for: those
// that a lost file does not remember. Above it there is as much room again, so that no
// row of the peer's can keep this node from making more.
const believedID = 1 << 52

// plain reports whether s may name something: it is short, UTF-8, and without NUL,
// after which SQLite's functions see nothing.
func plain(s string) bool { return len(s) <= 200 && strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

// appendArgs adds the row as arguments of its table's upsert.
func (t *Table) appendArgs(args []any, r *Row) ([]any, error) {
	args = r.Head.AppendArgs(args)
	if r.AliasOf != nil {
		args = append(args, r.AliasOf[:])
	} else {
		args = append(args, nil)
	}
	if r.own != nil {
		return append(args, r.own...), nil
	}
	return t.appendValues(args, r.Fields)
}

// appendValues adds extra and the columns as arguments, of fields that canonical
// returned.
func (t *Table) appendValues(values []any, fields []Field) ([]any, error) {
	extra := len(values)
	values = append(values, nil)
	var unknown []Field
	for i := range t.Columns { // both sorted by name
		c := &t.Columns[i]
		for len(fields) > 0 && fields[0].Name < c.Name {
			unknown, fields = append(unknown, fields[0]), fields[1:]
		}
		var raw json.RawMessage
		if len(fields) > 0 && fields[0].Name == c.Name {
			raw, fields = fields[0].Value, fields[1:]
		}
		v, err := c.decode(raw)
		if err != nil {
			return values, fmt.Errorf("%s: %w", c.Name, err)
		}
		values = append(values, v)
	}
	if unknown = append(unknown, fields...); len(unknown) > 0 {
		values[extra] = string(appendMembers([]byte{'{'}, unknown))
	}
	return values, nil
}
