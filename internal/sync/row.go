package sync

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	Fields []Field // sorted by name; defaults and nulls left out
}

// wireHead is Head's form in JSON.
type wireHead struct {
	Table     string `json:"table,omitempty"`
	Origin    int64  `json:"origin"`
	ID        int64  `json:"id"`
	UID       UID    `json:"uid"`
	Owner     string `json:"owner,omitempty"`
	CreatedAt int64  `json:"created_at,omitempty"`
	UpdatedAt int64  `json:"updated_at"`
	UpdatedBy string `json:"updated_by"`
	DeletedAt *int64 `json:"deleted_at,omitempty"`
	Seen      Seen   `json:"seen,omitempty"`
}

// reserved are the names that a field cannot have.
var reserved = map[string]bool{
	"table": true, "origin": true, "id": true, "uid": true, "owner": true, "created_at": true,
	"updated_at": true, "updated_by": true, "deleted_at": true, "seen": true,
}

// MarshalJSON writes the row flat: a field that only the reader knows looks like
// any other.
func (r Row) MarshalJSON() ([]byte, error) {
	h := wireHead{r.Table, r.Origin, r.ID, r.UID, r.Owner, r.CreatedAt, r.UpdatedAt, r.UpdatedBy, r.DeletedAt, r.Seen}
	return appendFields(h, r.Fields)
}

func appendFields(head any, fields []Field) ([]byte, error) {
	b, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	b = b[:len(b)-1]
	for _, f := range fields {
		b = append(append(append(append(b, ','), quote(f.Name)...), ':'), f.Value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote, here or in another version.
func (r *Row) UnmarshalJSON(b []byte) error {
	var h wireHead
	if err := json.Unmarshal(b, &h); err != nil {
		return err
	}
	r.Table = h.Table
	r.Head = Head{Ref: Ref{h.Origin, h.ID}, UID: h.UID, Owner: h.Owner, CreatedAt: h.CreatedAt,
		UpdatedAt: h.UpdatedAt, UpdatedBy: h.UpdatedBy, DeletedAt: h.DeletedAt, Seen: h.Seen}
	if r.Seen == "" {
		r.Seen = nothingSeen
	}
	r.Fields = nil
	return r.addExtra(string(b))
}

// addExtra adds the members of a JSON object that are no part of the head.
func (r *Row) addExtra(object string) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &all); err != nil {
		return err
	}
	for name, v := range all {
		if !reserved[name] && string(v) != "null" {
			r.Fields = append(r.Fields, Field{name, compact(v)})
		}
	}
	slices.SortFunc(r.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func compact(v json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return v
	}
	return b.Bytes()
}

// hash is the third comparison, for two versions of one stamp: SHA-256 of what
// the row says, the same on both nodes whatever their versions. A tombstone says
// only that it is one.
func (r Row) hash() [sha256.Size]byte {
	h := wireHead{Origin: r.Origin, ID: r.ID, UID: r.UID, UpdatedAt: r.UpdatedAt, UpdatedBy: r.UpdatedBy, DeletedAt: r.DeletedAt}
	fields := r.Fields
	if r.DeletedAt == nil {
		h.Owner, h.CreatedAt = r.Owner, r.CreatedAt
	} else {
		fields = nil
	}
	b, err := appendFields(h, fields)
	if err != nil {
		panic("sync: a head did not marshal: " + err.Error())
	}
	return sha256.Sum256(b)
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
	x, y := a.hash(), b.hash()
	return bytes.Compare(x[:], y[:]) > 0
}

// check returns what is structurally wrong with a row from outside. What is only
// unwise, such as a schedule that never fires, is stored as it came.
func (r Row) check() error {
	switch {
	case r.Origin != 0 && r.Origin != 1, r.ID < 1:
		return errors.New("no key")
	case r.UID == UID{}:
		return errors.New("no uid")
	case r.UpdatedAt < 1 || r.UpdatedBy == "":
		return errors.New("no stamp")
	case r.Owner == "" && r.DeletedAt == nil:
		return errors.New("no owner")
	}
	size := 0
	for _, f := range r.Fields {
		size += len(f.Name) + len(f.Value)
	}
	if size > maxText {
		return fmt.Errorf("%d bytes; at most %d", size, maxText)
	}
	return nil
}

// args returns the row as arguments of its table's upsert.
func (t *Table) args(r Row) ([]any, error) {
	values := make(map[string]json.RawMessage, len(r.Fields))
	for _, f := range r.Fields {
		values[f.Name] = f.Value
	}
	own := make([]any, 0, len(t.Columns))
	for _, c := range t.Columns {
		v, err := c.decode(values[c.Name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		own = append(own, v)
		delete(values, c.Name)
	}
	var extra any
	if len(values) > 0 {
		b, err := json.Marshal(values) // sorted
		if err != nil {
			return nil, err
		}
		extra = string(b)
	}
	return append(append(r.Head.Args(), extra), own...), nil
}
