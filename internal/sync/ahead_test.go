package sync_test

import (
	"fmt"
	"testing"
	"time"

	"tandem/internal/sync"
)

func (n *node) ahead() int64 {
	n.t.Helper()
	v, err := n.log.Ahead(n.t.Context())
	must(n.t, err)
	return v
}

// S:18. What was stamped by a clock that was ahead is told at both nodes, also after a
// start, for as long as it is there.
func TestAStampOfMoreThanADayAheadIsTold(t *testing.T) {
	local, cloud := pair(t)
	now := onADay(local, cloud)
	local.add("of today")
	local.skew = 23 * time.Hour
	local.add("of tonight")
	settle(t, local, cloud)
	equal(t, "23 hours ahead", fmt.Sprint(cloud.ahead(), local.ahead()), "0 0")
	local.skew = 25 * time.Hour
	far := local.add("of the day after")
	settle(t, local, cloud)
	equal(t, "25 hours ahead, at the cloud", cloud.ahead(), int64(1))
	equal(t, "at local, by whose clock it is now", local.ahead(), int64(0))
	local.skew = 0
	local.restart()
	cloud.restart()
	equal(t, "after a start", fmt.Sprint(cloud.ahead(), local.ahead()), "1 1")
	cloud.edit(far, "content", "edited") // an edit contains what it edits, and is stamped later still
	settle(t, local, cloud)
	equal(t, "after an edit", fmt.Sprint(cloud.ahead(), local.ahead()), "1 1")
	*now = now.Add(2 * time.Hour)
	equal(t, "when it is less than a day", fmt.Sprint(cloud.ahead(), local.ahead()), "0 0")
	local.skew = 365 * 24 * time.Hour
	local.add("of next year")
	settle(t, local, cloud)
	equal(t, "another one", cloud.ahead(), int64(1))
	local.add("and another")
	settle(t, local, cloud)
	equal(t, "in words", sync.AheadInWords(cloud.ahead()), "2 entries say that they were written more than a day from now: a clock was wrong.")
}
