package sync

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Batch is a page that has been read, entry by entry.
type Batch struct {
	rows  map[string][]Row // table to its rows, in the order of the page
	facts []Fact
	bad   []*Quarantined
}

// Decode reads a page, off the writer. What cannot be read is for quarantine. The
// batch shares the entries' memory.
func (l *Log) Decode(entries []json.RawMessage) Batch {
	d := decoder{log: l, left: len(entries), batch: Batch{rows: map[string][]Row{}}}
	for _, raw := range entries {
		if err := d.take(raw); err != nil {
			d.batch.bad = append(d.batch.bad, unreadable(raw, err))
		}
		d.left--
	}
	return d.batch
}

// decoder reads the entries of one page. What each of them needs a little of, it
// makes for many at once.
type decoder struct {
	log     *Log
	batch   Batch
	left    int     // entries not yet read
	members []Field // of the entry that is read
	fields  []Field // of rows, one after the other
	values  []any   // likewise
}

func (d *decoder) take(raw json.RawMessage) error {
	all, err := unsorted(d.members[:0], raw)
	if err != nil {
		return err
	}
	d.members = all
	if slices.ContainsFunc(all, isFact) {
		f, err := readFact(raw, all)
		if err == nil {
			d.batch.facts = append(d.batch.facts, f)
		}
		return err
	}
	return d.row(all)
}

func isFact(f Field) bool { return f.Name == "table" && string(f.Value) == `"`+FactsTable+`"` }

// row reads a row. It is kept only where all of it can be read.
func (d *decoder) row(all []Field) error {
	var r Row
	if err := r.read(all); err != nil {
		return err
	}
	t := d.log.tables[r.Table]
	if t == nil {
		return fmt.Errorf("unknown table %.40q", r.Table)
	}
	if err := r.check(); err != nil {
		return err
	}
	fields, err := t.canonical(r.Fields)
	if err != nil {
		return err
	}
	d.fields = roomy(d.fields, len(fields), d.left)
	from := len(d.fields)
	d.fields = append(d.fields, fields...)
	r.Fields = d.fields[from:len(d.fields):len(d.fields)]

	d.values = roomy(d.values, 1+len(t.Columns), d.left)
	from = len(d.values)
	if d.values, err = t.appendValues(d.values, r.Fields); err != nil {
		return err
	}
	r.own = d.values[from:len(d.values):len(d.values)]

	rows := d.batch.rows[t.Name]
	if rows == nil {
		rows = make([]Row, 0, d.left)
	}
	d.batch.rows[t.Name] = append(rows, r)
	return nil
}

// roomy returns a slice with room for n more: the same one, or an empty one with room
// for as many of the entries that are left as go into a piece of memory.
func roomy[T any](s []T, n, left int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return make([]T, 0, max(n, n*min(left, 256)))
}

// readFact reads a fact. It has no members but those of this version: what a newer one
// adds goes into the body, and a fact that says more waits for the upgrade, since
// without it it would be another fact.
func readFact(raw json.RawMessage, all []Field) (f Fact, err error) {
	if err := sortFields(all); err != nil {
		return f, err
	}
	for _, m := range all {
		if !slices.Contains(factMembers, m.Name) {
			return f, fmt.Errorf("unknown member %.40q", m.Name)
		}
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, errors.New("not a fact")
	}
	f.Body = canonical(f.Body)
	return f, f.check()
}

var factMembers = strings.Fields(`table uid kind subject owner node at body`)
