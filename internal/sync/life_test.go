package sync_test

import (
	"fmt"
	"runtime"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// S:67. The tokens are lost and nothing else is: one reading from the start, and no
// conflict of it.
func TestLostTokensCostOneReadingFromTheStart(t *testing.T) {
	local, cloud := fencedPair(t)
	r := cloud.add("a")
	other := cloud.add("b")
	settle(t, local, cloud)
	life := cloud.log.Incarnation()
	cloud.exec(`DELETE FROM sync_tokens`)
	cloud.edit(r, "content", "edited after they were lost")
	p := local.page(cloud)
	equal(t, "reset", p.Reset, "cursor not issued by this log")
	equal(t, "entries", len(p.Entries), 2)
	if cloud.log.Incarnation() == life || cloud.log.Renewed() == "" {
		t.Error("the life goes on")
	}
	must(t, local.apply(cloud, p))
	resets := 0
	for range 5 {
		p := local.page(cloud)
		if p.Reset != "" {
			resets++
		}
		must(t, local.apply(cloud, p))
		cloud.pull(local)
	}
	equal(t, "resets after that", resets, 0)
	local.edit(r, "content", "edited on top")
	cloud.edit(other, "content", "edited in the new life")
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "conflicts", read[int](local, `SELECT count(*) FROM facts`), 0)
	equal(t, "the edit", cloud.content(r), "edited on top")
}

// What is written in a new life is signed by it: the old one's stamps may have been
// given to other contents.
func TestEditsOfANewLifeAreSignedByIt(t *testing.T) {
	local, cloud := fencedPair(t)
	r := cloud.add("a")
	settle(t, local, cloud)
	first := cloud.log.Incarnation()
	cloud.exec(`DELETE FROM sync_tokens`)
	local.page(cloud)
	second := cloud.log.Incarnation()
	cloud.edit(r, "content", "b")
	seen := read[string](cloud, `SELECT seen FROM todos`)
	if !strings.Contains(seen, "cloud/"+first) || !strings.Contains(seen, "cloud/"+second) {
		t.Errorf("lives %s and %s; signed: %s", first, second, seen)
	}
}

// Many readers find at once that their tokens are unknown, while rows are written:
// one life is begun, and each page that was handed out holds in it.
func TestOneLifeIsBegunHoweverManyPagesAskForIt(t *testing.T) {
	local, cloud := fencedPair(t)
	for i := range 50 {
		cloud.add(fmt.Sprint(i))
	}
	settle(t, local, cloud)
	cursor, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	cloud.exec(`DELETE FROM sync_tokens`)
	lives := map[string]bool{cloud.log.Incarnation(): true}
	pages := make([]sync.Page, 16)
	errs := make([]error, 17)
	var all gosync.WaitGroup
	for i := range pages {
		from := cursor
		if i%4 == 0 {
			from = "" // a reader that is new
		}
		all.Go(func() { pages[i], errs[i] = cloud.log.Page(t.Context(), from, 20) })
	}
	all.Go(func() {
		cloud.write(func(*sqlite.Tx) error { // the writer is busy until many have found their tokens unknown
			for range 10_000 {
				runtime.Gosched()
			}
			return nil
		})
		for range 20 {
			errs[16] = cloud.db.Write(t.Context(), func(tx *sqlite.Tx) error { _, err := cloud.addTx(tx, "meanwhile"); return err })
		}
	})
	all.Wait()
	for _, err := range errs {
		must(t, err)
	}
	lives[cloud.log.Incarnation()] = true
	for i, p := range pages {
		equal(t, "entries", len(p.Entries), 20)
		life, _, _ := strings.Cut(p.Cursor, ".")
		lives[life] = true
		if i%4 != 0 && (p.Reset == "" || life != cloud.log.Incarnation()) {
			t.Errorf("reset %q, of life %s", p.Reset, life)
		}
		if life != cloud.log.Incarnation() {
			continue // handed out before
		}
		next, err := cloud.log.Page(t.Context(), p.Cursor, 1)
		must(t, err)
		equal(t, "reset of a page that was just handed out", next.Reset, "")
	}
	equal(t, "lives", len(lives), 2)
	settle(t, local, cloud)
	same(t, local, cloud)
}

// A life begins where it was told to. Places and ids that were given out in vain, as
// by a write that was undone, do not make the next start believe the file is old.
func TestNewLifeOutlivesTheNextStarts(t *testing.T) {
	local, cloud := fencedPair(t)
	cloud.add("a")
	cloud.fact("fired", "f", nil)
	settle(t, local, cloud)
	cloud.skew = 2 * time.Second
	cloud.exec(`DELETE FROM facts`) // the place is empty now
	for range 3 {
		_ = cloud.db.Write(t.Context(), func(tx *sqlite.Tx) error { _, _ = cloud.addTx(tx, "undone"); return errUndone })
	}
	cloud.exec(`DELETE FROM sync_tokens`)
	p := local.page(cloud)
	equal(t, "reset", p.Reset, "cursor not issued by this log")
	life := cloud.log.Incarnation()
	cloud.restart()
	equal(t, "why another life was begun", cloud.log.Renewed(), "")
	equal(t, "life", cloud.log.Incarnation(), life)
}

// S:8. A cursor that means nothing asks for no new life: that is only for one which
// this life should have issued.
func TestGarbageBeginsNoLife(t *testing.T) {
	local, cloud := fencedPair(t)
	cloud.add("a")
	settle(t, local, cloud)
	life := cloud.log.Incarnation()
	for _, cursor := range []string{"garbage", "a.b.c", "..", "other.1.0123456789abcdef01234567", life + ".x.y", life + ".1"} {
		p, err := cloud.log.Page(t.Context(), cursor, 10)
		must(t, err)
		if p.Reset == "" || len(p.Entries) != 1 {
			t.Errorf("%q: reset %q, %d entries", cursor, p.Reset, len(p.Entries))
		}
	}
	equal(t, "life", cloud.log.Incarnation(), life)
}

// S:30. The writer is put back to a moment ago while the reader is at work, again
// and again.
func TestFileThatIsPutBackAgainAndAgainHealsByItself(t *testing.T) {
	local, cloud := fencedPair(t)
	n := 0
	for i := range 6 {
		old := cloud.kept()
		for range 3 {
			n++
			cloud.add(fmt.Sprint("c", n))
			n++
			local.add(fmt.Sprint("l", n))
			cloud.skew += time.Duration(700*i) * time.Millisecond
			round(local, cloud)
		}
		cloud.put(old)
		if i%2 == 0 {
			n++
			cloud.add(fmt.Sprint("c", n))
		}
	}
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "texts", read[int](local, `SELECT count(DISTINCT content) FROM todos WHERE alias_of IS NULL`), n)
	equal(t, "aside", read[int](local, `SELECT count(*) FROM sync_quarantine`)+read[int](cloud, `SELECT count(*) FROM sync_quarantine`), 0)
}

// S:5, S:22. A node that dies between the rows and the cursor has neither.
func TestDeathWhileAPageIsAppliedLeavesAllOrNothing(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("of local")
	settle(t, local, cloud)
	cloud.edit(r, "content", "of cloud")
	cloud.skew = time.Second
	local.edit(r, "content", "of local, and loses")
	cloud.edit(r, "content", "of cloud, and wins")
	p := local.page(cloud)
	died := false
	local.crash = func(point string) {
		if point == "sync.applying" && !died {
			died = true
			panic("died")
		}
	}
	local.restart()
	before := local.state()
	cursor, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	func() {
		defer func() { _ = recover() }()
		_ = local.apply(cloud, p)
	}()
	equal(t, "died", died, true)
	local.restart()
	equal(t, "what is there", local.state(), before)
	at, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	equal(t, "cursor", at, cursor)
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "what won", local.content(r), "of cloud, and wins")
	equal(t, "conflicts", read[int](local, `SELECT count(*) FROM facts WHERE kind = 'conflict'`), 1)
}
