// Package todos keeps what people mean to do. What the assistant is asked to do
// is a task, and is kept elsewhere.
package todos

import (
	"strings"
	"time"
	"unicode/utf8"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

// What one todo may hold, in bytes.
const (
	MaxContent = 64 << 10
	MaxNotes   = 128 << 10
)

// ErrNotFound is returned for a todo that is not there, was deleted, or is
// somebody else's: which of these is nobody's business.
var ErrNotFound = fault.New(fault.NotFound, "todo_not_found", "There is no such todo.")

// errInvalid is what each refusal of a todo's content starts from.
var errInvalid = fault.New(fault.Invalid, "todo_invalid", "The todo was not saved: something in it is not right.")

// Todo is one thing to do.
type Todo struct {
	sync.Head
	Content string
	DueAt   *time.Time // an instant, or
	DueOn   *string    // a day, YYYY-MM-DD, which is the same day in every zone
	Zone    *string    // where DueAt was meant, IANA
	Done    bool
	Notes   string
}

// New is what a todo is made of. Times are as people write them: DueAt is RFC 3339
// with an offset, or a local time that is read in Zone, or in the owner's own.
type New struct {
	Content string
	DueAt   string
	DueOn   string
	Zone    string
	Done    bool
	Notes   string
}

// Change is what to alter; nil leaves a field as it is, and an empty due or zone
// takes it away.
type Change struct {
	Content *string
	DueAt   *string
	DueOn   *string
	Zone    *string
	Done    *bool
	Notes   *string
}

// apply alters t and checks the whole. Zone is what a local time without one means.
func (c Change) apply(t *Todo, zone string) ([]when.Warning, error) {
	if c.Content != nil {
		t.Content = strings.TrimSpace(*c.Content)
	}
	if c.Done != nil {
		t.Done = *c.Done
	}
	if c.Notes != nil {
		t.Notes = *c.Notes
	}
	if err := checkTexts(t); err != nil {
		return nil, err
	}
	return c.applyDue(t, zone)
}

func checkTexts(t *Todo) error {
	err := errInvalid
	for _, f := range []struct {
		name, text string
		max        int
	}{{"content", t.Content, MaxContent}, {"notes", t.Notes, MaxNotes}} {
		switch {
		case len(f.text) > f.max:
			err = err.In(f.name, "is too long")
		case !utf8.ValidString(f.text):
			err = err.In(f.name, "is not valid UTF-8")
		case strings.IndexByte(f.text, 0) >= 0:
			err = err.In(f.name, "has a NUL character in it")
		}
	}
	if t.Content == "" {
		err = err.In("content", "must not be empty")
	}
	if len(err.Fields) > 0 {
		return err
	}
	return nil
}

func (c Change) applyDue(t *Todo, zone string) ([]when.Warning, error) {
	if c.Zone != nil {
		t.Zone = optional(*c.Zone)
	}
	if t.Zone != nil {
		if _, err := when.Zone(*t.Zone); err != nil {
			return nil, err
		}
		zone = *t.Zone
	}
	if c.DueOn != nil {
		t.DueOn = nil
		if *c.DueOn != "" {
			day, err := when.Date(*c.DueOn)
			if err != nil {
				return nil, err
			}
			t.DueOn = &day
			if c.DueAt == nil {
				t.DueAt = nil // the day replaces the instant
			}
		}
	}
	var warnings []when.Warning
	if c.DueAt != nil {
		t.DueAt = nil
		if *c.DueAt != "" {
			m, w, err := when.Instant(*c.DueAt, zone)
			if err != nil {
				return nil, err
			}
			t.DueAt, warnings = &m.At, w
			t.Zone = optional(m.Zone)
			if c.DueOn == nil {
				t.DueOn = nil
			}
		}
	}
	if t.DueAt != nil && t.DueOn != nil {
		return nil, errInvalid.In("due_on", "cannot be set beside due_at: it is one or the other")
	}
	return warnings, nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Table describes the todos to replication.
func Table() *sync.Table {
	return &sync.Table{Name: "todos", Columns: []sync.Column{
		{Name: "content"},
		{Name: "due_at", Kind: sync.Integer, Null: true},
		{Name: "due_on", Null: true},
		{Name: "tz", Null: true},
		{Name: "done", Kind: sync.Bool},
		{Name: "notes"},
		{Name: "remind", Null: true},
	}}
}

const columns = sync.HeadColumns + `, content, due_at, due_on, tz, done, notes`

func scan(r sqlite.Row) (t Todo, err error) {
	var due *int64
	err = r.Scan(append(t.Dest(), &t.Content, &due, &t.DueOn, &t.Zone, &t.Done, &t.Notes)...)
	t.DueAt = sqlite.TimePtr(due)
	return t, err
}

func (t *Todo) args() []any {
	return append(t.Args(), t.Content, sqlite.MillisPtr(t.DueAt), t.DueOn, t.Zone, t.Done, t.Notes)
}
