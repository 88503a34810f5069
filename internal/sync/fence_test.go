package sync_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// fenceFile is what a fence says.
type fenceFile struct {
	Node        string           `json:"node"`
	Origin      int64            `json:"origin"`
	Incarnation string           `json:"incarnation"`
	Reserved    map[string]int64 `json:"reserved"`
	Served      int64            `json:"served"`
}

func (n *node) fenceFile() (f fenceFile) {
	n.t.Helper()
	b, err := os.ReadFile(n.fence)
	must(n.t, err)
	must(n.t, json.Unmarshal(b, &f))
	return f
}

// fencedPair is pair with a fence beside each file.
func fencedPair(t testing.TB) (local, cloud *node) {
	t.Helper()
	return fenced(t, "local", 0), fenced(t, "cloud", 1)
}

// blockFence keeps the fence from being written, as a full disk does, until the
// function it returns is called.
func (n *node) blockFence() (unblock func()) {
	n.t.Helper()
	must(n.t, os.Mkdir(n.fence+".new", 0o700))
	return func() { must(n.t, os.Remove(n.fence+".new")) }
}

func TestFreshNodeCountsFromOneAndGoesOnWithItsLife(t *testing.T) {
	local := fenced(t, "local", 0)
	life := local.log.Incarnation()
	equal(t, "why it was begun", local.log.Renewed(), "")
	equal(t, "the first", local.add("a").String(), "0-1")
	for range 3 {
		local.restart()
		equal(t, "life after a start", local.log.Incarnation(), life)
		equal(t, "why it was begun", local.log.Renewed(), "")
	}
	equal(t, "the second", local.add("b").String(), "0-2")
	f := local.fenceFile()
	equal(t, "whose the fence is", fmt.Sprint(f.Node, f.Origin, f.Incarnation), "local0"+life)
}

// Without what the fence knew, all ids that may have been given out are left out,
// also by the starts that follow before a row is made.
func TestFileWithoutAFenceCountsAsRestored(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"missing":       os.Remove,
		"empty":         func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"garbage":       func(path string) error { return os.WriteFile(path, []byte("\x00\xff{"), 0o600) },
		"cut short":     func(path string) error { return os.Truncate(path, 20) },
		"of other JSON": func(path string) error { return os.WriteFile(path, []byte(`{"a": 1}`), 0o600) },
		"a number":      func(path string) error { return os.WriteFile(path, []byte(`7`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			local, cloud := newNode(t, "local", 0), fenced(t, "cloud", 1)
			cloud.add("a")
			settle(t, local, cloud)
			before := cloud.log.Incarnation()
			must(t, cloud.db.Close())
			must(t, damage(cloud.fence))
			cloud.open()
			after := cloud.log.Incarnation()
			if after == before || cloud.log.Renewed() == "" {
				t.Fatalf("it goes on with its life; why: %q", cloud.log.Renewed())
			}
			cloud.restart()
			equal(t, "life after the next start", cloud.log.Incarnation(), after)
			equal(t, "why", cloud.log.Renewed(), "")
			if id := cloud.add("b").ID; id < 100_002 || id > 1_000_001 {
				t.Error("the next:", id)
			}
			p := local.page(cloud)
			equal(t, "what the reader is told", p.Reset, "cursor of another incarnation")
			must(t, local.apply(cloud, p))
			equal(t, "what it is told then", local.page(cloud).Reset, "")
			settle(t, local, cloud)
			same(t, local, cloud)
		})
	}
}

// A fence that is there and that nobody can read now is not one that is gone: to go
// on without it might give ids out twice.
func TestFenceThatCannotBeReadNowStopsTheStart(t *testing.T) {
	local := fenced(t, "local", 0)
	local.add("a")
	must(t, local.db.Close())
	must(t, os.Rename(local.fence, local.fence+".aside"))
	must(t, os.Mkdir(local.fence, 0o700))
	if err := local.start(); err == nil {
		t.Fatal("it started")
	}
	must(t, local.db.Close())
	must(t, os.Remove(local.fence))
	must(t, os.Rename(local.fence+".aside", local.fence))
	local.open()
	equal(t, "why another life was begun", local.log.Renewed(), "")
	equal(t, "the next", local.add("b").String(), "0-2")
}

// A fence that names a number that nothing counts to is refused by all that would go on
// from it. What it says to do gives the node numbers to go on with.
func TestFenceThatNamesANumberBeyondAllCountingIsRefused(t *testing.T) {
	const most = 1<<52 + 1<<40
	for name, c := range map[string]struct {
		member string
		id     int64
		sound  bool
	}{
		"reserved to the last":      {"reserved", 1 << 53, false},
		"reserved one too far":      {"reserved", most + 1, false},
		"reserved as far as may be": {"reserved", most, true},
		"reserved below nothing":    {"reserved", -1, false},
		"a floor too far":           {"floor", most + 1, false},
		"a floor":                   {"floor", most, true},
	} {
		t.Run(name, func(t *testing.T) {
			local := fenced(t, "local", 0)
			local.add("a")
			must(t, local.db.Close())
			before, err := os.ReadFile(local.fence)
			must(t, err)
			var all map[string]any
			must(t, json.Unmarshal(before, &all))
			all[c.member] = map[string]int64{"todos": c.id}
			b, err := json.Marshal(all)
			must(t, err)
			must(t, os.WriteFile(local.fence, b, 0o600))
			err = local.start()
			if c.sound {
				must(t, err)
				local.add("b")
				return
			}
			if !errors.Is(err, sync.ErrFence) || fault.From(err).Code != "fence_damaged" || !strings.Contains(err.Error(), local.fence) {
				t.Fatal(err)
			}
			for what, err := range map[string]error{
				"another look":    sync.Belongs(t.Context(), local.db, local.fence, "local", 0),
				"another restore": sync.ForceRestored(local.fence, map[string]int64{"todos": 5}),
			} {
				if !errors.Is(err, sync.ErrFence) {
					t.Errorf("%s: %v", what, err)
				}
			}
			must(t, local.db.Close())
			must(t, os.Rename(local.fence, local.fence+".aside"))
			local.open()
			if next := local.add("b"); next.ID <= 1 || next.ID > 2_000_000 {
				t.Errorf("the next is %s", next)
			}
		})
	}
}

// S:9, S:25, S:26, S:30. A file that was put back: what the peer has of it comes
// back at once, what was written since arrives, and no row takes another's place;
// both before and after it has written as much as it lost.
func TestFileThatWasPutBackLosesNothing(t *testing.T) {
	for name, writes := range map[string]int{"before it overtakes": 5, "after it overtook": 20} {
		for who := range 2 {
			t.Run(fmt.Sprint([]string{"local", "cloud"}[who], " ", name), func(t *testing.T) {
				local, cloud := fencedPair(t)
				nodes := []*node{local, cloud}
				victim, other := nodes[who], nodes[1-who]
				for i := range 10 {
					victim.add(fmt.Sprint("kept ", i))
				}
				settle(t, local, cloud)
				old, life := victim.kept(), victim.log.Incarnation()
				victim.skew = 2 * time.Second // a page is noted in the fence at most once a second
				var lost []sync.Ref
				for i := range 5 {
					lost = append(lost, victim.add(fmt.Sprint("lost ", i)))
				}
				victim.edit(sync.Ref{Origin: victim.origin, ID: 1}, "content", "edited and lost")
				settle(t, local, cloud)
				victim.put(old)
				if victim.log.Incarnation() == life {
					t.Error("it goes on with the life of the file that was lost")
				}
				equal(t, "why", victim.log.Renewed(), "the database is older than its fence")
				var made []sync.Ref
				for i := range writes {
					made = append(made, victim.add(fmt.Sprint("new ", i)))
				}
				victim.edit(sync.Ref{Origin: victim.origin, ID: 2}, "content", "edited since")
				resets := 0
				for range 4 {
					for _, n := range []*node{local, cloud} {
						from := nodes[1-n.origin]
						p := n.page(from)
						if p.Reset != "" {
							resets++
						}
						must(t, n.apply(from, p))
					}
				}
				equal(t, "resets", resets, 1)
				equal(t, "what is left to move", settle(t, local, cloud), 0)
				same(t, local, cloud)
				for _, n := range nodes {
					for i, r := range lost {
						equal(t, "lost at "+n.name, n.content(r), fmt.Sprint("lost ", i))
					}
					for i, r := range made {
						equal(t, "made at "+n.name, n.content(r), fmt.Sprint("new ", i))
					}
					equal(t, "edit that was lost at "+n.name, n.content(sync.Ref{Origin: victim.origin, ID: 1}), "edited and lost")
					equal(t, "edit at "+n.name, n.content(sync.Ref{Origin: victim.origin, ID: 2}), "edited since")
					equal(t, "rows at "+n.name, read[int](n, `SELECT count(*) FROM todos`), 15+writes)
				}
				equal(t, "conflicts", read[int](other, `SELECT count(*) FROM facts`), 0)
			})
		}
	}
}

// S:25, S:26. The same where the fence had not heard of the last page: the reader's
// token tells, and a row that took a lost one's key gives way.
func TestFileThatWasPutBackWithinASecondIsKnownByTheReadersToken(t *testing.T) {
	for name, writes := range map[string]int{"before it overtakes": 2, "after it overtook": 20} {
		t.Run(name, func(t *testing.T) {
			local, cloud := fencedPair(t)
			now := time.UnixMilli(1_800_000_000_000) // stands still: the fence hears of the first page alone
			cloud.now, local.now = func() time.Time { return now }, func() time.Time { return now }
			for i := range 10 {
				cloud.add(fmt.Sprint("kept ", i))
			}
			settle(t, local, cloud)
			old, life := cloud.kept(), cloud.log.Incarnation()
			served := cloud.fenceFile().Served
			first := cloud.add("0")
			local.pull(cloud)
			for i := range 5 {
				cloud.add(fmt.Sprint("lost ", i))
			}
			local.pull(cloud)
			f := cloud.fenceFile()
			f.Served = served // as if the last pages had been within a second of the one before
			b, err := json.Marshal(f)
			must(t, err)
			must(t, os.WriteFile(cloud.fence, b, 0o600))
			cloud.put(old)
			equal(t, "life after the start", cloud.log.Incarnation(), life)
			again := cloud.add("made since 0")
			equal(t, "the key given out twice", again, first)
			for i := range writes - 1 {
				cloud.add(fmt.Sprint("made since ", i+1))
			}
			p := local.page(cloud)
			equal(t, "what the reader is told", p.Reset, "cursor not issued by this log")
			equal(t, "why another life was begun", cloud.log.Renewed(), "the peer has read further than this database remembers")
			must(t, local.apply(cloud, p))
			settle(t, local, cloud)
			same(t, local, cloud)
			equal(t, "aside", read[int](local, `SELECT count(*) FROM sync_quarantine`)+read[int](cloud, `SELECT count(*) FROM sync_quarantine`), 0)
			equal(t, "rows", read[int](local, `SELECT count(*) FROM todos WHERE alias_of IS NULL`), 16+writes)
			equal(t, "texts", read[int](local, `SELECT count(DISTINCT content) FROM todos WHERE alias_of IS NULL`), 16+writes)
			equal(t, "the one that the reader had", local.content(first), "0")
		})
	}
}

// S:28. A file of two months ago: its old versions lose, and what it does not have
// is not deleted.
func TestFileOfTwoMonthsAgoNeitherRevertsNorDeletes(t *testing.T) {
	local, cloud := fencedPair(t)
	local.skew, cloud.skew = -60*24*time.Hour, -60*24*time.Hour
	gone, stays := local.add("gone"), local.add("first wording")
	settle(t, local, cloud)
	old := local.kept()
	local.skew, cloud.skew = 0, 0
	local.remove(gone)
	local.edit(stays, "content", "second wording")
	for i := range 30 {
		cloud.add(fmt.Sprint(i))
	}
	settle(t, local, cloud)
	local.put(old)
	settle(t, local, cloud)
	same(t, local, cloud)
	for _, n := range []*node{local, cloud} {
		equal(t, "deleted at "+n.name, n.content(gone), "")
		equal(t, "edited at "+n.name, n.content(stays), "second wording")
		equal(t, "live at "+n.name, read[int](n, `SELECT count(*) FROM todos WHERE deleted_at IS NULL`), 31)
	}
	equal(t, "conflicts", read[int](cloud, `SELECT count(*) FROM facts`), 0)
}

// S:40. The other node's file is replaced by one that is empty.
func TestNodeThatLostItsFileIsFilledAndCountsOn(t *testing.T) {
	local, cloud := fencedPair(t)
	for i := range 20 {
		local.add(fmt.Sprint("l", i))
		cloud.add(fmt.Sprint("c", i))
	}
	settle(t, local, cloud)
	cloud.put(empty(t))
	equal(t, "why another life was begun", cloud.log.Renewed(), "the database was lost")
	made := cloud.add("made before the first page")
	equal(t, "its key", made.String(), "1-1001")
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "live", read[int](cloud, `SELECT count(*) FROM todos WHERE deleted_at IS NULL`), 41)

	must(t, cloud.db.Close()) // the fence as well: all that tells of ids is the peer
	must(t, os.Remove(cloud.fence))
	must(t, os.WriteFile(cloud.path, empty(t), 0o600))
	_ = os.Remove(cloud.path + "-wal")
	cloud.open()
	highest, err := local.log.Highest(t.Context())
	must(t, err)
	must(t, cloud.log.Raise(t.Context(), highest))
	cloud.restart() // before a row tells of it
	equal(t, "the next", cloud.add("made after all was lost").String(), "1-1002")
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "live", read[int](cloud, `SELECT count(*) FROM todos WHERE deleted_at IS NULL`), 42)
}

func TestFileFromAnEarlierLifeBeginsAnother(t *testing.T) {
	cloud := fenced(t, "cloud", 1)
	cloud.add("a")
	old, first := cloud.kept(), cloud.log.Incarnation()
	must(t, cloud.db.Close())
	must(t, os.Remove(cloud.fence))
	cloud.open()
	second := cloud.log.Incarnation()
	cloud.put(old)
	equal(t, "why", cloud.log.Renewed(), "the database is from another life")
	if third := cloud.log.Incarnation(); third == first || third == second {
		t.Error("a life is lived twice")
	}
	equal(t, "the next", cloud.add("b").ID > 100_001, true)
}

// The fence is from after the first loss: what came back since then stands in it too.
func TestNodeThatLosesItsFileTwiceGivesOutNoKeyThatCameBack(t *testing.T) {
	local, cloud := newNode(t, "local", 0), fenced(t, "cloud", 1)
	cloud.add("a")
	settle(t, local, cloud)
	cloud.replace(empty(t))
	must(t, os.Remove(cloud.fence))
	cloud.open()
	settle(t, local, cloud)
	equal(t, "rows that came back", read[int](cloud, `SELECT count(*) FROM todos`), 1)
	cloud.put(empty(t))
	if r := cloud.add("b"); r.ID < 2 {
		t.Errorf("%s is given out again", r)
	}
}

// What the first life gave out is known to nobody here when the second one begins.
func TestBackupThatIsPutBackTwiceWithoutItsFenceGivesOutNoKeyTwice(t *testing.T) {
	local, cloud := newNode(t, "local", 0), fenced(t, "cloud", 1)
	cloud.add("a")
	old := cloud.kept()
	given := map[sync.Ref]bool{}
	for i := range 3 {
		cloud.replace(old)
		must(t, os.Remove(cloud.fence))
		cloud.open()
		r := cloud.add(fmt.Sprint("life ", i))
		if given[r] {
			t.Errorf("%s is given out again", r)
		}
		given[r] = true
		settle(t, local, cloud)
	}
	equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 4)
}

// Found by the simulator: an old call brings back some of what an earlier life gave out,
// and the next number is one that this life gave out after those.
func TestRowThatComesBackToABlindNodeSaysNothingOfTheLastOne(t *testing.T) {
	cloud := fenced(t, "cloud", 1)
	cloud.add("before the backup")
	cloud.replace(cloud.kept())
	must(t, os.Remove(cloud.fence))
	cloud.open()
	const lost = 5_000_000
	late := fmt.Sprintf(`{"table":"todos","origin":1,"id":%d,"uid":"000102030405060708090a0b0c0d0e0f","owner":"ann","created_at":5,"updated_at":5,"updated_by":"cloud","content":"of the life that is lost"}`, lost)
	_, err := cloud.log.Apply(t.Context(), "local", "", "", []json.RawMessage{json.RawMessage(late)})
	must(t, err)
	if r := cloud.add("new"); r.ID <= lost+100_000 {
		t.Errorf("%s is given out, so close above 1-%d", r, lost)
	}
}

// S:29. A copy has the name and the numbers of its original: it must not write.
func TestFileOfAnotherNodeIsRefusedUntilItIsAdopted(t *testing.T) {
	local, cloud := fencedPair(t)
	shared := local.add("of before the copy")
	settle(t, local, cloud)
	refused := func(what string, n *node) {
		t.Helper()
		err := n.start()
		if !errors.Is(err, sync.ErrAnotherNode) {
			t.Fatalf("%s: %v", what, err)
		}
		if f := fault.From(err); !strings.Contains(f.Detail, "adopt") {
			t.Errorf("%s: %s", what, f.Detail)
		}
		must(t, n.db.Close())
	}
	copied := fenced(t, "cloud", 1) // takes the place of the cloud, with the file of local
	file := local.kept()
	copied.replace(file)
	refused("the file is local's, the fence is the cloud's", copied)
	must(t, os.Remove(copied.fence))
	refused("the file is local's", copied)
	b, err := os.ReadFile(local.fence)
	must(t, err)
	must(t, os.WriteFile(copied.fence, b, 0o600))
	refused("both are local's", copied)
	copied.name = "local"
	refused("the name is right, the origin is not", copied)
	copied.name, copied.origin = "cloud", 0
	refused("the origin is right, the name is not", copied)
	must(t, os.WriteFile(copied.path, empty(t), 0o600))
	refused("an empty file beside the fence of another", copied)

	must(t, os.WriteFile(copied.path, file, 0o600))
	copied.name, copied.origin = "cloud", 1
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: copied.path, Schema: sqlite.Todos, Now: time.Now})
	must(t, err)
	must(t, sync.Adopt(t.Context(), db, copied.fence, "cloud", 1))
	must(t, db.Close())
	copied.open()
	if life := copied.log.Incarnation(); life == "" || life == local.log.Incarnation() {
		t.Errorf("its life is %q", life)
	}
	at, err := copied.log.Cursor(t.Context(), "cloud")
	must(t, err)
	equal(t, "cursor into its own log", at, "")
	mine, theirs := copied.add("of the copy"), local.add("of the original")
	equal(t, "whose number", mine.Origin, 1)
	copied.edit(shared, "content", "edited at the copy")
	settle(t, local, copied)
	same(t, local, copied)
	for _, n := range []*node{local, copied} {
		equal(t, "shared at "+n.name, n.content(shared), "edited at the copy")
		equal(t, "of the copy at "+n.name, n.content(mine), "of the copy")
		equal(t, "of the original at "+n.name, n.content(theirs), "of the original")
	}
	copied.restart()
	equal(t, "why another life was begun", copied.log.Renewed(), "")
}

// An id stands in the fence before it is in a row, so that no death in between lets
// it be given out twice.
func TestIDsAreReservedBeforeTheyAreUsed(t *testing.T) {
	local := fenced(t, "local", 0)
	reserved := func() int64 { t.Helper(); return local.fenceFile().Reserved["todos"] }
	_ = local.db.Write(t.Context(), func(tx *sqlite.Tx) error {
		h, err := local.addTx(tx, "never committed")
		must(t, err)
		equal(t, "reserved within the transaction", reserved(), 1000)
		equal(t, "id", h.ID, 1)
		return errUndone
	})
	local.many(998, 0)
	equal(t, "reserved for 999", reserved(), 1000)
	equal(t, "the last of the block", local.add("x").ID, 1000)
	equal(t, "reserved for 1000", reserved(), 1000)
	local.write(func(tx *sqlite.Tx) error {
		h, err := local.addTx(tx, "the first of the next block")
		equal(t, "id", h.ID, 1001)
		equal(t, "reserved within the transaction", reserved(), 2000)
		return err
	})
	local.put(empty(t)) // all is lost, but the fence
	equal(t, "the next", local.add("y").ID, 2001)
}

// The fence is written once for the pages of a second: each write waits for the disk.
func TestServedIsNotedOnceASecond(t *testing.T) {
	local, cloud := newNode(t, "local", 0), fenced(t, "cloud", 1)
	now := time.UnixMilli(1_800_000_000_000)
	cloud.now = func() time.Time { return now }
	served := func(after time.Duration) int64 {
		t.Helper()
		now = now.Add(after)
		cloud.add("x")
		local.pull(cloud)
		return cloud.fenceFile().Served
	}
	equal(t, "the first page", served(0), 1)
	equal(t, "half a second later", served(500*time.Millisecond), 1)
	equal(t, "just before a second", served(499*time.Millisecond), 1)
	equal(t, "after a second", served(time.Millisecond), 4)
	equal(t, "under a clock that was set back", served(-time.Hour), 5)
	before, err := os.Stat(cloud.fence)
	must(t, err)
	now = now.Add(time.Hour)
	cloud.entries() // from the start again: nothing that it does not know
	after, err := os.Stat(cloud.fence)
	must(t, err)
	equal(t, "written for a place it knows", os.SameFile(before, after), true)
}

func TestFenceThatCannotBeWrittenFailsTheAddAndLosesNothing(t *testing.T) {
	local, cloud := fencedPair(t)
	r := local.add("a")
	settle(t, local, cloud)
	local.many(999, 0) // the block is used up
	unblock := local.blockFence()
	for range 2 {
		if err := local.db.Write(t.Context(), func(tx *sqlite.Tx) error { _, err := local.addTx(tx, "b"); return err }); err == nil {
			t.Fatal("a row was made under an id that the fence does not know")
		}
	}
	local.edit(r, "content", "edited") // an edit needs no id
	equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 1000)
	unblock()
	equal(t, "the next", local.add("b").ID, 1001)
	settle(t, local, cloud)
	same(t, local, cloud)
}

// A page whose place the fence did not take is not handed out, and comes the next time.
func TestFenceThatCannotBeWrittenHoldsAPageBack(t *testing.T) {
	local, cloud := fencedPair(t)
	cloud.add("a")
	unblock := cloud.blockFence()
	if p, err := cloud.log.Page(t.Context(), "", 10); err == nil {
		t.Fatalf("%+v", p)
	}
	unblock()
	settle(t, local, cloud)
	same(t, local, cloud)
}

func TestLifeThatTheFenceDoesNotTakeIsNotBegun(t *testing.T) {
	fresh := prepared(t, "fresh", 0)
	fresh.fence = filepath.Join(filepath.Dir(fresh.path), "fence")
	unblock := fresh.blockFence()
	if fresh.start() == nil {
		t.Fatal("it started")
	}
	must(t, fresh.db.Close())
	unblock()
	fresh.open()
	equal(t, "the first", fresh.add("a").String(), "0-1")

	local, cloud := fencedPair(t)
	cloud.add("a")
	settle(t, local, cloud)
	cloud.exec(`DELETE FROM sync_tokens`)
	life, unblock := cloud.log.Incarnation(), cloud.blockFence()
	cursor, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	if _, err := cloud.log.Page(t.Context(), cursor, 10); err == nil {
		t.Fatal("a page was served under a life that no fence knows")
	}
	equal(t, "life", cloud.log.Incarnation(), life)
	unblock()
	cloud.add("b")
	settle(t, local, cloud)
	same(t, local, cloud)
	if cloud.log.Incarnation() == life {
		t.Error("no other life was begun")
	}
}

// S:25. Restore says beforehand that the file will be another, however new it looks.
func TestRestoreBeginsALifeWithIDsAboveThoseOfTheBackup(t *testing.T) {
	local, cloud := fencedPair(t)
	cloud.add("a")
	settle(t, local, cloud)
	file, life := cloud.kept(), cloud.log.Incarnation()
	must(t, cloud.db.Close())
	must(t, sync.ForceRestored(cloud.fence, map[string]int64{"todos": 5000, "unknown": 7}))
	cloud.open() // a crash before the file was replaced costs a reading from the start
	if cloud.log.Incarnation() == life {
		t.Error("the life goes on")
	}
	equal(t, "the next", cloud.add("b").ID, 5001)
	must(t, sync.ForceRestored(cloud.fence, map[string]int64{"todos": 3})) // lower than what is known
	cloud.put(file)
	if id := cloud.add("c").ID; id <= 5001 {
		t.Error("the next is", id)
	}
	settle(t, local, cloud)
	same(t, local, cloud)

	must(t, cloud.db.Close())
	must(t, os.Remove(cloud.fence))
	must(t, sync.ForceRestored(cloud.fence, map[string]int64{"todos": 5000})) // where there is none
	if _, err := os.Stat(cloud.fence); err == nil {
		t.Error("it made a fence that knows nothing")
	}
	cloud.open()
	if cloud.log.Renewed() == "" {
		t.Error("no other life was begun")
	}
}

// What the peer says of ids lifts ours, and nothing it says can use them up.
func TestIDsAreRaisedByWhatThePeerHas(t *testing.T) {
	local := fenced(t, "local", 0)
	raise := func(table string, of0, of1 int64) {
		t.Helper()
		must(t, local.log.Raise(t.Context(), map[string][2]int64{table: {of0, of1}}))
	}
	raise("todos", 41, 900) // 900 are the peer's own
	equal(t, "the next", local.add("a").ID, 42)
	raise("todos", 7, 0)
	equal(t, "after one that is lower", local.add("b").ID, 43)
	raise("todos", 1<<62, 0)
	raise("todos", -1, 0)
	raise("users", 5, 5)
	raise("settings; DROP TABLE todos", 5, 5)
	equal(t, "after what cannot be", local.add("c").ID, 44)
	raise("todos", 2000, 0)
	local.restart()
	equal(t, "after a start", local.add("d").ID, 2001)
	highest, err := local.log.Highest(t.Context())
	must(t, err)
	equal(t, "what it says itself", highest["todos"], [2]int64{2001, 0})
}
