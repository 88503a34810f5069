package todos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

func (n *node) list(f Filter) string {
	n.Helper()
	list, err := n.List(n.Context(), anna, f, sync.Place{}, 100)
	n.must(err)
	var refs []string
	for _, t := range list {
		refs = append(refs, t.Ref.String())
	}
	return strings.Join(refs, " ")
}

// A day is over where its owner lives, not where the node stands.
func TestWhatIsDueBeforeATime(t *testing.T) {
	n := newNode(t)
	n.add(New{Content: "an instant", DueAt: "2026-05-06T09:00"})
	n.add(New{Content: "a day", DueOn: "2026-05-06"})
	n.add(New{Content: "never"})
	for before, want := range map[string]string{
		"2026-05-06T09:00": "", "2026-05-06T09:01": "0-1", "2026-05-06T23:59": "0-1", "2026-05-07T00:00": "0-1 0-2",
		"2026-05-06T22:00:00Z": "0-1 0-2", "2026-05-06T21:59:59Z": "0-1", "2026-05-07T00:00-12:00": "0-1 0-2",
	} {
		equal(t, before, n.list(Filter{DueBefore: before}), want)
	}
	n.homes[anna] = "Pacific/Auckland"
	equal(t, "in Auckland", n.list(Filter{DueBefore: "2026-05-06T12:00:00Z"}), "0-1 0-2")
	n.homes[anna] = "America/Los_Angeles"
	equal(t, "in Los Angeles", n.list(Filter{DueBefore: "2026-05-07T06:59:59Z"}), "0-1")
	n.homes[anna] = ""
	equal(t, "anywhere", n.list(Filter{DueBefore: "2026-05-07T00:00:00Z"}), "0-1 0-2")
	for before, code := range map[string]string{"2026-05-07T00:00": "unknown_zone", "May": "invalid_time"} {
		_, err := n.List(t.Context(), anna, Filter{DueBefore: before}, sync.Place{}, 100)
		refused(t, before, err, code, "due_before")
	}
}

func TestAFilterTakesItsTextLiterally(t *testing.T) {
	n := newNode(t)
	for _, text := range []string{"100%", "100", "a_b", "aXb", `a\b`, "牛奶 9点", "ÄRGER"} {
		n.add(New{Content: text})
		n.add(New{Content: "-", Notes: text})
	}
	for text, want := range map[string]string{
		"%": "0-1 0-2", "00": "0-1 0-2 0-3 0-4", "a_b": "0-5 0-6", "A_B": "0-5 0-6", `\`: "0-9 0-10", "奶": "0-11 0-12", "ger": "0-13 0-14", "äRGER": "", "'": "", "%%": "",
	} {
		equal(t, text, n.list(Filter{Text: text}), want)
	}
}

// A list is in the order of making, whichever node made a row, and pages of it join.
func TestAListIsInTheOrderOfMaking(t *testing.T) {
	local, cloud := newNode(t), newPeer(t, "cloud", 1)
	for i := range 7 {
		at := []*node{local, cloud}[i%2]
		at.clock = at.clock.Add(time.Duration(i/4) * time.Second)
		at.add(New{Content: fmt.Sprint(i), Done: i == 3})
	}
	local.take(cloud)
	all := local.list(Filter{})
	equal(t, "all", all, "0-1 0-2 1-1 1-2 0-3 1-3 0-4")
	done := true
	equal(t, "done", local.list(Filter{Done: &done}), "1-2")
	var joined []string
	for after := (sync.Place{}); ; {
		page, err := local.List(t.Context(), anna, Filter{}, after, 2)
		local.must(err)
		for _, todo := range page {
			joined, after = append(joined, todo.Ref.String()), todo.Place()
		}
		if len(page) < 2 {
			break
		}
	}
	equal(t, "page by page", strings.Join(joined, " "), all)
}

// A crash between the change and its commit leaves the row as it was.
func TestAnEditThatIsNotCommitted(t *testing.T) {
	n := newNode(t)
	todo := n.add(New{Content: "x"})
	text := "y"
	err := n.write(func(tx *sqlite.Tx) error {
		if _, _, err := n.EditTx(tx, anna, todo.Ref, Change{Content: &text}); err != nil {
			return err
		}
		if _, _, err := n.AddTx(tx, anna, New{Content: "z"}); err != nil {
			return err
		}
		return fmt.Errorf("killed")
	})
	equal(t, "error", fmt.Sprint(err), "killed")
	equal(t, "content", n.see(todo.Ref).Content, "x")
	equal(t, "todos", n.list(Filter{}), "0-1")
}

// What this version does not know of a row stays in it through an edit.
func TestAnEditKeepsWhatANewerVersionWrote(t *testing.T) {
	local, cloud := newNode(t), newPeer(t, "cloud", 1)
	todo := local.add(New{Content: "x"})
	local.must(local.write(func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`UPDATE todos SET remind = '15', extra = '{"colour":"red"}'`)
		return err
	}))
	cloud.take(local)
	done := true
	cloud.edit(todo, Change{Done: &done})
	local.take(cloud)
	equal(t, "kept", local.count(`SELECT remind = '15' AND extra = '{"colour":"red"}' AND done FROM todos`), 1)
}
