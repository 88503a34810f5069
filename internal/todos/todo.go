// Package todos keeps what people mean to do.
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

// ErrTextIsGone is returned for a todo that was deleted so long ago that nothing but
// the deletion is kept.
var ErrTextIsGone = fault.New(fault.Conflict, "text_is_gone", "The todo was deleted so long ago that its text is gone. Add it anew.")

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
	Asked   sync.Asked // by which request, where it has a key
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

// apply alters t and checks what it alters: what the peer sent and is not touched
// is not judged. Zone is where the owner lives, which a local time without a zone
// means.
func (c Change) apply(t *Todo, zone string) ([]when.Warning, error) {
	if c.Done != nil {
		t.Done = *c.Done
	}
	if err := c.applyTexts(t); err != nil {
		return nil, err
	}
	if err := c.applyZone(t); err != nil {
		return nil, err
	}
	if t.Zone != nil && known(*t.Zone) {
		zone = *t.Zone
	}
	return c.applyDue(t, zone)
}

func (c Change) applyTexts(t *Todo) error {
	err := errInvalid
	if c.Content != nil {
		t.Content = strings.TrimSpace(*c.Content)
		err = checkText(err, "content", t.Content, MaxContent)
		if t.Content == "" {
			err = err.In("content", "must not be empty")
		}
	}
	if c.Notes != nil {
		t.Notes = *c.Notes
		err = checkText(err, "notes", t.Notes, MaxNotes)
	}
	if len(err.Fields) > 0 {
		return err
	}
	return nil
}

func checkText(err *fault.Error, name, text string, most int) *fault.Error {
	switch {
	case len(text) > most:
		return err.In(name, "is too long")
	case !utf8.ValidString(text):
		return err.In(name, "is not valid UTF-8")
	case strings.IndexByte(text, 0) >= 0:
		return err.In(name, "has a NUL character in it")
	}
	return err
}

func (c Change) applyZone(t *Todo) error {
	if c.Zone == nil {
		return nil
	}
	t.Zone = optional(*c.Zone)
	if t.Zone != nil {
		if _, err := when.Zone(*t.Zone); err != nil {
			return fault.From(err).In("tz", "is not known here")
		}
	}
	return nil
}

func known(zone string) bool {
	_, err := when.Zone(zone)
	return err == nil
}

// applyDue sets when t is due: an instant or a day, of which the one that is given
// replaces the other.
func (c Change) applyDue(t *Todo, zone string) (warnings []when.Warning, err error) {
	if text(c.DueAt) != "" && text(c.DueOn) != "" {
		return nil, errInvalid.In("due_on", "cannot be set beside due_at: it is one or the other")
	}
	if c.DueOn != nil || text(c.DueAt) != "" {
		t.DueOn = nil
	}
	if c.DueAt != nil || text(c.DueOn) != "" {
		t.DueAt = nil
	}
	if day := text(c.DueOn); day != "" {
		if err := when.CheckDate(day); err != nil {
			return nil, about("due_on", err)
		}
		t.DueOn = &day
	}
	if text(c.DueAt) == "" {
		return nil, nil
	}
	if !known(zone) {
		zone = ""
	}
	m, warnings, err := when.Instant(*c.DueAt, zone)
	if err != nil {
		return nil, about("due_at", err)
	}
	t.DueAt, t.Zone = &m.At, optional(m.Zone)
	return warnings, nil
}

// about adds to a fault of package when which field it is about.
func about(field string, err error) error {
	f := fault.From(err)
	if f.Code == "unknown_zone" {
		return f.In(field, "needs an offset, as no zone is known for you")
	}
	return f.In(field, "cannot be read")
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
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
		{Name: "due_at", Kind: sync.Time, Null: true},
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
