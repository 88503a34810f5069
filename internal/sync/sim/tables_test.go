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
			{Name: "content"}, {Name: "due_at", Kind: sync.Time, Null: true}, {Name: "due_on", Null: true}, {Name: "tz", Null: true},
			{Name: "done", Kind: sync.Bool}, {Name: "notes"}, {Name: "remind", Null: true},
		}},
		{Name: "scheduled_messages", Columns: []sync.Column{
			{Name: "content"}, {Name: "action", Default: "notify"}, {Name: "args", Kind: sync.JSON, Null: true},
			{Name: "enabled", Kind: sync.Bool, Default: "1"},
		}},
		{Name: "settings", Columns: []sync.Column{{Name: "tz", Null: true}}, Derived: settingsOf},
	}
}

// settingsOf is the key and uid of an owner's settings.
func settingsOf(owner string) (sync.Ref, sync.UID) {
	return sync.Ref{Origin: 0, ID: 1000 + int64(owner[0])}, sync.KeyedUID("settings", owner)
}

// tables are those that the node knows: a newer version has one table more, and a
// column more in todos.
func (n *node) tables() []*sync.Table {
	list := tables()
	if n.newer {
		list[0].Columns = append(list[0].Columns, sync.Column{Name: "priority", Null: true})
		list = append(list, &sync.Table{Name: "labels", Columns: []sync.Column{{Name: "content"}}})
	}
	return list
}

// migrate is the newer version's migration. What it made while it ran beside an older
// one is in extra there, and moves out.
func (n *node) migrate() {
	if !n.newer || value[int](n, `SELECT count(*) FROM pragma_table_info('todos') WHERE name = 'priority'`) > 0 {
		return
	}
	n.dirty = true
	n.write(func(tx *sqlite.Tx) error {
		for _, statement := range []string{
			`ALTER TABLE todos ADD COLUMN priority TEXT`,
			`UPDATE todos SET priority = extra ->> '$.priority', extra = nullif(json_remove(extra, '$.priority'), '{}') WHERE extra IS NOT NULL`,
			`CREATE TABLE labels (origin INTEGER NOT NULL, id INTEGER NOT NULL, uid BLOB NOT NULL UNIQUE, owner TEXT NOT NULL, created_at INTEGER NOT NULL,
				updated_at INTEGER NOT NULL, updated_by TEXT NOT NULL, deleted_at INTEGER, seq INTEGER NOT NULL UNIQUE, seen TEXT NOT NULL DEFAULT '{}',
				extra TEXT, alias_of BLOB, content TEXT NOT NULL, PRIMARY KEY (origin, id)) STRICT`,
		} {
			if _, err := tx.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// textOf is the column that a person's words go to.
var textOf = map[string]string{"todos": "content", "scheduled_messages": "content", "settings": "tz", "labels": "content"}

// row is a row as it lies in a file.
type row struct {
	sync.Head
	alias    []byte // the uid of the row that this key leads to; nil: it is a row
	text     string
	priority string // what only the newer version knows
}

func scanRow(r sqlite.Row) (v row, err error) {
	var text, priority *string
	err = r.Scan(append(v.Dest(), &v.alias, &text, &priority)...)
	if text != nil {
		v.text = *text
	}
	if priority != nil {
		v.priority = *priority
	}
	return v, err
}

// selectRow reads rows of a table for scanRow. A node that does not know of
// priorities keeps them among the fields it does not know.
func (n *node) selectRow(table string) string {
	priority := `extra ->> '$.priority'`
	if n.newer && table == "todos" {
		priority = `priority`
	}
	return `SELECT ` + sync.HeadColumns + `, alias_of, ` + textOf[table] + `, ` + priority + ` FROM ` + table
}

// version is what the row says, as the model knows it.
func (r row) version() version {
	v := version{at: r.UpdatedAt, by: r.UpdatedBy, text: r.text, priority: r.priority}
	if r.DeletedAt != nil {
		v.deletedAt, v.text, v.priority = *r.DeletedAt, "", ""
	}
	return v
}
