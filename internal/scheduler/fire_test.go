package scheduler

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"tandem/internal/push"
	"tandem/internal/sqlite"
)

func TestAOneShotRingsOnceAtItsTime(t *testing.T) { // E09
	n := newNode(t, "2026-05-06T08:00:00Z")
	n.homes[anna] = "Europe/Berlin"
	m := n.add(Draft{Content: "call May", TriggerAt: "2026-05-06T11:00"})
	n.tick("2026-05-06T08:59:59.999Z")
	n.rang()
	n.tick("2026-05-06T09:00:00Z")
	n.tick("2026-05-06T09:00:30Z")
	n.rang("2026-05-06T09:00:00Z call May")

	r := n.rings()[0].Notice
	equal(t, r.Owner, anna)
	equal(t, r.Kind, "ring")
	equal(t, r.TTL, 24*time.Hour)
	equal(t, r.Zone, "Europe/Berlin")
	equal(t, r.DueAt, instant(t, "2026-05-06T09:00:00Z"))
	told := n.facts(Fired)
	equal(t, len(told), 1)
	equal(t, told[0].Reminder, m.UID)
	equal(t, told[0].Text, "call May")
	equal(t, told[0].DueAt, r.DueAt.UnixMilli())
	n.next(m, "")
	equal(t, n.get(m).UpdatedAt, m.UpdatedAt) // ringing is no edit, and beats none
	equal(t, n.get(m).Seq, m.Seq)
}

func TestARecurringMessageRingsAtEachOccurrence(t *testing.T) {
	n := newNode(t, noon)
	n.add(Draft{Content: "x", CronExpr: "30 12 * * *", Zone: "UTC"})
	n.tick("2026-05-06T12:30:00Z")
	n.tick("2026-05-07T12:30:00Z")
	n.rang("2026-05-06T12:30:00Z x", "2026-05-07T12:30:00Z x")
	equal(t, n.rings()[0].TTL, 4*time.Hour)
	equal(t, n.rings()[0].FireID == n.rings()[1].FireID, false)
}

func TestClockChangesRingOnce(t *testing.T) {
	t.Run("R:A1 an hour that does not exist", func(t *testing.T) {
		n := newNode(t, "2026-03-07T17:00:00Z")
		m := n.add(Draft{Content: "x", CronExpr: "30 2 * * *", Zone: "America/New_York"})
		n.tick("2026-03-08T07:30:00Z")
		n.rang("2026-03-08T07:30:00Z x")
		n.next(m, "2026-03-09T06:30:00Z")
	})
	t.Run("R:A3 restarted before an hour that does not exist", func(t *testing.T) {
		n := newNode(t, "2026-03-07T17:00:00Z")
		n.add(Draft{Content: "x", CronExpr: "30 2 * * *", Zone: "America/New_York"})
		n.tick("2026-03-08T07:10:00Z")
		n.restart()
		n.tick("2026-03-08T07:10:01Z")
		n.rang()
		n.tick("2026-03-08T07:30:00Z")
		n.rang("2026-03-08T07:30:00Z x")
	})
	t.Run("R:A3 restarted within the hour that repeats", func(t *testing.T) {
		n := newNode(t, "2026-10-31T16:00:00Z")
		m := n.add(Draft{Content: "x", CronExpr: "30 1 * * *", Zone: "America/New_York"})
		n.tick("2026-11-01T05:30:00Z")
		n.wall = instant(t, "2026-11-01T06:10:00Z")
		n.restart()
		for _, at := range []string{"2026-11-01T06:10:00Z", "2026-11-01T06:30:00Z", "2026-11-01T07:30:00Z"} {
			n.tick(at)
		}
		n.rang("2026-11-01T05:30:00Z x")
		n.next(m, "2026-11-02T06:30:00Z")
	})
	t.Run("R:A4 a day without a midnight", func(t *testing.T) {
		n := newNode(t, "2026-09-05T12:00:00Z")
		n.add(Draft{Content: "x", CronExpr: "0 0 * * *", Zone: "America/Santiago"})
		n.tick("2026-09-06T03:59:59Z")
		n.rang()
		n.tick("2026-09-06T04:00:00Z")
		n.rang("2026-09-06T04:00:00Z x")
	})
}

func TestARestartRingsNothingAgain(t *testing.T) { // R:B1
	n := newNode(t, "2026-05-06T12:00:00Z")
	n.add(Draft{Content: "x", CronExpr: "0 22 * * *"})
	n.tick("2026-05-06T22:00:00Z")
	n.wall = instant(t, "2026-05-06T22:30:00Z")
	n.restart()
	n.must(n.round())
	n.rang("2026-05-06T22:00:00Z x")
	equal(t, len(n.facts(Fired)), 1)
}

func TestWhatFellDueWhileTheNodeWasDownRingsLate(t *testing.T) { // R:B2
	t.Run("R:B2 a restart over the minute", func(t *testing.T) {
		n := newNode(t, "2026-05-06T08:29:47Z")
		n.add(Draft{Content: "job", CronExpr: "30 8 * * *"})
		n.add(Draft{Content: "once", TriggerAt: "2026-05-06T08:30:02Z"})
		n.wall = instant(t, "2026-05-06T08:31:05Z")
		n.restart()
		n.must(n.round())
		n.rang("2026-05-06T08:31:05Z job", "2026-05-06T08:31:05Z once")
		equal(t, n.rings()[0].DueAt, instant(t, "2026-05-06T08:30:00Z")) // from which the outbox says how late it is
	})
	t.Run("R:B2 three days", func(t *testing.T) {
		n := newNode(t, "2026-05-05T07:00:00Z")
		n.homes[anna] = "America/New_York"
		m := n.add(Draft{Content: "job", CronExpr: "30 8 * * *"})
		n.add(Draft{Content: "once", TriggerAt: "2026-05-06T08:30"})
		n.tick("2026-05-07T12:40:00Z")
		n.rang("2026-05-07T12:40:00Z job (2 earlier missed)",
			"2026-05-07T12:40:00Z once")
		equal(t, n.facts(Fired)[0].Earlier, 2)
		n.next(m, "2026-05-08T12:30:00Z")
	})
	t.Run("three months of minutes", func(t *testing.T) {
		n := newNode(t, "2026-02-10T12:00:00Z")
		m := n.add(Draft{Content: "job", CronExpr: "* * * * *"})
		n.add(Draft{Content: "bursts", CronExpr: "*/2 7 * * 1"})
		began := time.Now()
		n.tick("2026-05-06T12:00:30Z")
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		n.rang("2026-05-06T12:00:30Z job (100 or more earlier missed)",
			"2026-05-06T12:00:30Z bursts (100 or more earlier missed)")
		equal(t, n.rings()[0].DueAt, instant(t, "2026-05-06T12:00:00Z"))
		equal(t, n.rings()[1].DueAt, instant(t, "2026-05-04T07:58:00Z"))
		n.next(m, "2026-05-06T12:01:00Z")
	})
	t.Run("just as many as are counted", func(t *testing.T) {
		n := newNode(t, "2026-05-06T12:00:00Z")
		n.add(Draft{Content: "job", CronExpr: "* * * * *"})
		n.tick("2026-05-06T13:40:00Z")
		n.rang("2026-05-06T13:40:00Z job (99 earlier missed)")
		n.tick("2026-05-06T15:21:00Z")
		n.rang("2026-05-06T13:40:00Z job (99 earlier missed)", "2026-05-06T15:21:00Z job (100 or more earlier missed)")
	})
}

func TestWhatIsOlderThanTheFactsNeverRings(t *testing.T) {
	n := newNode(t, "2026-01-01T12:00:00Z")
	old := n.add(Draft{Content: "old", TriggerAt: "2026-01-02T12:00:00Z"})
	n.add(Draft{Content: "not quite", TriggerAt: "2026-01-02T12:00:01Z"})
	yearly := n.add(Draft{Content: "yearly", CronExpr: "0 9 3 1 *"})
	n.add(Draft{Content: "daily", CronExpr: "0 9 * * *"})
	n.tick("2026-04-02T12:00:00Z") // 90 days after the first
	n.rang("2026-04-02T12:00:00Z daily (89 earlier missed)", "2026-04-02T12:00:00Z not quite", "2026-04-02T12:00:00Z yearly")
	missed := n.facts(Missed)
	equal(t, len(missed), 1)
	equal(t, missed[0].Text, "old")
	equal(t, missed[0].Reminder, old.UID)
	n.next(old, "")
	n.next(yearly, "2027-01-03T09:00:00Z")

	t.Run("of a recurring one too", func(t *testing.T) {
		n.tick("2027-06-01T12:00:00Z")
		equal(t, len(n.facts(Missed)), 2)
		n.next(yearly, "2028-01-03T09:00:00Z")
	})
	t.Run("and one that comes from the peer so late is not told as missed: it may have rung", func(t *testing.T) {
		n.receive(peerRow(1, "2026-01-01T12:00:00Z", fmt.Sprintf(`"trigger_at":%d`, instant(t, "2026-01-02T12:00:00Z").UnixMilli())))
		n.tick("2027-06-01T12:00:01Z")
		equal(t, len(n.facts(Missed)), 2)
	})
}

func TestAClockThatIsSetBackRingsNothingTwice(t *testing.T) {
	n := newNode(t, noon)
	hourly := n.add(Draft{Content: "hourly", CronExpr: "0 * * * *"})
	once := n.add(Draft{Content: "once", TriggerAt: "2026-05-06T13:00:00Z"})
	n.tick("2026-05-06T13:00:00Z")
	n.wall = instant(t, "2026-05-06T12:30:00Z")
	n.restart()
	n.tick("2026-05-06T12:30:00Z")
	n.edit(once, Change{Content: ptr("other words")})
	n.tick("2026-05-06T13:00:00Z")
	n.rang("2026-05-06T13:00:00Z hourly", "2026-05-06T13:00:00Z once")
	n.tick("2026-05-06T14:00:00Z")
	equal(t, len(n.rings()), 3)
	n.next(hourly, "2026-05-06T15:00:00Z")
}

func TestAClockThatWasAheadSilencesNothing(t *testing.T) {
	n := newNode(t, "2026-05-06T12:30:00Z")
	m := n.add(Draft{Content: "x", CronExpr: "0 * * * *"})
	n.tick("2026-05-06T13:00:00Z")
	n.tick("2027-05-06T18:30:00Z") // the clock is a year ahead
	n.tick("2026-05-06T13:01:00Z")
	n.next(m, "2026-05-06T14:00:00Z")
	n.tick("2026-05-06T14:00:00Z")
	n.tick("2026-05-06T15:00:00Z")
	n.rang("2026-05-06T13:00:00Z x", "2026-05-06T14:00:00Z x", "2026-05-06T15:00:00Z x",
		"2027-05-06T18:30:00Z x (100 or more earlier missed)")
	n.tick("2027-05-06T17:59:00Z") // when that time really comes
	n.tick("2027-05-06T18:30:00Z")
	n.tick("2027-05-06T19:00:00Z")
	rings := n.rings()
	equal(t, len(rings), 6)
	equal(t, rings[5].DueAt, instant(t, "2027-05-06T19:00:00Z"))
}

func TestNothingRingsThatAnyNewerOneHasStoodFor(t *testing.T) {
	n := newNode(t, "2026-05-06T08:30:00Z")
	m := n.add(Draft{Content: "x", CronExpr: "0 * * * *"})
	n.tick("2026-05-06T14:30:00Z") // the clock is ahead
	n.tick("2026-05-06T08:31:00Z")
	n.next(m, "2026-05-06T09:00:00Z")
	n.tick("2026-05-06T14:10:00Z") // and after it was set right the node was down
	n.rang("2026-05-06T14:30:00Z x (5 earlier missed)")
	equal(t, len(n.facts(Missed)), 0)
	n.next(m, "2026-05-06T15:00:00Z")
}

func TestTheNewestThatHasNotRungRings(t *testing.T) {
	n := newNode(t, "2026-06-07T02:30:00Z")
	n.homes[anna] = "Europe/Berlin"
	m := n.add(Draft{Content: "x", CronExpr: "0 5,6,7 * * *"})
	n.tick("2026-06-07T04:00:30Z") // 06:00, which stands for 05:00 too
	n.homes[anna] = "Atlantic/Azores"
	n.must(n.db.Write(t.Context(), func(tx *sqlite.Tx) error { return n.store.table.MovedTx(tx, anna) }))
	n.tick("2026-06-07T06:10:00Z") // down for 05:00, and for 06:00, which has rung
	n.rang("2026-06-07T04:00:30Z x (1 earlier missed)", "2026-06-07T06:10:00Z x")
	equal(t, n.rings()[1].DueAt, instant(t, "2026-06-07T05:00:00Z"))
	n.next(m, "2026-06-07T07:00:00Z")
}

func TestAPlanThatIsOutOfDateRingsNothing(t *testing.T) {
	n := newNode(t, noon)
	m := n.add(Draft{Content: "x", CronExpr: "0 14 * * *"})
	n.must(n.db.Write(t.Context(), func(tx *sqlite.Tx) error { // as under the zone rules of an older build
		_, err := tx.Exec(`UPDATE scheduled_messages SET next_fire_at = ?`, instant(t, "2026-05-06T13:00:00Z").UnixMilli())
		return err
	}))
	n.tick("2026-05-06T13:00:00Z")
	n.rang()
	equal(t, len(n.facts(Missed)), 0)
	n.next(m, "2026-05-06T14:00:00Z")
}

func TestAFailingReminderDoesNotStopTheOthers(t *testing.T) { // R:B16
	for _, c := range []struct {
		name   string
		refuse func() error
	}{
		{"R:B16 an error", func() error { return errors.New("no") }},
		{"a panic", func() error { panic("no") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, noon)
			for i := range 3 {
				n.addFor(fmt.Sprintf("01USER%020d", i), Draft{Content: fmt.Sprint("job ", i), CronExpr: "0 13 * * *"})
			}
			n.addFor("01USER00000000000000000002", Draft{Content: "same minute", CronExpr: "0 13 * * *"})
			n.refuse = func(_ *sqlite.Tx, notice push.Notice) error {
				if notice.Body == "job 0" {
					return c.refuse()
				}
				return nil
			}
			n.tick("2026-05-06T12:59:50Z")
			n.wall = instant(t, "2026-05-06T13:01:00Z") // a tick was skipped
			if err := n.scheduler.Tick(t.Context()); err == nil {
				t.Error("the failure is told to nobody")
			}
			n.rang("2026-05-06T13:01:00Z job 1", "2026-05-06T13:01:00Z job 2", "2026-05-06T13:01:00Z same minute")
			equal(t, len(n.facts(Fired)), 3)
			n.refuse = nil
			n.tick("2026-05-06T13:20:00Z")
			equal(t, len(n.rings()), 4)
		})
	}
}

func TestMoreThanABatchRings(t *testing.T) {
	n := newNode(t, noon)
	const many = 2*batch + 50
	n.must(n.db.Write(t.Context(), func(tx *sqlite.Tx) error {
		for i := range many {
			if _, _, err := n.store.AddTx(tx, anna, Draft{Content: fmt.Sprint(i), TriggerAt: "2026-05-06T13:00:00Z"}); err != nil {
				return err
			}
		}
		return nil
	}))
	n.refuse = func(_ *sqlite.Tx, notice push.Notice) error { // more than a batch of them at the front
		if len(notice.Body) < 3 || notice.Body < "120" {
			return errors.New("no")
		}
		return nil
	}
	n.wall = instant(t, "2026-05-06T13:00:00Z")
	if err := n.scheduler.Tick(t.Context()); err == nil {
		t.Error("no error")
	}
	equal(t, len(n.rings()), many-120)
	n.refuse = nil
	n.tick("2026-05-06T13:00:01Z")
	equal(t, len(n.rings()), many)
}

func TestTheRemindersOfABannedOwnerWait(t *testing.T) { // E10
	n := newNode(t, noon)
	n.add(Draft{Content: "once", TriggerAt: "2026-05-06T13:00:00Z"})
	n.add(Draft{Content: "daily", CronExpr: "30 13 * * *"})
	n.addFor(ben, Draft{Content: "ben's", CronExpr: "0 14 * * *"})
	n.banned = []string{"01SOMEBODYELSE000000000000", anna}
	n.tick("2026-05-06T14:00:00Z")
	n.tick("2026-05-08T13:59:00Z")
	n.rang("2026-05-06T14:00:00Z ben's", "2026-05-08T13:59:00Z ben's")
	n.banned = nil
	n.tick("2026-05-08T13:59:30Z")
	n.rang("2026-05-06T14:00:00Z ben's", "2026-05-08T13:59:00Z ben's",
		"2026-05-08T13:59:30Z once",
		"2026-05-08T13:59:30Z daily (2 earlier missed)")
}

func TestANodeThatIsNotOnDutyPlansAndRingsNothing(t *testing.T) {
	n := newNode(t, noon)
	n.idle = true
	n.restart()
	m := n.add(Draft{Content: "x", CronExpr: "0 13 * * *"})
	n.tick("2026-05-06T13:00:00Z")
	n.must(n.round())
	n.rang()
	n.next(m, "2026-05-06T13:00:00Z")
	equal(t, len(n.facts(Fired)), 0)
}

func TestAReminderDeletedOrDisabledInTimeIsSilent(t *testing.T) {
	n := newNode(t, noon)
	gone := n.add(Draft{Content: "gone", TriggerAt: "2026-05-06T13:00:00Z"})
	off := n.add(Draft{Content: "off", TriggerAt: "2026-05-06T13:00:00Z"})
	n.wall = instant(t, "2026-05-06T12:59:59.9Z")
	n.edit(off, Change{Enabled: ptr(false)})
	n.must(n.db.Write(t.Context(), func(tx *sqlite.Tx) error { return n.store.DeleteTx(tx, anna, gone.Ref) }))
	n.tick("2026-05-06T13:00:00Z")
	n.rang()
}
