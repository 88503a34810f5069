package sim

import (
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// tables describes three tables as their domains do: one with plain columns, one
// with JSON and defaults that are not nothing, one whose keys are derived.
func tables() []*sync.Table {
	return []*sync.Table{
		{Name: "todos", Columns: []sync.Column{
			{Name: "content"}, {Name: "due_at", Kind: sync.Integer, Null: true}, {Name: "due_on", Null: true}, {Name: "tz", Null: true},
			{Name: "done", Kind: sync.Bool}, {Name: "notes"}, {Name: "remind", Null: true},
		}},
		{Name: "scheduled_messages", Columns: []sync.Column{
			{Name: "content"}, {Name: "action", Default: "notify"}, {Name: "args", Kind: sync.JSON, Null: true},
			{Name: "enabled", Kind: sync.Bool, Default: "1"},
		}},
		{Name: "settings", Columns: []sync.Column{{Name: "tz", Null: true}}},
	}
}

// textOf is the column that a person's words go to.
var textOf = map[string]string{"todos": "content", "scheduled_messages": "content", "settings": "tz"}

// row is a row as it lies in a file.
type row struct {
	sync.Head
	text string
}

func scanRow(r sqlite.Row) (v row, err error) {
	var text *string
	err = r.Scan(append(v.Dest(), &text)...)
	if text != nil {
		v.text = *text
	}
	return v, err
}

func selectRow(table string) string {
	return `SELECT ` + sync.HeadColumns + `, ` + textOf[table] + ` FROM ` + table
}

// version is what the row says, as the model knows it.
func (r row) version() version {
	v := version{at: r.UpdatedAt, by: r.UpdatedBy, text: r.text}
	if r.DeletedAt != nil {
		v.deletedAt, v.text = *r.DeletedAt, ""
	}
	return v
}
