package sync_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// R:F3. One node deletes, the other edits offline and comes back after 120 days: the
// larger stamp wins on both, the loser can be seen, and age brings nothing back.
func TestWhatWasDeletedDoesNotReturnBecauseItIsOld(t *testing.T) {
	local, cloud := pair(t)
	gone, kept := local.add("deleted last"), local.add("edited last")
	settle(t, local, cloud)
	cloud.edit(gone, "content", "edited offline")
	local.skew = time.Hour
	local.remove(gone)
	local.remove(kept)
	cloud.skew = 2 * time.Hour
	cloud.edit(kept, "content", "edited offline")
	local.skew, cloud.skew = 120*24*time.Hour, 120*24*time.Hour
	for more := true; more; {
		local.write(func(tx *sqlite.Tx) (err error) { more, err = local.log.BlankTx(tx, false); return err })
	}
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "deleted last", cloud.content(gone), "")
	equal(t, "edited last", local.content(kept), "edited offline")
	equal(t, "losers", len(local.conflicts("ann")), 2)
	equal(t, "losers at the cloud", len(cloud.conflicts("ann")), 2)
}

// R:F4. With a clock that is an hour slow or a day fast, who has seen a version beats
// it, and who has not is in conflicts where he loses.
func TestWhoHasSeenAVersionBeatsItUnderAnyClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, 24 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			local, cloud := pair(t)
			r := cloud.add("of cloud")
			settle(t, local, cloud)
			local.skew = skew
			local.edit(r, "content", "seen and edited")
			settle(t, local, cloud)
			equal(t, "the cloud", cloud.content(r), "seen and edited")
			equal(t, "conflicts", len(cloud.conflicts("ann")), 0)
			cloud.edit(r, "content", "again at the cloud")
			local.edit(r, "content", "unseen")
			settle(t, local, cloud)
			same(t, local, cloud)
			equal(t, "conflicts then", len(local.conflicts("ann")), 1)
		})
	}
}

// R:F5. A thousand random scripts of edits, deletes, undeletes and of bringing back on two
// nodes: both end equal, and each text that is not there is contained in what is, or among
// the conflicts.
func TestNothingIsLostSilentlyInRandomScripts(t *testing.T) {
	const seed, scripts, together = 20260329, 1000, 50
	local, cloud := pair(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	did := map[string]int{}
	for round := range scripts / together {
		var rows [together]sync.Ref
		for i := range rows {
			rows[i] = local.add("start")
		}
		settle(t, local, cloud)
		last := map[*node]map[sync.Ref]string{local: {}, cloud: {}} // what each has written since they met
		for step := range 4 * together {
			n, r := []*node{local, cloud}[rnd.IntN(2)], rows[rnd.IntN(together)]
			n.skew = time.Duration(rnd.IntN(3)-1) * time.Minute
			switch was := n.content(r); rnd.IntN(6) {
			case 0:
				if was != "" {
					n.remove(r)
					delete(last[n], r) // its author has seen what it said
					did["removed"]++
				}
			case 1:
				if back, says := n.bringAnyBack(rnd); back != (sync.Ref{}) {
					if last[n][back] = says; says == "" { // a delete that had lost
						delete(last[n], back)
					}
					did["brought back"]++
				}
			default:
				last[n][r] = fmt.Sprint(round, "-", step, n.name)
				n.edit(r, "content", last[n][r])
				if did["edited"]++; was == "" {
					did["undeleted"]++
				}
			}
			if rnd.IntN(together) == 0 || step == 4*together-1 {
				settle(t, local, cloud)
				for n, texts := range last {
					if text := lostSilently(local, texts); text != "" {
						t.Fatalf("seed %d, round %d: %q of %s is neither there nor among the conflicts", seed, round, text, n.name)
					}
					clear(texts)
				}
			}
		}
	}
	same(t, local, cloud)
	for _, what := range []string{"removed", "undeleted", "brought back", "edited"} {
		if did[what] < scripts/20 {
			t.Errorf("%s: %d times", what, did[what])
		}
	}
}

// lostSilently returns a text that a row neither says nor has among its conflicts.
func lostSilently(n *node, texts map[sync.Ref]string) string {
	lost, err := sqlite.ReadAll(n.t.Context(), n.db, sqlite.Value[string], `SELECT coalesce(body ->> '$.lost.content', '') FROM facts WHERE kind = 'conflict'`)
	must(n.t, err)
	for r, text := range texts {
		if text != n.content(r) && !slices.Contains(lost, text) {
			return text
		}
	}
	return ""
}

// bringAnyBack makes what lost in some conflict the newest version, and returns of which
// row, where that changed it, and what it says then. No other row may change by it.
func (n *node) bringAnyBack(rnd *rand.Rand) (sync.Ref, string) {
	n.t.Helper()
	all, err := n.log.Conflicts(n.t.Context(), "ann", nil, 20)
	must(n.t, err)
	if len(all) == 0 {
		return sync.Ref{}, ""
	}
	c := all[rnd.IntN(len(all))]
	end, was := read[int64](n, `SELECT max(seq) FROM todos`), read[int64](n, `SELECT updated_at FROM todos WHERE (origin, id) = (?, ?)`, c.Ref.Origin, c.Ref.ID)
	r, err := n.bringBack("ann", c.UID)
	must(n.t, err)
	if r != c.Ref || read[int](n, `SELECT count(*) FROM todos WHERE seq > ? AND (origin, id) <> (?, ?)`, end, c.Ref.Origin, c.Ref.ID) > 0 {
		n.t.Fatalf("to bring %s back changed another row", c.Ref)
	}
	if read[int64](n, `SELECT updated_at FROM todos WHERE (origin, id) = (?, ?)`, r.Origin, r.ID) == was { // it says that already
		return sync.Ref{}, ""
	}
	return r, n.content(r)
}
