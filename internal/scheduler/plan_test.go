package scheduler

import (
	"strings"
	"testing"

	"tandem/internal/sqlite"
)

// explain returns how SQLite would run a query.
func (n *node) explain(query string, args ...any) string {
	n.Helper()
	steps := read(n, func(tx *sqlite.Tx) ([]string, error) {
		return sqlite.All(tx, func(r sqlite.Row) (step string, err error) {
			var id, parent, unused int
			return step, r.Scan(&id, &parent, &unused, &step)
		}, `EXPLAIN QUERY PLAN `+query, args...)
	})
	return strings.Join(steps, "\n")
}

func TestALookAtNothingDueCostsTheSameHoweverManyRowsThereAre(t *testing.T) {
	n := newNode(t, noon)
	for _, c := range []struct {
		name, query, index string
		args               []any
	}{
		{"the next due", nextDue, "USING COVERING INDEX scheduled_messages_due", []any{"[]"}},
		{"all that is due", dueAfter, "USING INDEX scheduled_messages_due", []any{0, 0, 0, 0, "[]", batch}},
		{"the newest that rang", newestFired, "SEARCH facts USING INDEX facts_fired (<expr>=? AND <expr>=? AND <expr><?)", []any{"", "", 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := n.explain(c.query, c.args...)
			if !strings.Contains(plan, c.index) {
				t.Errorf("does not say %s:\n%s", c.index, plan)
			}
			for _, costly := range []string{"TEMP B-TREE", "SCAN scheduled_messages\n", "SCAN facts"} {
				if strings.Contains(plan+"\n", costly) {
					t.Errorf("says %s:\n%s", costly, plan)
				}
			}
		})
	}
}
