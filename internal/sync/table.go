package sync

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tandem/internal/sqlite"
)

// Kind is how a column crosses the wire.
type Kind int

// The kinds of column.
const (
	Text    Kind = iota // a JSON string
	Integer             // a JSON number without a fraction
	Time                // an Integer: Unix ms within the years 1 to 9999
	Bool                // true or false; 0 or 1 in the file
	JSON                // any JSON, kept as it came
)

// Column is one of a domain's own.
type Column struct {
	Name    string
	Kind    Kind
	Null    bool   // may be NULL, which is then its default
	Default string // as text; what a row that does not name the column has

	number int64 // Default of an Integer or a Bool
}

// Table describes a replicated table. It must have HeadColumns, extra and the
// columns named here; columns of its own that are not named stay on the node.
type Table struct {
	Name    string
	Columns []Column

	// Derived, where set, is the key and uid that follow from a row's owner, who has
	// one row; the table does not count.
	Derived func(owner string) (Ref, UID)

	// BroughtBack, where set, alters the fields of a version that lost and is made the
	// newest one again, at a time in Unix ms.
	BroughtBack func(now int64, fields []Field) []Field

	// Applied, where set, is called within the transaction that applied a page,
	// with the uids of the rows it changed here, to derive what is node-local.
	Applied func(*sqlite.Tx, []UID) error

	columns                 string // those of selectAll
	selectAll, byKey, byUID string
	updates                 string // what an upsert sets
}

const maxText = 256 << 10 // bytes of one row on the wire

func (t *Table) prepare() {
	slices.SortFunc(t.Columns, func(a, b Column) int { return strings.Compare(a.Name, b.Name) })
	var names, sets []string
	for i := range t.Columns {
		c := &t.Columns[i]
		c.number, _ = strconv.ParseInt(c.Default, 10, 64) // of other kinds nobody asks for it
		names = append(names, c.Name)
	}
	t.columns = HeadColumns + ", alias_of, extra, " + strings.Join(names, ", ")
	for _, c := range strings.Split(t.columns, ", ")[2:] {
		sets = append(sets, c+" = excluded."+c)
	}
	t.updates = strings.Join(sets, ", ")
	t.selectAll = `SELECT ` + t.columns + ` FROM ` + t.Name
	t.byKey = t.selectAll + ` WHERE origin = ? AND id = ?`
	t.byUID = t.selectAll + ` WHERE uid = ?`
}

// insert is the statement that stores n rows of which nothing is here.
func (t *Table) insert(n int) string {
	return `INSERT INTO ` + t.Name + ` (` + t.columns + `) VALUES ` + repeated(`(`+repeated(`?`, strings.Count(t.columns, ",")+1)+`)`, n)
}

// upsert is the statement that stores n rows by their keys. An upsert and not a
// REPLACE: that would delete the row first, with all that this node alone keeps in it.
func (t *Table) upsert(n int) string {
	return t.insert(n) + ` ON CONFLICT (origin, id) DO UPDATE SET ` + t.updates
}

// repeated is s so often, with commas between.
func repeated(s string, n int) string { return strings.TrimSuffix(strings.Repeat(s+", ", n), ", ") }

func tableNames(tables []*Table) []string {
	var out []string
	for _, t := range tables {
		out = append(out, t.Name)
	}
	return out
}

// canonical checks the fields that the table knows and spells them as scan would,
// defaults left out: a version that came must not differ from the same one here.
func (t *Table) canonical(fields []Field) ([]Field, error) {
	out := fields[:0]
	columns := t.Columns
	for _, f := range fields { // both sorted by name
		for len(columns) > 0 && columns[0].Name < f.Name {
			columns = columns[1:]
		}
		if len(columns) > 0 && columns[0].Name == f.Name {
			var err error
			if f.Value, err = columns[0].canonical(f.Value); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		if f.Value != nil {
			out = append(out, f)
		}
	}
	return out, nil
}

// canonical spells a value of the column as scan would; nil is its default.
func (c *Column) canonical(v json.RawMessage) (json.RawMessage, error) {
	switch {
	case c.Kind == Text && v[0] == '"' && bytes.IndexByte(v, '\\') < 0:
		if !c.Null && string(v[1:len(v)-1]) == c.Default {
			return nil, nil
		}
		return v, nil
	case c.Kind == Integer || c.Kind == Time:
		n, err := c.integer(v)
		switch {
		case err != nil:
			return nil, err
		case !c.Null && n == c.number:
			return nil, nil
		case n != 0:
			return v, nil
		}
		return json.RawMessage("0"), nil // and not -0
	}
	value, err := c.decode(v)
	if err != nil {
		return nil, err
	}
	b, err := c.append(nil, value)
	return b, err
}

// decode returns a JSON value as an argument. A nil value is the default.
func (c *Column) decode(raw json.RawMessage) (any, error) {
	if raw == nil || string(raw) == "null" {
		return c.absent(), nil
	}
	switch c.Kind {
	case Integer, Time:
		return c.integer(raw)
	case Bool:
		switch string(raw) {
		case "true":
			return int64(1), nil
		case "false":
			return int64(0), nil
		}
		return nil, errors.New("neither true nor false")
	case JSON:
		return string(raw), nil
	}
	s, err := text(raw)
	if err == nil && strings.IndexByte(s, 0) >= 0 {
		err = errNotPlain
	}
	return s, err
}

func (c *Column) integer(raw json.RawMessage) (int64, error) {
	n, err := integer(raw)
	if err == nil && c.Kind == Time && (n < firstTime || n > LastTime) {
		err = errNoDate
	}
	return n, err
}

func (c *Column) absent() any {
	switch {
	case c.Null:
		return nil
	case c.Kind == Integer || c.Kind == Time || c.Kind == Bool:
		return c.number
	}
	return c.Default
}
