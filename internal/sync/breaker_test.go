package sync_test

import (
	"fmt"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// herd makes so many todos at local and brings them to the cloud. The nodes' clocks
// stand at one moment.
func herd(t *testing.T, count int) (local, cloud *node, clock *time.Time) {
	t.Helper()
	local, cloud = pair(t)
	now := time.UnixMilli(1_800_000_000_000)
	local.now, cloud.now = func() time.Time { return now }, func() time.Time { return now }
	local.many(count, 0)
	settle(t, local, cloud)
	return local, cloud, &now
}

// removeMany deletes the rows of origin 0 with ids from first on, in one transaction.
func (n *node) removeMany(first, count int) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error {
		rows, err := sqlite.All(tx, func(row sqlite.Row) (h sync.Head, err error) { return h, row.Scan(h.Dest()...) },
			`SELECT `+sync.HeadColumns+` FROM todos WHERE origin = 0 AND id >= ? AND id < ?`, first, first+count)
		if err != nil {
			return err
		}
		at := tx.Millis()
		for _, h := range rows {
			n.log.EditTx(tx, &h)
			if _, err := tx.Exec(`UPDATE todos SET updated_at = ?, updated_by = ?, deleted_at = ?, seq = ?, seen = ? WHERE uid = ?`,
				h.UpdatedAt, h.UpdatedBy, at, h.Seq, string(h.Seen), h.UID[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (n *node) live() int {
	n.t.Helper()
	return read[int](n, `SELECT count(*) FROM todos WHERE deleted_at IS NULL`)
}

func (n *node) held() int {
	n.t.Helper()
	counts := n.log.QuarantineCounts()
	return counts[sync.HeldDelete]
}

func (n *node) decide(meant bool) (count int) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) (err error) { count, err = n.log.DecideHeldTx(tx, meant); return err })
	return count
}

// S:28, S:40. More deletes in one page than 50 and than a quarter of what lives are
// held, all of them; all else in the page is taken and the cursor moves.
func TestManyDeletesAtOnceAreHeld(t *testing.T) {
	for _, c := range []struct{ rows, deletes, held int }{
		{50, 50, 0}, // never fewer than 51
		{51, 51, 51},
		{60, 51, 51},
		{200, 50, 0},
		{203, 51, 51}, // 51 of 203 are more than a quarter
		{204, 51, 0},
		{400, 100, 0},
		{400, 101, 101},
		{404, 101, 0},
	} {
		t.Run(fmt.Sprint(c.deletes, " of ", c.rows), func(t *testing.T) {
			local, cloud, _ := herd(t, c.rows)
			cloud.removeMany(1, c.deletes)
			r := cloud.add("in the same page")
			p := local.page(cloud)
			must(t, local.apply(cloud, p))
			equal(t, "held", local.held(), c.held)
			equal(t, "live", local.live(), c.rows-c.deletes+c.held+1)
			equal(t, "the new one", local.content(r), "in the same page")
			equal(t, "entries of the next page", len(local.page(cloud).Entries), 0)
		})
	}
}

// Pages of an hour count together, also over a restart; what was held does not count.
func TestDeletesOfAnHourCountTogether(t *testing.T) {
	local, cloud, now := herd(t, 150)
	take := func(first, count, held int) {
		t.Helper()
		before := local.held()
		cloud.removeMany(first, count)
		local.pull(cloud)
		equal(t, fmt.Sprintf("held of %d from %d", count, first), local.held()-before, held)
	}
	take(1, 30, 0)
	*now = now.Add(30 * time.Minute)
	take(31, 20, 0)
	local.restart()
	*now = now.Add(29*time.Minute + 59*time.Second)
	take(51, 1, 1) // the 51st of an hour, of 150 that lived when it began
	take(52, 5, 5)
	*now = now.Add(time.Second)
	take(57, 30, 0) // with the 20 of half an hour ago
	take(87, 1, 1)
	*now = now.Add(30 * time.Minute)
	take(88, 20, 0) // those are an hour old by now
	take(108, 1, 1)
	*now = now.Add(-2 * time.Hour) // a clock that was set back begins an hour, too
	take(109, 20, 0)
}

// Deletes in small pages are no way around.
func TestPagesOfFewDeletesEachAreHeldTogether(t *testing.T) {
	local, cloud, _ := herd(t, 100)
	cloud.removeMany(1, 100)
	for {
		p := local.pageOf(cloud, 10)
		if len(p.Entries) == 0 {
			break
		}
		must(t, local.apply(cloud, p))
	}
	equal(t, "held", local.held(), 50)
	equal(t, "live", local.live(), 50)
}

// What is held stays so until a person has answered, however it comes again.
func TestHeldDeletesThatComeAgainStayHeld(t *testing.T) {
	local, cloud, now := herd(t, 60)
	cloud.removeMany(1, 60)
	local.pull(cloud)
	equal(t, "held", local.held(), 60)
	*now = now.Add(3 * time.Hour)
	local.restart()
	equal(t, "taken by a retry", local.retry("another version"), 0)
	local.exec(`DELETE FROM sync_cursors`) // the log is read from the start, in pages of few
	for {
		p := local.pageOf(cloud, 20)
		if len(p.Entries) == 0 {
			break
		}
		must(t, local.apply(cloud, p))
	}
	equal(t, "held after they came again", local.held(), 60)
	equal(t, "live", local.live(), 60)
	settle(t, local, cloud)
	equal(t, "held after all was read", local.held(), 60)
	equal(t, "live at the other node", cloud.live(), 0)
}

// They are meant: both nodes end without the rows.
func TestHeldDeletesThatAreMeantAreApplied(t *testing.T) {
	local, cloud, _ := herd(t, 60)
	cloud.removeMany(1, 55)
	settle(t, local, cloud)
	var told int
	local.tables[0].Applied = func(_ *sqlite.Tx, uids []sync.UID) error { told += len(uids); return nil }
	local.restart()
	equal(t, "decided", local.decide(true), 55)
	equal(t, "told of", told, 55)
	equal(t, "live", local.live(), 5)
	equal(t, "decided again", local.decide(true), 0)
	quiet(t, local, cloud)
	equal(t, "conflicts", len(local.conflicts("ann")), 0)
}

// S:34. They are not: the rows live on both nodes, and no later reading deletes them.
func TestHeldDeletesThatAreNotMeantAreUndone(t *testing.T) {
	local, cloud, now := herd(t, 60)
	*now = now.Add(time.Minute)
	cloud.removeMany(1, 55)
	settle(t, local, cloud)
	local.skew = -time.Hour // whatever the clock of who decides says
	equal(t, "decided", local.decide(false), 55)
	equal(t, "held", local.held(), 0)
	quiet(t, local, cloud)
	equal(t, "live", cloud.live(), 60)
	equal(t, "text", cloud.content(sync.Ref{Origin: 0, ID: 1}), "000000")
	equal(t, "conflicts", len(local.conflicts("ann"))+len(cloud.conflicts("ann")), 0)
	local.exec(`DELETE FROM sync_cursors`)
	cloud.exec(`DELETE FROM sync_cursors`)
	quiet(t, local, cloud)
	equal(t, "live after all was read again", local.live(), 60)
}

// What was edited or deleted here while its delete was held is left as it is.
func TestAnswerComesTooLateForRowsThatHaveChanged(t *testing.T) {
	for _, meant := range []bool{true, false} {
		local, cloud, now := herd(t, 60)
		cloud.removeMany(1, 60)
		settle(t, local, cloud)
		*now = now.Add(time.Minute)
		edited, removed := sync.Ref{Origin: 0, ID: 1}, sync.Ref{Origin: 0, ID: 2}
		local.edit(edited, "content", "edited since")
		local.remove(removed)
		local.decide(meant)
		quiet(t, local, cloud)
		equal(t, "edited", cloud.content(edited), "edited since")
		equal(t, "removed", cloud.content(removed), "")
		equal(t, "live", cloud.live(), map[bool]int{true: 1, false: 59}[meant])
	}
}

// Found by the simulator: of a row that was deleted on both nodes, the newer delete
// stands, whatever is answered; nothing is left for a comparison to mend.
func TestHeldDeleteOfARowThatWasDeletedHereTooIsTaken(t *testing.T) {
	for _, meant := range []bool{true, false} {
		local, cloud, now := herd(t, 60)
		cloud.skew = time.Hour
		cloud.removeMany(1, 60)
		settle(t, local, cloud)
		*now = now.Add(time.Minute)
		local.remove(sync.Ref{Origin: 0, ID: 1})
		local.decide(meant)
		quiet(t, local, cloud)
		same(t, local, cloud)
	}
}

// A newer version says more than the delete that is held: an edit at the other node
// which brought the row back, or one here that went there.
func TestNewerVersionClearsAHeldDelete(t *testing.T) {
	local, cloud, now := herd(t, 60)
	cloud.removeMany(1, 60)
	local.pull(cloud)
	*now = now.Add(time.Minute)
	back, here := sync.Ref{Origin: 0, ID: 1}, sync.Ref{Origin: 0, ID: 2}
	cloud.edit(back, "content", "brought back there")
	local.pull(cloud)
	equal(t, "held after one came back", local.held(), 59)
	equal(t, "its text", local.content(back), "brought back there")
	local.edit(here, "content", "edited here")
	settle(t, local, cloud)
	equal(t, "held after one was edited", local.held(), 58)
	equal(t, "its text there", cloud.content(here), "edited here")
	one := sync.Ref{Origin: 0, ID: 3}
	cloud.edit(one, "content", "x")
	cloud.remove(one) // deleted again, alone, and newer
	local.pull(cloud)
	equal(t, "held after one was deleted again", local.held() >= 57, true)
}

// An account that was removed takes its rows with it; a person who has many of them
// is no accident.
func TestDeletesOfAnAccountThatIsGoneAreNotHeld(t *testing.T) {
	local, cloud, _ := herd(t, 120)
	for _, n := range []*node{local, cloud} {
		n.exec(`UPDATE todos SET owner = 'bob' WHERE id > 60`)
	}
	local.known = func(owner string) (bool, error) { return owner != "bob", nil }
	local.restart()
	cloud.removeMany(61, 60)
	local.pull(cloud)
	equal(t, "held of one who is gone", local.held(), 0)
	equal(t, "live", local.live(), 60)
	cloud.removeMany(1, 60)
	local.pull(cloud)
	equal(t, "held of one who is here", local.held(), 60)
}

// Deletes of rows that are not here, or are deleted here, delete nothing.
func TestDeletesOfWhatIsNotThereAreNotCounted(t *testing.T) {
	local, cloud, _ := herd(t, 100)
	local.removeMany(1, 100)
	local.many(10, 0)
	cloud.removeMany(1, 100)
	settle(t, local, cloud)
	equal(t, "held", local.held()+cloud.held(), 0)
	fresh := newNode(t, "local", 0)
	fresh.pull(cloud)
	equal(t, "held by a node that is new", fresh.held(), 0)
	same(t, fresh, cloud)
}

// What a page brings besides does not make its deletes fewer.
func TestManyDeletesAreHeldAlsoAmongManyNewRows(t *testing.T) {
	local, cloud, _ := herd(t, 100)
	local.many(1000, 0)
	local.removeMany(1, 60)
	settle(t, local, cloud)
	equal(t, "held", cloud.held(), 60)
	equal(t, "live", cloud.live(), 1100)
}
