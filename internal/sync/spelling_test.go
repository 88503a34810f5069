package sync_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// S:12, S:48. What was applied is not news: an entry is sent by its writer, echoed
// once, and that is all.
func TestTrafficIsInProportionToWhatIsWritten(t *testing.T) {
	local, cloud := pair(t)
	var refs []sync.Ref
	writes, moved := 0, 0
	for i := range 60 {
		n, other := local, cloud
		if i%2 == 1 {
			n, other = cloud, local
		}
		if i < 20 {
			refs = append(refs, n.add(fmt.Sprint(i)))
		} else {
			n.edit(refs[i%20], "content", fmt.Sprint("<", i, ">"))
		}
		writes++
		moved += n.pull(other) + other.pull(n)
	}
	moved += settle(t, local, cloud)
	if moved > 3*writes {
		t.Errorf("%d entries moved for %d writes", moved, writes)
	}
	for range 20 {
		equal(t, "entries moved in a quiet round", round(local, cloud), 0)
	}
	same(t, local, cloud)
}

// S:48. Each kind of text that one encoder may spell in two ways.
func TestNoTextMakesARowDifferFromItself(t *testing.T) {
	local, cloud := pair(t)
	for i, text := range []string{
		"<script>", "a & b", "a\u2028b\u2029c", "\u00e9 and e\u0301", "😀", "tab\tnew\nline", "\x01\x1f\x7f", `quote " back \ slash /`, "\ufffd", "",
	} {
		r := local.add(text)
		local.edit(r, "notes", text)
		local.edit(r, "remind", text)
		cloud.edit(cloud.add(text), "notes", fmt.Sprint(text, i))
	}
	local.write(func(tx *sqlite.Tx) error { // JSON as some domain might write it
		h, err := local.log.AddTx(tx, "scheduled_messages", "ann")
		must(t, err)
		_, err = tx.Exec(`INSERT INTO scheduled_messages (`+sync.HeadColumns+`, content, action, args) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'x', 'skill', ?)`,
			append(h.Args(), "{ \"b\" : \"<\\u00e9>\",\n \"a\":[1.0, 2e3, \"\\/\"] }")...)
		return err
	})
	settle(t, local, cloud)
	for range 10 {
		equal(t, "entries moved in a quiet round", round(local, cloud), 0)
	}
	same(t, local, cloud)
	// The same stamp from elsewhere, spelled otherwise, is no news either.
	for i, e := range local.entries() {
		local.entries()
		spelled := strings.NewReplacer("<", `\u003c`, "é", `\u00e9`, ",", " , ").Replace(string(e))
		before := read[int](local, `SELECT max(seq) FROM (SELECT seq FROM todos UNION SELECT seq FROM scheduled_messages UNION SELECT seq FROM facts)`)
		if strings.Contains(string(e), `,"content":","`) {
			continue
		}
		_, err := local.log.Apply(t.Context(), "x", "y", "z", entries([]byte(spelled)))
		must(t, err)
		if read[int](local, `SELECT max(seq) FROM (SELECT seq FROM todos UNION SELECT seq FROM scheduled_messages UNION SELECT seq FROM facts)`) != before {
			t.Errorf("entry %d was taken for a newer version: %s", i, spelled)
		}
	}
}

func TestEmptyTextAndNoneAreTwoThings(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("milk")
	local.edit(r, "remind", "")
	local.edit(local.add("bread"), "due_at", 0)
	settle(t, local, cloud)
	equal(t, "reminders that are empty", read[int](cloud, `SELECT count(*) FROM todos WHERE remind = ''`), 1)
	equal(t, "reminders that are none", read[int](cloud, `SELECT count(*) FROM todos WHERE remind IS NULL`), 1)
	equal(t, "due in 1970", read[int](cloud, `SELECT count(*) FROM todos WHERE due_at = 0`), 1)
}

// A reader has read up to a place; whatever is written later stands behind it.
func TestPlacesAreNotGivenOutAgain(t *testing.T) {
	for name, change := range map[string]func(n *node){
		"a row is gone":    func(n *node) { n.exec(`DELETE FROM todos`) },
		"a fact is gone":   func(n *node) { n.fact("fired", "f", nil); n.restart(); n.exec(`DELETE FROM facts`) },
		"a fact came last": func(n *node) { n.fact("fired", "f", nil) },
		"all is gone":      func(n *node) { n.exec(`DELETE FROM todos`); n.exec(`DELETE FROM facts`) },
		"nothing has gone": func(*node) {},
		"a write was undone": func(n *node) {
			_ = n.db.Write(t.Context(), func(tx *sqlite.Tx) error { _, _ = n.addTx(tx, "undone"); return errUndone })
		},
	} {
		t.Run(name, func(t *testing.T) {
			local, cloud := pair(t)
			cloud.add("a")
			cloud.fact("fired", "e", nil)
			local.pull(cloud)
			change(cloud)
			if read[int](cloud, `SELECT count(*) FROM todos`) == 0 {
				local.exec(`DELETE FROM todos`) // or the number, which is given out again, would be taken there
			}
			last := read[int](cloud, `SELECT max((SELECT coalesce(max(seq), 0) FROM facts), (SELECT coalesce(max(seq), 0) FROM todos), (SELECT max(seq) FROM sync_tokens))`)
			cloud.restart()
			r := cloud.add("later")
			if at := read[int](cloud, `SELECT seq FROM todos WHERE content = 'later'`); at <= last {
				t.Errorf("place %d after %d", at, last)
			}
			local.pull(cloud)
			equal(t, "what came later", local.content(r), "later")
		})
	}
}

var errUndone = errors.New("undone")

// What only a newer version knows passes through an older one unharmed.
func TestFieldsOfANewerVersionSurviveAnOlderNode(t *testing.T) {
	newer := newNode(t, "cloud", 1)
	older := newNode(t, "local", 0)
	older.tables[0].Columns = slices.DeleteFunc(todosTable().Columns, func(c sync.Column) bool { return c.Name == "notes" || c.Name == "remind" || c.Name == "done" })
	older.restart()
	r := newer.add("milk")
	newer.edit(r, "notes", "<2 litres> & \u2028 more")
	newer.edit(r, "done", 1)
	newer.edit(r, "remind", "15")
	settle(t, older, newer)
	older.edit(r, "content", "oat milk")
	settle(t, older, newer)
	equal(t, "content", newer.content(r), "oat milk")
	equal(t, "notes", read[string](newer, `SELECT notes FROM todos`), "<2 litres> & \u2028 more")
	equal(t, "done", read[int](newer, `SELECT done FROM todos`), 1)
	equal(t, "remind", read[string](newer, `SELECT remind FROM todos`), "15")
	newer.edit(r, "remind", nil) // and what it takes away again is gone
	settle(t, older, newer)
	older.edit(r, "tz", "Europe/Berlin")
	settle(t, older, newer)
	equal(t, "reminders", read[int](newer, `SELECT count(remind) FROM todos`), 0)
	equal(t, "quiet", round(older, newer), 0)
	same(t, older, newer)
}

func TestMembersThatNobodyKnowsAreKeptAndOffered(t *testing.T) {
	local, cloud := pair(t)
	in := wire(t, map[string]any{"priority": 3, "labels": []any{"<a>", map[string]any{"z": 1, "b": nil}}, "Owner": "no head", "gone": "x"})
	_, err := local.log.Apply(t.Context(), "cloud", "", "c", entries(in))
	must(t, err)
	local.edit(sync.Ref{Origin: 1, ID: 7}, "content", "edited")
	settle(t, local, cloud)
	same(t, local, cloud)
	for _, n := range []*node{local, cloud} {
		state := n.state()
		for _, want := range []string{`"priority":3`, `"labels":["\u003ca\u003e",{"b":null,"z":1}]`, `"Owner":"no head"`, `"owner":"ann"`, `"content":"edited"`} {
			if !strings.Contains(state, want) {
				t.Errorf("%s: no %s in %s", n.name, want, state)
			}
		}
	}
}

// Both nodes know in the end which versions went into the one that stands, and
// telling each other of it is no news.
func TestSeenGathersWhatBothWrote(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("first")
	settle(t, local, cloud)
	local.edit(r, "content", "of local")
	cloud.skew = time.Second
	cloud.edit(r, "content", "of cloud")
	losing := read[int64](local, `SELECT updated_at FROM todos`)
	winning := read[int64](cloud, `SELECT updated_at FROM todos`)
	settle(t, local, cloud)
	want := fmt.Sprintf(`{"cloud/%s":%d,"local/%s":%d}`, cloud.log.Incarnation(), winning, local.log.Incarnation(), losing)
	for _, n := range []*node{local, cloud} {
		equal(t, "seen at "+n.name, read[string](n, `SELECT seen FROM todos`), want)
	}
	equal(t, "entries that move for it", round(local, cloud), 0)
}
