package letters_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sync/letters"
)

func (n *node) next() string {
	n.t.Helper()
	key, err := n.box.Next(context.Background())
	must(n.t, err)
	return key
}

// The oldest letter of all is named whoever's it is, and not one that was acked.
func TestNextIsTheOldestThatWaits(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	equal(t, "of none", cloud.next(), "")
	cloud.send(letter("z", "zoe"), letter("a", "ann"), letter("b", "ann"))
	equal(t, "next", cloud.next(), "z")
	home.refuse["a"] = errBusy
	cross(cloud, home)
	equal(t, "next, once zoe's is acked", cloud.next(), "a")
	clear(home.refuse)
	cross(cloud, home)
	equal(t, "next of none that waits", cloud.next(), "")
}

// Each owner has a turn before any has a second one.
func TestOwnersTakeTurns(t *testing.T) {
	cloud := newNode(t)
	for i := range 150 {
		cloud.send(letter(fmt.Sprint("a", i), "ann"))
	}
	for i := range 30 {
		cloud.send(letter(fmt.Sprint("b", i), "ben"), letter(fmt.Sprint("c", i), "cat"))
	}
	count := map[byte]int{}
	for _, l := range cloud.offered().letters {
		equal(t, "of its owner, the", l.Key[1:], fmt.Sprint(count[l.Key[0]]))
		count[l.Key[0]]++
	}
	equal(t, "of each", fmt.Sprint(count['a'], count['b'], count['c']), "40 30 30")
}

// However many wait, a look at them is a few steps in an index.
func TestALookAtTheLettersThatWaitReadsNoTable(t *testing.T) {
	cloud := newNode(t)
	for _, query := range []string{letters.SelectNext, letters.SelectTurns} {
		plan, err := sqlite.ReadAll(context.Background(), cloud.db, func(r sqlite.Row) (s string, err error) {
			var a, b, c int
			err = r.Scan(&a, &b, &c, &s)
			return s, err
		}, `EXPLAIN QUERY PLAN `+query, []any{"ann", 100}[:strings.Count(query, "?")]...)
		must(t, err)
		for _, step := range plan {
			if strings.Contains(step, "SCAN letters_sent") || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s, in\n%s", strings.Join(plan, "\n"), query)
			}
		}
	}
}
