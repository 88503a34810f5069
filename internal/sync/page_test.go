package sync_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// many adds n todos in one transaction, all of one millisecond.
func (n *node) many(count int, size int) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error {
		for i := range count {
			if _, err := n.addTx(tx, fmt.Sprintf("%06d%s", i, strings.Repeat("x", size))); err != nil {
				return err
			}
		}
		return nil
	})
}

// S:3. Stamps say nothing about the order: a page ends by its place.
func TestRowsOfOneMillisecondComeInPages(t *testing.T) {
	local, cloud := pair(t)
	cloud.many(1200, 0)
	var sizes []int
	for {
		p := local.pageOf(cloud, 500)
		must(t, local.apply(cloud, p))
		if sizes = append(sizes, len(p.Entries)); len(p.Entries) == 0 {
			break
		}
	}
	equal(t, "page sizes", fmt.Sprint(sizes), "[500 500 200 0]")
	equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 1200)
	same(t, local, cloud)
}

// S:2. A row that is edited between two pages moves behind both.
func TestRowsThatMoveWhileTheLogIsReadAreNotPassedOver(t *testing.T) {
	local, cloud := pair(t)
	cloud.many(1100, 0)
	must(t, local.apply(cloud, local.pageOf(cloud, 1000)))
	cloud.edit(sync.Ref{Origin: 1, ID: 1}, "content", "read before, edited since")
	cloud.edit(sync.Ref{Origin: 1, ID: 1050}, "content", "edited before it was read")
	local.pull(cloud)
	equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 1100)
	equal(t, "the first", local.content(sync.Ref{Origin: 1, ID: 1}), "read before, edited since")
	equal(t, "the other", local.content(sync.Ref{Origin: 1, ID: 1050}), "edited before it was read")
}

func TestPageEndsByItsBytesAndHoldsOneEntryAtLeast(t *testing.T) {
	local, cloud := pair(t)
	cloud.many(25, 100<<10)
	big := cloud.add(strings.Repeat("y", 250<<10))
	cloud.fact("fired", "f1", strings.Repeat("z", 200<<10))
	wide := cloud.add(strings.Repeat("\x01", 64<<10)) // six bytes each on the wire
	cloud.edit(wide, "notes", strings.Repeat("\x01", 128<<10))
	cloud.add("small")
	pages := 0
	for {
		p := local.page(cloud)
		if len(p.Entries) == 0 {
			break
		}
		size := 0
		for _, e := range p.Entries {
			size += len(e)
		}
		if size > sync.PageBytes && len(p.Entries) > 1 {
			t.Errorf("page %d has %d bytes", pages, size)
		}
		must(t, local.apply(cloud, p))
		pages++
	}
	equal(t, "pages", pages, 5)
	equal(t, "the large one", len(local.content(big)), 250<<10)
	equal(t, "the wide one", len(local.content(wide)), 64<<10)
	same(t, local, cloud)
}

// All tables share one order, facts among them.
func TestPageFollowsTheOrderOfWritingOverAllTables(t *testing.T) {
	_, cloud := pair(t)
	cloud.add("1")
	cloud.fact("fired", "2", nil)
	r := cloud.add("3")
	cloud.write(func(tx *sqlite.Tx) error {
		h, err := cloud.log.AddTx(tx, "settings", "ann")
		must(t, err)
		_, err = tx.Exec(`INSERT INTO settings (`+sync.HeadColumns+`, tz) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '4')`, h.Args()...)
		return err
	})
	cloud.edit(r, "content", "5")
	var order []string
	for _, e := range cloud.entries() {
		for _, n := range []string{"1", "2", "3", "4", "5"} {
			if strings.Contains(string(e), `"content":"`+n+`"`) || strings.Contains(string(e), `"subject":"`+n+`"`) || strings.Contains(string(e), `"tz":"`+n+`"`) {
				order = append(order, n)
			}
		}
	}
	equal(t, "order", strings.Join(order, ""), "1245")
}

// S:8. No cursor is an error: the reader begins again, once, and is told why.
func TestCursorThatTheLogDidNotIssueBeginsAgainOnce(t *testing.T) {
	local, cloud := pair(t)
	cloud.add("milk")
	local.pull(cloud)
	good, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	part := strings.Split(good, ".")
	other := newNode(t, "other", 1)
	for name, cursor := range map[string]string{
		"garbage":                          "garbage",
		"long garbage":                     strings.Repeat("x.", 5000),
		"NUL and quotes":                   "a.\x00'\".b",
		"another incarnation":              other.log.Incarnation() + "." + part[1] + "." + part[2],
		"an unknown token":                 part[0] + "." + part[1] + ".0123456789abcdef01234567",
		"a token of another place":         part[0] + ".0." + part[2],
		"a place past the end":             part[0] + ".999999." + part[2],
		"a place past all numbers":         part[0] + ".99999999999999999999." + part[2],
		"a place before the start":         part[0] + ".-1." + part[2],
		"an unknown token past the end":    part[0] + ".999999.0123456789abcdef01234567",
		"a good cursor with more after it": good + ".x",
	} {
		t.Run(name, func(t *testing.T) {
			local.exec(`UPDATE sync_cursors SET cursor = ?`, cursor)
			p := local.page(cloud)
			if p.Reset == "" || len(p.Entries) != 1 {
				t.Fatalf("reset %q, %d entries", p.Reset, len(p.Entries))
			}
			must(t, local.apply(cloud, p))
			p = local.page(cloud)
			equal(t, "reset the second time", p.Reset, "")
			equal(t, "entries the second time", len(p.Entries), 0)
			r := cloud.add(name)
			equal(t, "entries of something new", local.pull(cloud), 1)
			equal(t, "the new one", local.content(r), name)
			cloud.exec(`DELETE FROM todos WHERE content = ?`, name)
			local.exec(`DELETE FROM todos WHERE content = ?`, name)
		})
	}
}

func TestUnknownCursorIntoAnEmptyLogBeginsAgainOnce(t *testing.T) {
	local, cloud := pair(t)
	local.exec(`INSERT INTO sync_cursors (peer, cursor) VALUES ('cloud', 'garbage')`)
	p := local.page(cloud)
	if p.Reset == "" || len(p.Entries) != 0 {
		t.Fatalf("%+v", p)
	}
	must(t, local.apply(cloud, p))
	equal(t, "reset the second time", local.page(cloud).Reset, "")
	r := cloud.add("milk")
	local.pull(cloud)
	equal(t, "what comes then", local.content(r), "milk")
}

// S:9. After a restore the log has given a place to two pages, and the token tells
// them apart.
func TestPlaceThatWasGivenOutTwiceIsKnownByItsToken(t *testing.T) {
	local, cloud := pair(t)
	for i := range 5 {
		cloud.add(fmt.Sprint(i))
	}
	local.pull(cloud)
	dir := t.TempDir()
	must(t, sqlite.Backup(t.Context(), dir, cloud.db))
	lost := cloud.add("lost by the restore")
	local.pull(cloud)
	must(t, cloud.db.Close())
	cloud.path = dir + "/todos.db"
	cloud.open()
	cloud.edit(sync.Ref{Origin: 1, ID: 1}, "content", "written after the restore") // at the same place
	p := local.page(cloud)
	if p.Reset == "" {
		t.Error("the cursor of before the restore was taken for good")
	}
	settle(t, local, cloud)
	equal(t, "the edit", local.content(sync.Ref{Origin: 1, ID: 1}), "written after the restore")
	equal(t, "what the restore lost", cloud.content(lost), "lost by the restore")
	equal(t, "the next number", cloud.add("made after it").String(), "1-7") // not that of the row that came back
	settle(t, local, cloud)
	same(t, local, cloud)
}

// S:6. A round in which nothing happened leaves no trace.
func TestEmptyPageWritesNothing(t *testing.T) {
	local, cloud := pair(t)
	cloud.add("milk")
	settle(t, local, cloud)
	writes := func(n *node) (all int) {
		n.write(func(tx *sqlite.Tx) (err error) {
			all, _, err = sqlite.One(tx, sqlite.Value[int], `SELECT total_changes()`)
			return err
		})
		return all
	}
	atLocal, atCloud := writes(local), writes(cloud)
	before, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	for range 10 {
		p := local.page(cloud)
		equal(t, "cursor", p.Cursor, before)
		must(t, local.apply(cloud, p))
		must(t, cloud.apply(local, cloud.page(local)))
	}
	equal(t, "changes at the reader", writes(local), atLocal)
	equal(t, "changes at the writer", writes(cloud), atCloud)
}

// A reader that comes back after a long silence, or whose answers are lost, is
// known by the token it last presented.
func TestTokenThatWasPresentedIsKeptHoweverManyFollow(t *testing.T) {
	local, cloud := pair(t)
	cloud.add("first")
	local.pull(cloud)
	cursor, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	for i := range 100 { // each answer is lost
		cloud.add(fmt.Sprint(i))
		p, err := cloud.log.Page(t.Context(), cursor, sync.PageRows)
		must(t, err)
		equal(t, "reset", p.Reset, "")
		equal(t, "entries", len(p.Entries), i+1)
	}
	if n := read[int](cloud, `SELECT count(*) FROM sync_tokens`); n > 66 {
		t.Error("tokens kept:", n)
	}
	equal(t, "entries in the end", local.pull(cloud), 100)
}

func TestTokensAreNotRepeated(t *testing.T) {
	_, cloud := pair(t)
	cloud.add("milk")
	seen := map[string]bool{}
	for range 20 {
		p, err := cloud.log.Page(t.Context(), "", sync.PageRows)
		must(t, err)
		if seen[p.Cursor] {
			t.Fatal(p.Cursor, "twice")
		}
		seen[p.Cursor] = true
	}
}

// S:5. A page that was read and not applied is read again; one that was applied and
// whose end is not known is applied again.
func TestPageIsReadAgainUntilItIsStored(t *testing.T) {
	local, cloud := pair(t)
	r := cloud.add("milk")
	_ = local.page(cloud) // the reader died here
	local.restart()
	p := local.page(cloud)
	must(t, local.apply(cloud, p))
	local.restart() // and here, before it heard that this was done
	_, err := local.log.Apply(t.Context(), "cloud", "", p.Cursor, p.Entries)
	must(t, err)
	equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 1)
	equal(t, "content", local.content(r), "milk")
	equal(t, "what is left", local.pull(cloud), 0)
}

// S:5, S:22. Rows, what is derived from them, and the cursor are one commit.
func TestPageWhoseDerivationFailsLeavesNothing(t *testing.T) {
	local, cloud := pair(t)
	broken := errors.New("broken")
	var told []string
	local.tables[0].Applied = func(tx *sqlite.Tx, uids []sync.UID) error {
		told = append(told, fmt.Sprint(len(uids)))
		if len(told) == 1 {
			return broken
		}
		return nil
	}
	local.restart()
	for i := range 3 {
		cloud.add(fmt.Sprint(i))
	}
	cloud.fact("fired", "f", nil)
	p := local.page(cloud)
	if err := local.apply(cloud, p); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 0)
	equal(t, "facts", read[int](local, `SELECT count(*) FROM facts`), 0)
	equal(t, "cursors", read[int](local, `SELECT count(*) FROM sync_cursors`), 0)
	must(t, local.apply(cloud, p))
	same(t, local, cloud)
	must(t, local.apply(cloud, p)) // again: nothing changed, so there is nothing to derive
	equal(t, "told of rows", strings.Join(told, " "), "3 3")
}

// The reader's position is moved by the page that follows it alone: a page that
// comes late must not take it back, nor over what was not read.
func TestCursorMovesFromWhereItIsOnly(t *testing.T) {
	local, cloud := pair(t)
	cloud.many(1200, 0)
	first := local.page(cloud)
	must(t, local.apply(cloud, first))
	second := local.page(cloud)
	must(t, local.apply(cloud, second))
	at, err := local.log.Apply(t.Context(), "cloud", "", first.Cursor, first.Entries)
	must(t, err)
	equal(t, "after a page that came late", at, second.Cursor)
	at, err = local.log.Apply(t.Context(), "cloud", "elsewhere", "far.ahead.x", nil)
	must(t, err)
	equal(t, "after a page from elsewhere", at, second.Cursor)
}
