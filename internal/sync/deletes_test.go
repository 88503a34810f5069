package sync_test

import (
	"fmt"
	"testing"
	"time"

	"tandem/internal/sync"
)

// S:36. A delete here and an edit there, and after that nothing but syncing: it is
// over within two rounds, and no version is made of it.
func TestNoWarFollowsADelete(t *testing.T) {
	local, cloud := pair(t)
	gone, back := local.add("deleted, edited before"), local.add("deleted, edited after")
	settle(t, local, cloud)
	cloud.edit(gone, "content", "edited")
	local.skew = time.Second
	local.remove(gone)
	local.remove(back)
	cloud.skew = time.Minute
	cloud.edit(back, "content", "edited")
	round(local, cloud)
	round(local, cloud)
	const versions = `SELECT group_concat(id || ':' || updated_at || updated_by) || (SELECT count(*) FROM facts) || (SELECT max(seq) FROM (SELECT seq FROM todos UNION SELECT seq FROM facts)) FROM todos`
	atLocal, atCloud := read[string](local, versions), read[string](cloud, versions)
	for i := range 100 {
		if n := round(local, cloud); n != 0 {
			t.Fatalf("round %d moved %d entries", i, n)
		}
	}
	equal(t, "versions at local", read[string](local, versions), atLocal)
	equal(t, "versions at the cloud", read[string](cloud, versions), atCloud)
	same(t, local, cloud)
	equal(t, "the one that was deleted last", cloud.content(gone), "")
	equal(t, "the one that was edited last", local.content(back), "edited")
	equal(t, "conflicts", len(local.conflicts("ann")), 2)
}

// S:37. Deletes made without a link, over a restart, and a page that was lost on the
// way: they arrive.
func TestDeletesMadeWithoutALinkArrive(t *testing.T) {
	local, cloud := pair(t)
	var refs []sync.Ref
	for i := range 45 {
		refs = append(refs, local.add(fmt.Sprint(i)))
	}
	settle(t, local, cloud)
	for _, r := range refs[:40] {
		local.remove(r)
	}
	local.restart()
	_ = cloud.page(local) // the answer is lost
	local.restart()
	p := cloud.page(local)
	p.Cursor = "" // it is applied, and how far it went is lost
	must(t, cloud.apply(local, p))
	cloud.restart()
	quiet(t, local, cloud)
	equal(t, "live", cloud.live(), 5)
	cloud.edit(refs[44], "content", "alive")
	quiet(t, local, cloud)
	equal(t, "live then", local.live(), 5)
}

// A row that cannot be sent can be deleted: its delete says nothing of the text, and
// the sums of both nodes agree about it.
func TestDeleteOfARowThatCannotBeSentArrives(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("sound")
	settle(t, local, cloud)
	local.exec(`UPDATE todos SET notes = CAST(x'ff' AS TEXT)`)
	local.edit(r, "tz", "Europe/Berlin")
	settle(t, local, cloud)
	equal(t, "aside", local.aside(), "unencodable todos 0-1")
	local.remove(r)
	settle(t, local, cloud)
	equal(t, "at the cloud", cloud.live(), 0)
	equal(t, "aside then", local.aside(), "")
	a, err := local.log.Digest(t.Context(), 0)
	must(t, err)
	b, err := cloud.log.Digest(t.Context(), 0)
	must(t, err)
	equal(t, "sum", b.Tables["todos"], a.Tables["todos"])
	local.edit(r, "notes", "mended")
	quiet(t, local, cloud)
	equal(t, "brought back", cloud.content(r), "sound")
}
