package sync

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tandem/internal/sqlite"
)

// rowReader reads the rows of one statement of selectAll. What it needs for a row it
// makes once, since a page has thousands.
type rowReader struct {
	table  *Table
	passes bool // each row is done with when the next one is read: its fields share memory with that one's

	values []any // one for each column
	dest   []any // where they are
	fields []Field
	text   []byte // what the fields are spelled in
}

func (t *Table) reader(passes bool) *rowReader {
	n := strings.Count(t.columns, ",") + 1
	r := &rowReader{table: t, passes: passes, values: make([]any, n), dest: make([]any, n)}
	for i := range r.values {
		r.dest[i] = &r.values[i]
	}
	return r
}

// scan reads one row of selectAll; with an error, all of it that can be read.
func (t *Table) scan(r sqlite.Row) (Row, error) { return t.reader(false).scan(r) }

// scan reads a row; with an error, all of it that can be read. Fields whose value is
// the default are left out, so that a column which one side does not have yet changes
// no hash.
func (r *rowReader) scan(from sqlite.Row) (Row, error) {
	row := Row{Table: r.table.Name}
	if err := from.Scan(r.dest...); err != nil {
		return row, err
	}
	if !r.passes {
		r.fields, r.text = make([]Field, 0, len(r.table.Columns)), nil
	}
	if err := r.head(&row); err != nil {
		return row, fmt.Errorf("%s: %w", r.table.Name, err)
	}
	broken := r.own(&row)
	if extra, ok := r.values[headColumns+1].(string); ok {
		if err := row.addExtra(extra); err != nil {
			broken = fmt.Errorf("%s %s: extra: %w", r.table.Name, row.Ref, err)
		}
	}
	return row, broken
}

// head reads HeadColumns and alias_of, of which SQLite has checked the types.
func (r *rowReader) head(row *Row) error {
	v := r.values
	h := &row.Head
	var whole [7]bool
	h.Origin, whole[0] = v[0].(int64)
	h.ID, whole[1] = v[1].(int64)
	h.Owner, whole[2] = v[3].(string)
	h.CreatedAt, whole[3] = v[4].(int64)
	h.UpdatedAt, whole[4] = v[5].(int64)
	h.UpdatedBy, whole[5] = v[6].(string)
	h.Seq, whole[6] = v[8].(int64)
	if at, ok := v[7].(int64); ok {
		h.DeletedAt = &at
	}
	if alias, ok := v[headColumns].([]byte); ok && len(alias) == len(UID{}) {
		row.AliasOf = (*UID)(alias)
	}
	seen, _ := v[9].(string)
	if h.Seen = Seen(seen); !h.Seen.single() && !h.Seen.sound() {
		h.Seen = nothingSeen // edited by hand: it contains what nobody can tell
	}
	if err := h.UID.Scan(v[2]); err != nil {
		return err
	}
	if whole != [7]bool{true, true, true, true, true, true, true} {
		return fmt.Errorf("%s: a column of the head has another type than it should", h.Ref)
	}
	return nil
}

// own reads the table's own columns.
func (r *rowReader) own(row *Row) (broken error) {
	fields, text := r.fields[:0], r.text[:0]
	for i, v := range r.values[headColumns+2:] {
		c := &r.table.Columns[i]
		from := len(text)
		var err error
		if text, err = c.append(text, v); err != nil {
			broken = fmt.Errorf("%s %s: %s: %w", r.table.Name, row.Ref, c.Name, err)
		} else if len(text) > from {
			fields = append(fields, Field{c.Name, text[from:len(text):len(text)]})
		}
	}
	r.fields, r.text, row.Fields = fields, text, fields
	return broken
}

// append writes a stored value as JSON at the end of b: nothing, where it is the
// column's default.
func (c *Column) append(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return b, nil
	case int64:
		switch {
		case !c.Null && v == c.number:
			return b, nil
		case c.Kind == Bool:
			return strconv.AppendBool(b, v != 0), nil
		}
		return strconv.AppendInt(b, v, 10), nil
	case string:
		if !c.Null && v == c.Default {
			return b, nil
		}
		if c.Kind == JSON {
			value, err := canonicalText(v)
			return append(b, value...), err
		}
		if strings.IndexByte(v, 0) >= 0 || !utf8.ValidString(v) {
			return b, errNotPlain // the peer would read something else, or nothing
		}
		return appendText(b, v), nil
	}
	return b, fmt.Errorf("a column of kind %d holds %T", c.Kind, v)
}

// lenient is scan for a row of this file that may be one that cannot be sent: what of
// it cannot be read is left out, and any sound version is newer or not by its stamp.
func (r *rowReader) lenient(from sqlite.Row) (Row, error) {
	row, err := r.scan(from)
	if row.UID != (UID{}) {
		err = nil
	}
	return row, err
}

func (t *Table) scanLenient(r sqlite.Row) (Row, error) { return t.reader(false).lenient(r) }

// canonicalText is canonical for text that nobody has read yet.
func canonicalText(s string) (json.RawMessage, error) {
	b := []byte(s)
	if end := valueEnd(b, space(b, 0), 0); end < 0 || space(b, end) != len(b) || !utf8.Valid(b) {
		return nil, errNotJSON
	}
	return canonical(b), nil
}
