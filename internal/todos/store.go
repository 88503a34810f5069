package todos

import (
	"context"
	"strings"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

// Store reads and writes todos. Every method is asked on behalf of an owner and
// sees nobody else's.
type Store struct {
	db   *sqlite.DB
	log  *sync.Log
	zone func(tx *sqlite.Tx, owner string) (string, error)
}

// NewStore returns a store that tells log what changes. Zone is where an owner
// lives, or empty.
func NewStore(db *sqlite.DB, log *sync.Log, zone func(tx *sqlite.Tx, owner string) (string, error)) *Store {
	return &Store{db: db, log: log, zone: zone}
}

// AddTx makes a todo. A time that fell into a gap or a fold of the clock is taken
// and warned of. What the same request has made at the other node is answered
// instead.
func (s *Store) AddTx(tx *sqlite.Tx, owner string, n New) (Todo, []when.Warning, error) {
	var t Todo
	if ref, made, err := s.log.MadeTx(tx, "todos", owner, n.Asked); err != nil || made {
		if err == nil {
			t, _, err = s.anyTx(tx, owner, ref)
		}
		return t, nil, err
	}
	zone, err := s.zone(tx, owner)
	if err != nil {
		return t, nil, err
	}
	c := Change{Content: &n.Content, Done: &n.Done, Notes: &n.Notes, DueAt: &n.DueAt, DueOn: &n.DueOn, Zone: &n.Zone}
	warnings, err := c.apply(&t, zone)
	if err != nil {
		return t, nil, err
	}
	if t.Head, err = s.log.AddAskedTx(tx, "todos", owner, n.Asked); err != nil {
		return t, nil, err
	}
	_, err = tx.Exec(`
		INSERT INTO todos (`+columns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, t.args()...)
	return t, warnings, err
}

// EditTx alters a todo and returns its new version; a change that alters nothing
// makes none.
func (s *Store) EditTx(tx *sqlite.Tx, owner string, ref sync.Ref, c Change) (Todo, []when.Warning, error) {
	t, err := s.GetTx(tx, owner, ref)
	if err != nil {
		return t, nil, err
	}
	zone, err := s.zone(tx, owner)
	if err != nil {
		return t, nil, err
	}
	before := t
	warnings, err := c.apply(&t, zone)
	if err != nil || same(before, t) {
		return before, warnings, err
	}
	return t, warnings, s.saveTx(tx, &t)
}

// DeleteTx deletes a todo. One that is gone already stays gone, without an error;
// one that never was is ErrNotFound.
func (s *Store) DeleteTx(tx *sqlite.Tx, owner string, ref sync.Ref) error {
	t, found, err := s.anyTx(tx, owner, ref)
	switch {
	case err != nil:
		return err
	case !found:
		return ErrNotFound
	case t.DeletedAt != nil:
		return nil
	}
	now := tx.Millis()
	t.DeletedAt = &now
	return s.saveTx(tx, &t)
}

// UndeleteTx brings a deleted todo back, as an edit of this node that wins like any
// other. One that is not deleted stays as it is. A todo whose text was taken out, 30
// days after the peer had the deletion, is ErrTextIsGone.
func (s *Store) UndeleteTx(tx *sqlite.Tx, owner string, ref sync.Ref) (Todo, error) {
	t, found, err := s.anyTx(tx, owner, ref)
	switch {
	case err != nil:
		return t, err
	case !found:
		return Todo{}, ErrNotFound
	case t.DeletedAt == nil:
		return t, nil
	case t.Content == "":
		return Todo{}, ErrTextIsGone
	}
	t.DeletedAt = nil
	return t, s.saveTx(tx, &t)
}

// anyTx returns a todo of the owner, also one that was deleted. A key that was merged
// into another one leads to the todo under that.
func (s *Store) anyTx(tx *sqlite.Tx, owner string, ref sync.Ref) (Todo, bool, error) {
	const query = `SELECT ` + columns + ` FROM todos WHERE origin = ? AND id = ? AND owner = ?`
	t, found, err := sqlite.One(tx, scan, query, ref.Origin, ref.ID, owner)
	if err != nil || found && t.DeletedAt == nil {
		return t, found, err
	}
	to, leads, err := s.log.AliasTx(tx, "todos", ref)
	if err != nil || !leads {
		return t, found, err
	}
	return sqlite.One(tx, scan, query, to.Origin, to.ID, owner)
}

func (s *Store) saveTx(tx *sqlite.Tx, t *Todo) error {
	s.log.EditTx(tx, &t.Head)
	_, err := tx.Exec(`
		UPDATE todos SET updated_at = ?, updated_by = ?, deleted_at = ?, seq = ?, seen = ?,
			content = ?, due_at = ?, due_on = ?, tz = ?, done = ?, notes = ?
		WHERE origin = ? AND id = ?`,
		t.UpdatedAt, t.UpdatedBy, t.DeletedAt, t.Seq, string(t.Seen),
		t.Content, sqlite.MillisPtr(t.DueAt), t.DueOn, t.Zone, t.Done, t.Notes, t.Origin, t.ID)
	return err
}

// GetTx returns a todo of the owner, or ErrNotFound.
func (s *Store) GetTx(tx *sqlite.Tx, owner string, ref sync.Ref) (Todo, error) {
	t, found, err := s.anyTx(tx, owner, ref)
	if err == nil && (!found || t.DeletedAt != nil) {
		return Todo{}, ErrNotFound
	}
	return t, err
}

// Get is GetTx outside a transaction: a todo that is there is a single look-up.
func (s *Store) Get(ctx context.Context, owner string, ref sync.Ref) (Todo, error) {
	t, found, err := sqlite.ReadOne(ctx, s.db, scan, `
		SELECT `+columns+` FROM todos WHERE origin = ? AND id = ? AND owner = ? AND deleted_at IS NULL`, ref.Origin, ref.ID, owner)
	if err != nil || found {
		return t, err
	}
	return sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) (Todo, error) { return s.GetTx(tx, owner, ref) })
}

// Filter says which todos to list; its zero value lists all.
type Filter struct {
	Done *bool

	// DueBefore is an instant as people write it, a local time being read where the
	// owner lives. A todo that is due on a day is due before it once that day is over
	// there.
	DueBefore string

	Text string // somewhere in content or notes, in any case of ASCII letters
}

// List returns up to limit todos after a place in the order they were made,
// oldest first.
func (s *Store) List(ctx context.Context, owner string, f Filter, after sync.Place, limit int) ([]Todo, error) {
	query := `SELECT ` + columns + ` FROM todos
		WHERE owner = ? AND deleted_at IS NULL AND (created_at, origin, id) > (?, ?, ?)`
	args := []any{owner, after.CreatedAt, after.Origin, after.ID}
	if f.Done != nil {
		query, args = query+` AND done = ?`, append(args, *f.Done)
	}
	if f.DueBefore != "" {
		at, day, err := s.before(ctx, owner, f.DueBefore)
		if err != nil {
			return nil, err
		}
		query, args = query+` AND (due_at < ? OR due_on < ?)`, append(args, at, day)
	}
	if f.Text != "" {
		like := "%" + likeEscaper.Replace(f.Text) + "%"
		query, args = query+` AND (content LIKE ? ESCAPE '\' OR notes LIKE ? ESCAPE '\')`, append(args, like, like)
	}
	query, args = query+` ORDER BY created_at, origin, id LIMIT ?`, append(args, limit)
	return sqlite.ReadAll(ctx, s.db, scan, query, args...)
}

// before returns what is due before a time: instants before at, and days before day.
func (s *Store) before(ctx context.Context, owner, text string) (at int64, day string, err error) {
	zone, err := sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) (string, error) { return s.zone(tx, owner) })
	if err != nil {
		return 0, "", err
	}
	loc, err := when.Zone(zone)
	if err != nil {
		zone, loc = "", time.UTC
	}
	m, _, err := when.Instant(text, zone)
	if err != nil {
		return 0, "", about("due_before", err)
	}
	return m.At.UnixMilli(), m.At.In(loc).Format(time.DateOnly), nil
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func same(a, b Todo) bool {
	return a.Content == b.Content && a.Done == b.Done && a.Notes == b.Notes &&
		alike(sqlite.MillisPtr(a.DueAt), sqlite.MillisPtr(b.DueAt)) && alike(a.DueOn, b.DueOn) && alike(a.Zone, b.Zone)
}

func alike[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
