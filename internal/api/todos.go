package api

import (
	"context"
	"strings"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/todos"
	"tandem/internal/when"
)

type todoBody struct {
	RowFields
	Content  string         `json:"content"`
	DueAt    *string        `json:"due_at" doc:"An instant, in UTC"`
	DueOn    *string        `json:"due_on" doc:"A day without a time, YYYY-MM-DD"`
	Zone     *string        `json:"tz" doc:"Where due_at was meant"`
	Done     bool           `json:"done"`
	Notes    string         `json:"notes"`
	Warnings []when.Warning `json:"warnings,omitempty"`
}

func showTodo(t todos.Todo) todoBody {
	return todoBody{
		RowFields: fieldsOf(t.Head), Content: t.Content, DueAt: showTime(t.DueAt), DueOn: t.DueOn, Zone: t.Zone,
		Done: t.Done, Notes: t.Notes,
	}
}

func showTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := when.Format(*t)
	return &s
}

type newTodoInput struct {
	Keyed
	Body struct {
		Content string `json:"content" doc:"1 byte to 64 KiB"`
		DueAt   string `json:"due_at,omitempty" minLength:"1" doc:"RFC 3339 with an offset, or local time in tz" example:"2026-05-06T17:00"`
		DueOn   string `json:"due_on,omitempty" minLength:"1" doc:"YYYY-MM-DD" example:"2026-05-06"`
		Zone    string `json:"tz,omitempty" minLength:"1" doc:"An IANA zone; your own by default" example:"Europe/Berlin"`
		Done    bool   `json:"done,omitempty"`
		Notes   string `json:"notes,omitempty" doc:"Up to 128 KiB"`
	}
}

func (a *api) addTodo(ctx context.Context, in *newTodoInput) (*onceOutput[todoBody], error) {
	b := in.Body
	n := todos.New{Content: b.Content, DueAt: b.DueAt, DueOn: b.DueOn, Zone: b.Zone, Done: b.Done, Notes: b.Notes, Asked: asked(ctx, in.Keyed)}
	return once(ctx, a, in.Keyed, in.Body, func(tx *sqlite.Tx) (made[todoBody], error) {
		t, warnings, err := a.Todos.AddTx(tx, caller(ctx).UserID, n)
		body := showTodo(t)
		body.Warnings = warnings
		return made[todoBody]{"/v1/todos/" + body.Ref, etag(t.Head), body}, err
	})
}

func (a *api) getTodo(ctx context.Context, in *GetInput) (*rowOutput[todoBody], error) {
	ref, err := in.ref(todos.ErrNotFound)
	if err != nil {
		return nil, err
	}
	t, err := a.Todos.Get(ctx, caller(ctx).UserID, ref)
	if err != nil {
		return nil, err
	}
	return unlessKnown(in, &rowOutput[todoBody]{etag(t.Head), showTodo(t)})
}

type changeTodoInput struct {
	EditInput
	Body struct {
		Content patched[string] `json:"content,omitzero"`
		DueAt   patched[string] `json:"due_at,omitzero" minLength:"1"`
		DueOn   patched[string] `json:"due_on,omitzero" minLength:"1"`
		Zone    patched[string] `json:"tz,omitzero" minLength:"1"`
		Done    patched[bool]   `json:"done,omitzero"`
		Notes   patched[string] `json:"notes,omitzero"`
	}
}

func (a *api) changeTodo(ctx context.Context, in *changeTodoInput) (*rowOutput[todoBody], error) {
	ref, err := in.ref(todos.ErrNotFound)
	if err != nil {
		return nil, err
	}
	b, owner := in.Body, caller(ctx).UserID
	c := todos.Change{Content: b.Content.or(""), DueAt: b.DueAt.or(""), DueOn: b.DueOn.or(""), Zone: b.Zone.or(""),
		Done: b.Done.or(false), Notes: b.Notes.or("")}
	var t todos.Todo
	var warnings []when.Warning
	err = a.DB.Write(ctx, func(tx *sqlite.Tx) error {
		now, err := a.Todos.GetTx(tx, owner, ref)
		if err != nil {
			return err
		}
		if err := fresh(in.IfMatch, now.Head); err != nil {
			return err
		}
		t, warnings, err = a.Todos.EditTx(tx, owner, ref, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &rowOutput[todoBody]{etag(t.Head), showTodo(t)}
	out.Body.Warnings = warnings
	return out, nil
}

func (a *api) deleteTodo(ctx context.Context, in *EditInput) (*struct{}, error) {
	ref, err := in.ref(todos.ErrNotFound)
	if err != nil {
		return nil, err
	}
	owner := caller(ctx).UserID
	return nil, a.DB.Write(ctx, func(tx *sqlite.Tx) error {
		now, err := a.Todos.GetTx(tx, owner, ref)
		if err == nil {
			err = fresh(in.IfMatch, now.Head)
		}
		if err != nil && !fault.Of(err, fault.NotFound) {
			return err
		}
		return a.Todos.DeleteTx(tx, owner, ref) // knows one that was deleted from one that never was
	})
}

func (a *api) undeleteTodo(ctx context.Context, in *RefInput) (*rowOutput[todoBody], error) {
	ref, err := in.ref(todos.ErrNotFound)
	if err != nil {
		return nil, err
	}
	var t todos.Todo
	err = a.DB.Write(ctx, func(tx *sqlite.Tx) (err error) {
		t, err = a.Todos.UndeleteTx(tx, caller(ctx).UserID, ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &rowOutput[todoBody]{etag(t.Head), showTodo(t)}, nil
}

type listTodosInput struct {
	ListInput
	Done      string `query:"done" enum:"true,false" doc:"Only those that are done, or are not"`
	DueBefore string `query:"due_before" doc:"Only those due before this instant, RFC 3339 with an offset or local time in your own zone; of those with a day, the days that are over by then where you live"`
	Q         string `query:"q" maxLength:"200" doc:"Only those with this text in content or notes"`
}

func (a *api) listTodos(ctx context.Context, in *listTodosInput) (*listOutput[todoBody], error) {
	owner := caller(ctx).UserID
	list := []string{"todos", owner, in.Done, in.DueBefore, in.Q}
	after, err := a.rowPlace(in.Cursor, list)
	if err != nil {
		return nil, err
	}
	f := todos.Filter{Text: in.Q, DueBefore: in.DueBefore}
	if in.Done != "" {
		done := in.Done == "true"
		f.Done = &done
	}
	if i := strings.LastIndexByte(f.DueBefore, ' '); i > len(time.DateOnly) { // a + that was not encoded
		f.DueBefore = f.DueBefore[:i] + "+" + f.DueBefore[i+1:]
	}
	rows, err := a.Todos.List(ctx, owner, f, after, in.limit()+1)
	if err != nil {
		return nil, err
	}
	return page(a, rows, in.limit(), showTodo, func(t todos.Todo) []byte { return placeOf(t.Head) }, list), nil
}
