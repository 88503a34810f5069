package sync

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tandem/internal/sqlite"
)

// Kind is how a column crosses the wire.
type Kind int

// The kinds of column.
const (
	Text    Kind = iota // a JSON string
	Integer             // a JSON number without a fraction
	Bool                // true or false; 0 or 1 in the file
	JSON                // any JSON, kept as it came
)

// Column is one of a domain's own.
type Column struct {
	Name    string
	Kind    Kind
	Null    bool   // may be NULL, which is then its default
	Default string // as text; what a row that does not name the column has
}

// Table describes a replicated table. It must have HeadColumns, extra and the
// columns named here; columns of its own that are not named stay on the node.
type Table struct {
	Name    string
	Columns []Column

	// Applied, where set, is called within the transaction that applied a page,
	// with the uids of the rows it changed here, to derive what is node-local.
	Applied func(*sqlite.Tx, []UID) error

	selectAll, byKey, upsert string
}

const maxText = 256 << 10 // bytes of one row on the wire

func (t *Table) prepare() {
	slices.SortFunc(t.Columns, func(a, b Column) int { return strings.Compare(a.Name, b.Name) })
	var names, sets []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	all := HeadColumns + ", extra, " + strings.Join(names, ", ")
	for _, c := range strings.Split(all, ", ")[2:] {
		sets = append(sets, c+" = excluded."+c)
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", strings.Count(all, ",")+1), ", ")
	t.selectAll = `SELECT ` + all + ` FROM ` + t.Name
	t.byKey = t.selectAll + ` WHERE origin = ? AND id = ?`
	// An upsert and not a REPLACE: that would delete the row first, with all that
	// this node alone keeps in it.
	t.upsert = `INSERT INTO ` + t.Name + ` (` + all + `) VALUES (` + marks + `)
		ON CONFLICT (origin, id) DO UPDATE SET ` + strings.Join(sets, ", ")
}

func tableNames(tables []*Table) []string {
	var out []string
	for _, t := range tables {
		out = append(out, t.Name)
	}
	return out
}

// scan reads a row of selectAll. Fields whose value is the default are left out,
// so that a column which one side does not have yet changes no hash.
func (t *Table) scan(r sqlite.Row) (Row, error) {
	row := Row{Table: t.Name}
	var extra *string
	values := make([]any, len(t.Columns))
	dest := append(row.Dest(), &extra)
	for i := range values {
		dest = append(dest, &values[i])
	}
	if err := r.Scan(dest...); err != nil {
		return row, err
	}
	for i, c := range t.Columns {
		raw, err := c.encode(values[i])
		if err != nil {
			return row, fmt.Errorf("%s %s: %s: %w", t.Name, row.Ref, c.Name, err)
		}
		if raw != nil {
			row.Fields = append(row.Fields, Field{c.Name, raw})
		}
	}
	if extra != nil {
		if err := row.addExtra(*extra); err != nil {
			return row, fmt.Errorf("%s %s: extra: %w", t.Name, row.Ref, err)
		}
	}
	return row, nil
}

// encode returns a stored value as JSON, or nil when it is the column's default.
func (c Column) encode(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case int64:
		if !c.Null && strconv.FormatInt(v, 10) == c.defaulted() {
			return nil, nil
		}
		if c.Kind == Bool {
			return json.RawMessage(strconv.FormatBool(v != 0)), nil
		}
		return strconv.AppendInt(nil, v, 10), nil
	case string:
		if !c.Null && v == c.Default {
			return nil, nil
		}
		if c.Kind == JSON {
			return json.RawMessage(v), nil
		}
		return quote(v), nil
	}
	return nil, fmt.Errorf("a column of kind %d holds %T", c.Kind, v)
}

func (c Column) defaulted() string {
	if c.Default == "" && (c.Kind == Integer || c.Kind == Bool) {
		return "0"
	}
	return c.Default
}

// decode returns a JSON value as an argument. A nil value is the default.
func (c Column) decode(raw json.RawMessage) (any, error) {
	if raw == nil || string(raw) == "null" {
		return c.absent(), nil
	}
	switch c.Kind {
	case Integer:
		return strconv.ParseInt(string(raw), 10, 64)
	case Bool:
		b, err := strconv.ParseBool(string(raw))
		return map[bool]int64{true: 1}[b], err
	case JSON:
		return string(raw), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("not a string")
	}
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return nil, fmt.Errorf("not plain text")
	}
	return s, nil
}

func (c Column) absent() any {
	switch {
	case c.Null:
		return nil
	case c.Kind == Integer || c.Kind == Bool:
		n, _ := strconv.ParseInt(c.defaulted(), 10, 64)
		return n
	}
	return c.Default
}

// quote writes s as JSON without the escapes that only HTML needs.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
