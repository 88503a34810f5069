package scheduler

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/when"
)

const noon = "2026-05-06T12:00:00Z"

func (n *node) tryAdd(d Draft) (m Message, warnings []when.Warning, err error) {
	err = n.db.Write(context.Background(), func(tx *sqlite.Tx) (err error) {
		m, warnings, err = n.store.AddTx(tx, anna, d)
		return err
	})
	return m, warnings, err
}

func codes(warnings []when.Warning) string {
	var all []string
	for _, w := range warnings {
		all = append(all, w.Code)
	}
	return strings.Join(all, " ")
}

func TestWhatCannotRingIsRefusedWithACode(t *testing.T) {
	n := newNode(t, noon)
	kept := n.add(Draft{Content: "tea", CronExpr: "0 9 * * *"})
	for _, c := range []struct {
		name string
		d    Draft
		code string
	}{
		{"nothing to say", Draft{Content: " \n\t", CronExpr: "0 9 * * *"}, "scheduled_message_invalid"},
		{"a byte too much", Draft{Content: strings.Repeat("x", MaxContent+1), CronExpr: "0 9 * * *"}, "scheduled_message_invalid"},
		{"NUL", Draft{Content: "a\x00b", CronExpr: "0 9 * * *"}, "scheduled_message_invalid"},
		{"not UTF-8", Draft{Content: "a\xff", CronExpr: "0 9 * * *"}, "scheduled_message_invalid"},
		{"no schedule", Draft{Content: "x"}, "invalid_schedule"},
		{"no schedule, and disabled", Draft{Content: "x", Disabled: true}, "invalid_schedule"},
		{"two schedules", Draft{Content: "x", CronExpr: "0 9 * * *", TriggerAt: "2026-05-07T09:00:00Z"}, "invalid_schedule"},
		{"the past", Draft{Content: "x", TriggerAt: "2026-05-06T11:59:59Z"}, "trigger_at_past"},
		{"this instant", Draft{Content: "x", TriggerAt: noon}, "trigger_at_past"},
		{"no time", Draft{Content: "x", TriggerAt: "tomorrow"}, "invalid_time"},
		{"R:A15 a day that never comes", Draft{Content: "x", CronExpr: "0 9 30 2 *"}, "schedule_never_fires"},
		{"R:A15 an rrule that has ended", Draft{Content: "x", RRule: "FREQ=DAILY;UNTIL=20200101T000000Z"}, "schedule_never_fires"},
		{"R:A16 a zone in the line", Draft{Content: "x", CronExpr: "CRON_TZ=UTC 0 9 * * *"}, "schedule_zone_prefix"},
		{"R:A16 a zone that panics the parser", Draft{Content: "x", CronExpr: "TZ=0"}, "schedule_zone_prefix"},
		{"R:A17 backwards", Draft{Content: "x", CronExpr: "@every -5m"}, "invalid_cron"},
		{"R:A17 each second", Draft{Content: "x", CronExpr: "@every 1s"}, "invalid_cron"},
		{"R:A17 six fields", Draft{Content: "x", CronExpr: "* * * * * *"}, "invalid_cron"},
		{"R:A17 seconds by rrule", Draft{Content: "x", RRule: "FREQ=SECONDLY;INTERVAL=59"}, "schedule_too_frequent"},
		{"no such zone", Draft{Content: "x", CronExpr: "0 9 * * *", Zone: "Europe/Nowhere"}, "unknown_zone"},
		{"the machine's zone", Draft{Content: "x", TriggerAt: "2026-05-07T09:00", Zone: "Local"}, "unknown_zone"},
		{"no rule", Draft{Content: "x", RRule: "every day"}, "invalid_rrule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := n.tryAdd(c.d)
			refused(t, err, c.code)
			change := c.d.change()
			change.Enabled = nil
			if c.code == "invalid_schedule" && c.d.CronExpr == "" { // of an edit, a schedule that is taken away
				change.CronExpr = ptr("")
			}
			_, err = n.tryEdit(kept, change)
			refused(t, err, c.code)
		})
	}
	equal(t, n.get(kept).UpdatedAt, kept.UpdatedAt)
	equal(t, len(n.list(anna)), 1)
}

func (n *node) list(owner string) []Message {
	n.Helper()
	list, err := n.store.List(context.Background(), owner, Message{}.Place(), 200)
	n.must(err)
	return list
}

func TestTheLongestTextReachesThePeerAndRings(t *testing.T) {
	a, b := newNode(t, noon), newPeer(t, "cloud", 1, noon)
	a.quiet, b.quiet = true, true
	long := "  " + strings.Repeat("é", MaxContent/2) + "\n"
	m := a.add(Draft{Content: long, TriggerAt: "2026-05-06T13:00:00Z"})
	equal(t, len(m.Content), MaxContent)
	// Each of these is six bytes on the wire, in the row and in the fact.
	a.add(Draft{Content: strings.Repeat("<", MaxContent), TriggerAt: "2026-05-06T13:00:00Z"})
	a.add(Draft{Content: strings.Repeat("\x01", MaxContent), TriggerAt: "2026-05-06T13:00:00Z"})
	exchange(a, b)
	equal(t, b.get(m).Content, strings.TrimSpace(long))
	a.tick("2026-05-06T13:00:00Z")
	equal(t, len(a.rings()), 3)
	exchange(a, b)
	equal(t, len(b.facts(Fired)), 3)
}

func TestTheShortestIntervalIsAMinute(t *testing.T) { // R:A17
	n := newNode(t, noon)
	n.next(n.add(Draft{Content: "x", CronExpr: "* * * * *"}), "2026-05-06T12:01:00Z")
}

func TestATimeIsReadWhereItsOwnerLives(t *testing.T) {
	n := newNode(t, "2026-03-01T12:00:00Z")
	for _, c := range []struct {
		name, home string
		d          Draft
		next, zone string
		warnings   string
	}{
		{"R:A8 a line without a zone", "Pacific/Auckland", Draft{CronExpr: "0 13 * * *"}, "2026-03-02T00:00:00Z", "Pacific/Auckland", ""},
		{"R:A8 a line with one", "Pacific/Auckland", Draft{CronExpr: "0 13 * * *", Zone: "Europe/Berlin"}, "2026-03-02T12:00:00Z", "Europe/Berlin", ""},
		{"nobody knows where", "", Draft{CronExpr: "0 13 * * *"}, "2026-03-01T13:00:00Z", "UTC", "no_zone"},
		{"R:A7 local time and a zone", "", Draft{TriggerAt: "2026-05-06T10:00", Zone: "America/Chicago"}, "2026-05-06T15:00:00Z", "America/Chicago", ""},
		{"R:A7 a Z", "Pacific/Auckland", Draft{TriggerAt: "2026-05-06T10:00:00Z"}, "2026-05-06T10:00:00Z", "Pacific/Auckland", ""},
		{"R:A7 an offset beats the zone", "", Draft{TriggerAt: "2026-05-06T10:00:00+02:00", Zone: "America/Chicago"}, "2026-05-06T08:00:00Z", "America/Chicago", ""},
		{"R:A7 neither", "America/New_York", Draft{TriggerAt: "2026-05-06T10:00"}, "2026-05-06T14:00:00Z", "America/New_York", ""},
		{"local time, and nobody knows where", "", Draft{TriggerAt: "2026-05-06T10:00"}, "2026-05-06T10:00:00Z", "UTC", "no_zone"},
		{"an offset, and nobody knows where", "", Draft{TriggerAt: "2026-05-06T10:00:00-05:00"}, "2026-05-06T15:00:00Z", "UTC", ""},
		{"R:A6 in the gap", "", Draft{TriggerAt: "2026-03-08T02:30", Zone: "America/New_York"}, "2026-03-08T07:30:00Z", "America/New_York", "nonexistent_local_time"},
		{"R:A6 in the fold", "", Draft{TriggerAt: "2026-10-25T02:30", Zone: "Europe/Berlin"}, "2026-10-25T00:30:00Z", "Europe/Berlin", "ambiguous_local_time"},
		{"R:A13 a day some months lack", "Europe/Berlin", Draft{CronExpr: "0 9 31 * *"}, "2026-03-31T07:00:00Z", "Europe/Berlin", "skips_short_months"},
		{"an rrule begins where its owner lives", "Asia/Kolkata", Draft{RRule: "FREQ=DAILY;BYHOUR=9;BYMINUTE=0"}, "2026-03-02T03:30:00Z", "Asia/Kolkata", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n.homes[anna] = c.home
			c.d.Content = "x"
			m, warnings, err := n.tryAdd(c.d)
			if warnings == nil || m.Warnings() == nil {
				t.Error("the list is null rather than empty")
			}
			n.must(err)
			equal(t, showTime(m.NextFireAt), c.next)
			equal(t, m.EffectiveZone(), c.zone)
			equal(t, codes(warnings), c.warnings)
			n.next(m, c.next)
		})
	}
}

func TestARuleKeepsTheStartItWasGiven(t *testing.T) {
	n := newNode(t, "2026-03-01T12:00:30Z")
	m := n.add(Draft{Content: "x", RRule: "FREQ=DAILY;INTERVAL=2;COUNT=2", Zone: "Europe/Berlin"})
	equal(t, *m.RRule, "DTSTART:20260301T130100\nRRULE:FREQ=DAILY;INTERVAL=2;COUNT=2")
	for _, at := range []string{"2026-03-01T12:01:00Z", "2026-03-02T12:01:00Z", "2026-03-03T12:01:00Z", "2026-03-09T12:01:00Z"} {
		n.tick(at)
	}
	n.rang("2026-03-01T12:01:00Z x", "2026-03-03T12:01:00Z x")
	n.next(m, "")

	t.Run("on the minute, all of its occurrences are still to come", func(t *testing.T) {
		n.wall = instant(t, "2026-03-10T12:00:00Z")
		n.next(n.add(Draft{Content: "x", RRule: "FREQ=DAILY;COUNT=1"}), "2026-03-10T12:01:00Z")
	})
}

func TestAnEditMovesTheNextRinging(t *testing.T) { // R:B5
	t.Run("R:B5 to a later time, before the old one", func(t *testing.T) {
		n := newNode(t, noon)
		m := n.add(Draft{Content: "x", TriggerAt: "2026-05-06T13:00:00Z"})
		n.wall = instant(t, "2026-05-06T12:59:59.9Z")
		n.edit(m, Change{TriggerAt: ptr("2026-05-06T14:00:00Z")})
		n.tick("2026-05-06T13:00:01Z")
		n.rang()
		n.tick("2026-05-06T14:00:00Z")
		n.rang("2026-05-06T14:00:00Z x")
	})
	t.Run("R:B5 to another zone", func(t *testing.T) {
		n := newNode(t, noon)
		m := n.add(Draft{Content: "x", CronExpr: "0 9 * * *", Zone: "Europe/Berlin"})
		m = n.edit(m, Change{Zone: ptr("America/New_York")})
		n.next(m, "2026-05-06T13:00:00Z")
		equal(t, showTime(m.EffectiveFrom), noon)
	})
	t.Run("R:B5 of the text only", func(t *testing.T) {
		n := newNode(t, noon)
		m := n.add(Draft{Content: "x", CronExpr: "0 9 * * *"})
		n.wall = instant(t, "2026-05-07T09:00:01Z") // 09:00 is due, and has not rung yet
		m = n.edit(m, Change{Content: ptr("y")})
		equal(t, m.EffectiveFrom, nil)
		n.next(m, "2026-05-07T09:00:00Z")
		n.tick("2026-05-07T09:00:02Z")
		n.rang("2026-05-07T09:00:02Z y")
	})
	t.Run("R:B5 of what has just rung", func(t *testing.T) {
		n := newNode(t, noon)
		m := n.add(Draft{Content: "old", TriggerAt: "2026-05-06T13:00:00Z"})
		n.tick("2026-05-06T13:00:00Z")
		n.edit(m, Change{Content: ptr("new")})
		n.tick("2026-05-06T13:00:01Z")
		n.rang("2026-05-06T13:00:00Z old")
		equal(t, n.facts(Fired)[0].Text, "old")
		n.next(m, "")
	})
	t.Run("nothing rings for a time passed under the old schedule", func(t *testing.T) {
		n := newNode(t, noon)
		m := n.add(Draft{Content: "x", CronExpr: "0 9 * * *"})
		n.wall = instant(t, "2026-05-08T12:00:00Z")
		n.edit(m, Change{CronExpr: ptr("0 11 * * *")})
		n.tick("2026-05-08T12:00:00Z")
		n.rang()
		n.next(m, "2026-05-09T11:00:00Z")
	})
	t.Run("and back again", func(t *testing.T) {
		n := newNode(t, noon)
		m := n.add(Draft{Content: "x", CronExpr: "0 13 * * *"})
		n.tick("2026-05-06T13:00:00Z")
		n.edit(m, Change{CronExpr: ptr("0 14 * * *")})
		n.edit(m, Change{CronExpr: ptr("0 13 * * *")})
		n.tick("2026-05-06T15:00:00Z")
		n.rang("2026-05-06T13:00:00Z x")
		n.next(m, "2026-05-07T13:00:00Z")
	})
}

func TestAScheduleOfOneKindReplacesOneOfAnother(t *testing.T) {
	n := newNode(t, noon)
	m := n.add(Draft{Content: "x", TriggerAt: "2026-05-06T13:00:00Z"})
	m = n.edit(m, Change{CronExpr: ptr("0 9 * * *")})
	equal(t, m.TriggerAt, nil)
	n.next(m, "2026-05-07T09:00:00Z")
	m = n.edit(m, Change{RRule: ptr("FREQ=DAILY;BYHOUR=10;BYMINUTE=0"), CronExpr: ptr("")})
	equal(t, m.CronExpr, nil)
	n.next(m, "2026-05-07T10:00:00Z")
	m = n.edit(m, Change{TriggerAt: ptr("2026-05-09T09:00:00Z")})
	equal(t, m.RRule, nil)
	n.next(m, "2026-05-09T09:00:00Z")
}

func TestAChangeOfNothingMakesNoVersion(t *testing.T) {
	n := newNode(t, noon)
	m := n.add(Draft{Content: "x", CronExpr: "0 9 * * *", Zone: "Europe/Berlin"})
	n.wall = instant(t, "2026-05-06T12:30:00Z")
	n.edit(m, Change{Content: &m.Content, CronExpr: m.CronExpr, Zone: m.Zone, Enabled: &m.Enabled, RRule: ptr(""), TriggerAt: ptr("")})
	equal(t, n.get(m).Seq, m.Seq)
}

func TestADisabledMessageIsSilentUntilItIsEnabled(t *testing.T) {
	n := newNode(t, noon)
	m := n.add(Draft{Content: "x", CronExpr: "0 * * * *", Disabled: true})
	n.next(m, "")
	equal(t, len(m.Upcoming(n.wall, 3)), 0)
	n.tick("2026-05-06T15:30:00Z")
	m = n.edit(m, Change{Enabled: ptr(true)})
	n.tick("2026-05-06T15:30:01Z")
	n.rang()
	n.next(m, "2026-05-06T16:00:00Z")
	n.edit(m, Change{Enabled: ptr(false)})
	n.tick("2026-05-06T16:00:00Z")
	n.rang()

	t.Run("a one-shot whose time went by meanwhile has to get another", func(t *testing.T) {
		once := n.add(Draft{Content: "once", TriggerAt: "2026-05-06T17:00:00Z", Disabled: true})
		n.wall = instant(t, "2026-05-06T18:00:00Z")
		_, err := n.tryEdit(once, Change{Enabled: ptr(true)})
		refused(t, err, "trigger_at_past")
		n.next(n.edit(once, Change{Enabled: ptr(true), TriggerAt: ptr("2026-05-06T19:00:00Z")}), "2026-05-06T19:00:00Z")
	})
}

func TestTheNextTimesAreTold(t *testing.T) { // R:A8
	n := newNode(t, "2026-03-27T12:00:00Z")
	m := n.add(Draft{Content: "x", CronExpr: "30 2 * * *", Zone: "Europe/Berlin"})
	var got []string
	for _, at := range m.Upcoming(n.wall, 3) {
		got = append(got, when.Format(at))
	}
	equal(t, strings.Join(got, " "), "2026-03-28T01:30:00Z 2026-03-29T01:30:00Z 2026-03-30T00:30:00Z")
	once := n.add(Draft{Content: "x", TriggerAt: "2026-03-28T12:00:00Z"})
	equal(t, len(once.Upcoming(n.wall, 3)), 1)
	late := m.Upcoming(instant(t, "2026-04-01T12:00:00Z"), 2) // the node was down
	equal(t, when.Format(late[0])+" "+when.Format(late[1]), "2026-03-28T01:30:00Z 2026-04-02T00:30:00Z")
}

func TestADeletedMessageIsGoneForGood(t *testing.T) {
	n := newNode(t, noon)
	m := n.add(Draft{Content: "x", TriggerAt: "2026-05-06T13:00:00Z"})
	for range 2 { // deleting it again is no error
		n.must(n.db.Write(context.Background(), func(tx *sqlite.Tx) error { return n.store.DeleteTx(tx, anna, m.Ref) }))
	}
	if _, err := n.store.Get(context.Background(), anna, m.Ref); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	_, err := n.tryEdit(m, Change{Content: ptr("y")})
	equal(t, fault.Of(err, fault.NotFound), true)
	n.tick("2026-05-06T13:00:00Z")
	n.rang()
	equal(t, len(n.list(anna)), 0)
}

func TestNobodySeesOrChangesWhatIsSomebodyElses(t *testing.T) {
	n := newNode(t, noon)
	m := n.add(Draft{Content: "x", TriggerAt: "2026-05-06T13:00:00Z"})
	n.addFor(ben, Draft{Content: "y", TriggerAt: "2026-05-06T13:00:00Z"})
	err := n.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		_, got := n.store.GetTx(tx, ben, m.Ref)
		_, _, edited := n.store.EditTx(tx, ben, m.Ref, Change{Content: ptr("z")})
		deleted := n.store.DeleteTx(tx, ben, m.Ref)
		for _, err := range []error{got, edited, deleted} {
			equal(t, errors.Is(err, ErrNotFound), true)
		}
		return nil
	})
	n.must(err)
	equal(t, n.get(m).Content, "x")
	equal(t, len(n.list(ben)), 1)
}

func TestAListIsReadToItsEndWhileItGrows(t *testing.T) {
	n := newNode(t, noon)
	for range 25 {
		n.add(Draft{Content: "x", TriggerAt: "2026-05-06T13:00:00Z"})
	}
	seen := map[string]bool{}
	after := Message{}.Place()
	for {
		page, err := n.store.List(context.Background(), anna, after, 10)
		n.must(err)
		for _, m := range page {
			if seen[m.Ref.String()] {
				t.Errorf("%s twice", m.Ref)
			}
			seen[m.Ref.String()] = true
			after = m.Place()
		}
		if len(page) < 10 {
			break
		}
		n.add(Draft{Content: "new", TriggerAt: "2026-05-06T13:00:00Z"})
	}
	equal(t, len(seen), 27)
}
