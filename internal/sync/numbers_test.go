package sync_test

import (
	"fmt"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// How many entries the other node has not read, whatever it comes with.
func TestPendingCountsWhatAReaderHasNotRead(t *testing.T) {
	local, cloud := pair(t)
	pending := func() int64 {
		t.Helper()
		cursor, err := local.log.Cursor(t.Context(), "cloud")
		must(t, err)
		n, err := cloud.log.Pending(t.Context(), cursor)
		must(t, err)
		return n
	}
	equal(t, "of an empty log", pending(), 0)
	r := cloud.add("a")
	cloud.add("b")
	cloud.fact("fired", "f", nil)
	equal(t, "of one that was never read", pending(), 3)
	must(t, local.apply(cloud, local.pageOf(cloud, 2)))
	equal(t, "after a page", pending(), 1)
	local.pull(cloud)
	equal(t, "after all", pending(), 0)
	cloud.edit(r, "content", "edited")
	cloud.edit(r, "content", "edited again")
	equal(t, "after two edits of one row", pending(), 1)
	local.exec(`UPDATE sync_cursors SET cursor = 'garbage'`)
	equal(t, "to one whose cursor is void", pending(), 3)
}

// A node that leaves its peer and finds it again reads and is read from the start.
func TestPeerThatIsForgottenIsReadFromTheStart(t *testing.T) {
	local, cloud := fencedPair(t)
	r := local.add("a")
	cloud.add("b")
	settle(t, local, cloud)
	local.write(func(tx *sqlite.Tx) error { return local.log.ForgetPeerTx(tx) })
	cursor, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	equal(t, "cursor", cursor, "")
	local.edit(r, "content", "edited alone")
	equal(t, "entries read again", len(local.page(cloud).Entries), 2)
	quiet(t, local, cloud)
	equal(t, "the edit", cloud.content(r), "edited alone")
}

// Whatever numbers of its own the peer tells it of, a node goes on making rows, and the
// peer takes them.
func TestNoNumberThatComesFromThePeerUsesUpANodesOwn(t *testing.T) {
	const half = 1 << 52
	local, cloud := pair(t)
	for _, id := range []int64{half + 1, 1 << 53} {
		local.took(wire(t, map[string]any{"origin": 0, "id": id, "uid": sync.KeyedUID(fmt.Sprint(id))}))
		must(t, local.log.Raise(t.Context(), map[string][2]int64{"todos": {id, id}}))
	}
	equal(t, "set aside", read[int](local, `SELECT count(*) FROM sync_quarantine WHERE kind = 'refused'`), 2)
	equal(t, "the next number", local.add("next").String(), "0-1")
	local.took(wire(t, map[string]any{"origin": 0, "id": half, "uid": sync.KeyedUID("half")})) // as a lost file may be told
	next := local.add("beyond half")
	equal(t, "the number after the largest that is believed", next.ID, int64(half+1))
	settle(t, local, cloud)
	cloud.edit(next, "content", "edited there")
	settle(t, local, cloud)
	equal(t, "what comes back of it", local.content(next), "edited there")
	local.restart()
	equal(t, "after a restart", local.add("again").ID, int64(half+2))
}
