package sync_test

import (
	"fmt"
	"math/rand/v2"
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

// R:F5. A thousand random scripts on two nodes: both end equal, and each version that
// is not there is contained in the one that is, or among the conflicts.
func TestNothingIsLostSilentlyInRandomScripts(t *testing.T) {
	const seed, scripts, together = 20260329, 1000, 50
	local, cloud := pair(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
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
			text := fmt.Sprint(round, "-", step, n.name)
			n.edit(r, "content", text)
			last[n][r] = text
			if rnd.IntN(together) == 0 {
				settle(t, local, cloud)
				clear(last[local])
				clear(last[cloud])
			}
		}
		settle(t, local, cloud)
		for n, texts := range last {
			for r, text := range texts {
				lost := read[int](local, `SELECT count(*) FROM facts WHERE kind = 'conflict' AND body ->> '$.lost.content' = ?`, text)
				if text != local.content(r) && lost != 1 {
					t.Fatalf("seed %d, round %d: %q of %s is neither there nor among the conflicts", seed, round, text, n.name)
				}
			}
		}
	}
	same(t, local, cloud)
}
