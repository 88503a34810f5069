package sync_test

import (
	"fmt"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

const days = 24 * time.Hour

// blank does all of the upkeep that there is to do, and returns in how many turns.
func (n *node) blank(alone bool) (turns int) {
	n.t.Helper()
	for more := true; more; turns++ {
		if turns == 100 {
			n.t.Fatal("there is always more to do")
		}
		n.write(func(tx *sqlite.Tx) (err error) { more, err = n.log.BlankTx(tx, alone); return err })
	}
	return turns
}

// onADay sets the nodes' clocks to noon of a day that the caller moves.
func onADay(nodes ...*node) *time.Time {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, n := range nodes {
		n.now = func() time.Time { return now }
	}
	return &now
}

func (n *node) text(r sync.Ref) string {
	n.t.Helper()
	return read[string](n, `SELECT content || notes || coalesce(due_on, '') || coalesce(extra, '') FROM todos WHERE origin = ? AND id = ?`, r.Origin, r.ID)
}

// A delete keeps its text for 30 days from when the peer has it, and nothing else of
// the row changes then: neither its stamp nor its place nor what it adds to a sum.
func TestDeletedRowLosesItsTextAMonthAfterThePeerHasIt(t *testing.T) {
	local, cloud := pair(t)
	now := onADay(local, cloud)
	r, lives := local.add("secret"), local.add("lives")
	local.edit(r, "notes", "notes")
	local.edit(r, "due_on", "2026-04-01")
	local.exec(`UPDATE todos SET extra = '{"later":"x"}' WHERE id = 1`)
	settle(t, local, cloud)
	local.remove(r)
	*now = now.Add(40 * days) // the peer does not have it yet
	local.blank(false)
	equal(t, "before the peer has it", local.text(r), `secretnotes2026-04-01{"later":"x"}`)
	settle(t, local, cloud)
	*now = now.Add(days)
	settle(t, local, cloud) // it comes back with the cursor on the day after
	for range 3 {           // of three cursors that were presented the oldest is where the reader surely is
		local.add("a page must follow: the cursor that is presented says how far the reader is")
		settle(t, local, cloud)
	}
	heard := *now
	for _, day := range []int{0, 15, 29} {
		*now = heard.Add(time.Duration(day) * days)
		local.blank(false)
		equal(t, fmt.Sprint("after ", day, " days"), local.text(r), `secretnotes2026-04-01{"later":"x"}`)
	}
	const stands = `SELECT group_concat(seq || ':' || updated_at || ':' || updated_by || ':' || deleted_at || ':' || seen || ':' || owner) FROM todos WHERE deleted_at IS NOT NULL`
	row := read[string](local, stands)
	before, err := local.log.Digest(t.Context(), 0)
	must(t, err)
	*now = heard.Add(30 * days)
	local.blank(false)
	equal(t, "after 30 days", local.text(r), "")
	equal(t, "what stands", read[string](local, stands), row)
	equal(t, "the one that lives", local.content(lives), "lives")
	after, err := local.log.Digest(t.Context(), 0)
	must(t, err)
	equal(t, "its sum", after.Tables["todos"], before.Tables["todos"])
	theirs, err := cloud.log.Digest(t.Context(), 0)
	must(t, err)
	equal(t, "the peer's sum", theirs.Tables["todos"], after.Tables["todos"])
	equal(t, "what moves", settle(t, local, cloud), 0)
	local.restart()
	equal(t, "the next number", local.add("next").String(), "0-6") // S:31
}

// S:31, S:35. After the text is gone the row is still deleted, for a node that was
// away for four months, and its number is still taken.
func TestBlankedRowStaysDeletedForANodeThatWasAway(t *testing.T) {
	local, cloud := pair(t)
	now := onADay(local, cloud)
	r := cloud.add("deleted while local is away")
	away := local.add("made while away")
	settle(t, local, cloud)
	cloud.remove(r)
	*now = now.Add(120 * days)
	cloud.exec(`INSERT INTO sync_marks (day, seq) VALUES (0, 1000)`) // as if local had read the delete, and was put back since
	cloud.blank(false)
	equal(t, "text at the cloud", cloud.text(r), "")
	local.edit(away, "content", "edited after four months")
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "at local", local.content(r), "")
	equal(t, "live at the cloud", cloud.live(), 1)
	equal(t, "the other way", cloud.content(away), "edited after four months")
	cloud.restart()
	equal(t, "the next number", cloud.add("next").String(), "1-2")
}

// S:34. A row that lost its text can be written anew.
func TestBlankedRowCanBeEdited(t *testing.T) {
	local, cloud := pair(t)
	now := onADay(local, cloud)
	r := local.add("gone")
	local.remove(r)
	settle(t, local, cloud)
	local.blank(true)
	*now = now.Add(30 * days)
	local.blank(true)
	equal(t, "text", local.text(r), "")
	equal(t, "text at the cloud", cloud.text(r), "gone")
	local.edit(r, "content", "back")
	quiet(t, local, cloud)
	equal(t, "at the cloud", cloud.content(r), "back")
	equal(t, "conflicts", len(cloud.conflicts("ann")), 0)
	local.remove(r)
	settle(t, local, cloud)
	*now = now.Add(29 * days)
	local.blank(true)
	equal(t, "text soon after it was deleted again", local.text(r), "back")
}

// A node without a peer counts from the day on which upkeep saw the delete.
func TestNodeAloneBlanksAfterAMonth(t *testing.T) {
	local, _ := pair(t)
	now := onADay(local)
	r := local.add("gone")
	local.remove(r)
	local.blank(true)
	for range 29 {
		*now = now.Add(days)
		local.blank(true)
		equal(t, "text", local.text(r), "gone")
	}
	*now = now.Add(days)
	local.blank(true)
	equal(t, "text after 30 days", local.text(r), "")
	equal(t, "marks that are kept", read[int](local, `SELECT count(*) FROM sync_marks`) <= 31, true)
}

// A turn changes few rows, so that it holds nobody up; and what was blanked is not
// looked at again.
func TestBlankingTakesTurns(t *testing.T) {
	local, _ := pair(t)
	now := onADay(local)
	local.many(450, 0)
	local.removeMany(1, 450)
	local.blank(true)
	*now = now.Add(30 * days)
	equal(t, "turns", local.blank(true), 3)
	equal(t, "with text", read[int](local, `SELECT count(*) FROM todos WHERE content <> ''`), 0)
	local.exec(`UPDATE todos SET content = 'planted' WHERE id = 7`)
	equal(t, "turns then", local.blank(true), 1)
	equal(t, "what was blanked once", local.text(sync.Ref{Origin: 0, ID: 7}), "planted")
}

// Facts are kept for 90 whole days of UTC, by both nodes alike; an older one is not
// taken, and none comes back.
func TestFactsAreKeptFor90Days(t *testing.T) {
	local, cloud := pair(t)
	now := onADay(local, cloud)
	purge := func(n *node) {
		t.Helper()
		for more := true; more; {
			n.write(func(tx *sqlite.Tx) (err error) { more, err = n.log.PurgeFactsTx(tx); return err })
		}
	}
	for i := range 250 {
		local.fact("fired", fmt.Sprint(i), nil)
	}
	*now = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	local.fact("fired", "of the next day", nil)
	settle(t, local, cloud)
	*now = time.Date(2026, 5, 30, 23, 59, 59, 0, time.UTC)
	purge(local)
	equal(t, "on the 90th day", read[int](local, `SELECT count(*) FROM facts`), 251)
	*now = now.Add(time.Second)
	purge(local)
	equal(t, "after it", read[int](local, `SELECT count(*) FROM facts`), 1)
	local.exec(`DELETE FROM sync_cursors`)
	settle(t, local, cloud)
	equal(t, "after the cloud sent them again", read[int](local, `SELECT count(*) FROM facts`), 1)
	equal(t, "told of", len(local.facts), 0)
	purge(cloud)
	same(t, local, cloud)
	r := local.add("later")
	settle(t, local, cloud)
	equal(t, "what is written then", cloud.content(r), "later")
}

// S:67. What upkeep and time take away makes no conflict and at most one reading.
func TestUpkeepMakesNoConflictAndNoReset(t *testing.T) {
	local, cloud := fencedPair(t)
	now := onADay(local, cloud)
	r := local.add("first")
	settle(t, local, cloud)
	local.edit(r, "content", "lost")
	cloud.skew = time.Second
	cloud.edit(r, "content", "stands")
	settle(t, local, cloud)
	equal(t, "conflicts", len(cloud.conflicts("ann")), 1)
	*now = now.Add(100 * days)
	for _, n := range []*node{local, cloud} {
		n.write(func(tx *sqlite.Tx) error { _, err := n.log.PurgeFactsTx(tx); return err })
		n.restart()
	}
	equal(t, "reset at local", local.page(cloud).Reset, "")
	equal(t, "reset at the cloud", cloud.page(local).Reset, "")
	for _, n := range []*node{local, cloud} {
		n.exec(`DELETE FROM sync_tokens`)
	}
	cloud.edit(r, "content", "edited")
	resets := 0
	for range 4 {
		for i, n := range []*node{local, cloud} {
			from := []*node{cloud, local}[i]
			p := n.page(from)
			if p.Reset != "" {
				resets++
			}
			must(t, n.apply(from, p))
		}
	}
	equal(t, "resets", resets, 2)
	quiet(t, local, cloud)
	equal(t, "conflicts then", read[int](local, `SELECT count(*) FROM facts`)+read[int](cloud, `SELECT count(*) FROM facts`), 0)
}

// The last delete of a log that is quiet from then on: that the reader waits at its end
// tells that it has it, without a page that follows, and without a write for each poll.
func TestTheLastDeleteOfAQuietLogLosesItsTextToo(t *testing.T) {
	local, cloud := pair(t)
	now := onADay(local, cloud)
	r := local.add("secret")
	settle(t, local, cloud)
	local.remove(r)
	cloud.page(local) // on the way, or lost
	local.blank(false)
	gone := read[int](local, `SELECT seq FROM todos`)
	if mark := read[int](local, `SELECT coalesce(max(seq), 0) FROM sync_marks`); mark >= gone {
		t.Error("before the delete has come it is marked as read, at", mark)
	}
	settle(t, local, cloud)
	settle(t, local, cloud)
	const kept = `SELECT group_concat(line) FROM (
		SELECT n || token || coalesce(presented_at, '') AS line FROM sync_tokens UNION ALL SELECT day || ':' || seq FROM sync_marks)`
	local.blank(false)
	written := read[string](local, kept)
	heard := *now
	for day := range 30 {
		*now = heard.Add(time.Duration(day) * days)
		settle(t, local, cloud)
		local.blank(false)
		cloud.blank(false)
		equal(t, fmt.Sprint("after ", day, " days"), local.text(r), "secret")
	}
	equal(t, "what was written for all those polls", read[string](local, kept), written)
	*now = heard.Add(30 * days)
	local.blank(false)
	cloud.blank(false)
	equal(t, "after 30 days", local.text(r), "")
	same(t, local, cloud)
}

// Who asks ahead with a cursor, and never comes back with it, has not said that it has
// what lies before.
func TestACursorThatCameOnceIsNoSignThatItsPageWasStored(t *testing.T) {
	local, cloud := pair(t)
	now := onADay(local, cloud)
	r := local.add("secret")
	local.remove(r)
	p := cloud.page(local)
	_, err := local.log.Page(t.Context(), p.Cursor, sync.PageRows) // ahead; then the reader dies
	must(t, err)
	for range 60 {
		local.blank(false)
		*now = now.Add(days)
	}
	equal(t, "text", local.text(r), "secret")
}

// What one peer has read says nothing of the one that comes in its place.
func TestANodeThatComesInThePeersPlaceHasReadNothing(t *testing.T) {
	local, cloud := pair(t)
	now := onADay(local, cloud)
	r := local.add("secret")
	local.remove(r)
	settle(t, local, cloud)
	settle(t, local, cloud)
	local.write(local.log.ForgetPeerTx)
	for range 60 {
		local.blank(false)
		*now = now.Add(days)
	}
	equal(t, "text", local.text(r), "secret")
}
