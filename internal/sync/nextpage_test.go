package sync_test

import (
	"testing"

	"tandem/internal/sqlite"
)

const countTokens = `SELECT count(*) FROM sync_tokens`

// What a reader waits for has its token by the commit that appends it.
func TestPageThatIsWaitedForCostsNoCommitOfItsOwn(t *testing.T) {
	local, cloud := pair(t)
	cloud.add("milk")
	local.pull(cloud) // to the end, where it waits
	cursor, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	before := read[int](cloud, countTokens)
	r := cloud.add("bread")
	equal(t, "tokens after the write", read[int](cloud, countTokens), before+1)
	p := local.page(cloud)
	equal(t, "tokens after the page", read[int](cloud, countTokens), before+1)
	again := local.page(cloud)
	equal(t, "after the same page once more", read[int](cloud, countTokens), before+2)
	if p.Cursor == again.Cursor {
		t.Error("one cursor was given out twice")
	}
	cloud.add("nobody waits")
	equal(t, "after a write that nobody waits for", read[int](cloud, countTokens), before+2)
	must(t, local.apply(cloud, p))
	equal(t, "at local", local.content(r), "bread")
	if now, err := local.log.Cursor(t.Context(), "cloud"); err != nil || now == cursor {
		t.Errorf("the cursor stays (%v)", err)
	}
	local.pull(cloud)
	same(t, local, cloud)
}

// More was appended than the token stands for: the page has one of its own, and a
// reader of another place too.
func TestPageThatEndsElsewhereHasATokenOfItsOwn(t *testing.T) {
	local, cloud := pair(t)
	cloud.add("milk")
	local.pull(cloud)
	cloud.add("bread")
	cloud.add("salt") // in a commit after
	p := local.page(cloud)
	equal(t, "entries", len(p.Entries), 2)
	must(t, local.apply(cloud, p))
	equal(t, "why it begins anew", local.page(cloud).Reset, "")
	cloud.add("rice")
	whole, err := cloud.log.Page(t.Context(), "", 100) // somebody reads all
	must(t, err)
	equal(t, "entries of all", len(whole.Entries), 4)
	local.pull(cloud)
	same(t, local, cloud)
}

// What is rolled back has made no token.
func TestWriteThatFailsMakesNoToken(t *testing.T) {
	local, cloud := pair(t)
	cloud.add("milk")
	local.pull(cloud)
	before := read[int](cloud, countTokens)
	failed := cloud.db.Write(t.Context(), func(tx *sqlite.Tx) error {
		if _, err := cloud.addTx(tx, "bread"); err != nil {
			return err
		}
		return sqlite.ErrUnfit
	})
	if failed == nil {
		t.Fatal("it does not fail")
	}
	equal(t, "tokens", read[int](cloud, countTokens), before)
	cloud.add("salt")
	local.pull(cloud)
	same(t, local, cloud)
}
