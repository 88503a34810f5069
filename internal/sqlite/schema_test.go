package sqlite_test

import (
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

// What each table must be for two nodes to hold the same of it.
func TestTheSchemasAreFitForTwoNodes(t *testing.T) {
	for name, s := range map[string]struct {
		schema sqlite.Schema
		times  int // at least so many columns are times, or nothing is looked at
	}{"todos": {sqlite.Todos, 20}, "users": {sqlite.Users, 3}} {
		t.Run(name, func(t *testing.T) {
			db := sqlitetest.Open(t, s.schema)
			// S:48. A trigger would stamp what came as if it had been edited here.
			equal(t, "triggers", query[string](t, db, `SELECT coalesce(group_concat(name), '') FROM sqlite_schema WHERE type = 'trigger'`), "")
			// S:55. Text that is a time does not order by its instant.
			const times = `
				FROM sqlite_schema t, pragma_table_info(t.name) c
				WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND (c.name = 'at' OR c.name LIKE '%\_at' ESCAPE '\')`
			equal(t, "times that are no integers", query[string](t, db, `SELECT coalesce(group_concat(t.name || '.' || c.name), '')`+times+` AND c.type <> 'INTEGER'`), "")
			if n := query[int](t, db, `SELECT count(*)`+times); n < s.times {
				t.Errorf("%d times were looked at, want %d", n, s.times)
			}
			// Rows of two tables come in any order, and one of them perhaps never.
			equal(t, "foreign keys of what replicates", query[string](t, db, `
				SELECT coalesce(group_concat(t.name || ' to ' || f."table"), '')
				FROM sqlite_schema t, pragma_foreign_key_list(t.name) f
				WHERE t.name IN ('todos', 'scheduled_messages', 'settings', 'facts') OR f."table" IN ('todos', 'scheduled_messages', 'settings', 'facts')`), "")
		})
	}
}
