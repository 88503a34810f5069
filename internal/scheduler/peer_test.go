package scheduler

import (
	"context"
	"strings"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

func TestAMessageMadeOnOneNodeIsPlannedOnTheOther(t *testing.T) { // E04
	a, b := newNode(t, noon), newPeer(t, "cloud", 1, noon)
	m := a.add(Draft{Content: "x", CronExpr: "0 9 * * *", Zone: "Europe/Berlin"})
	once := a.add(Draft{Content: "y", TriggerAt: "2026-05-06T13:00:00.5Z"})
	off := a.add(Draft{Content: "z", CronExpr: "0 9 * * *", Disabled: true})
	exchange(a, b)
	b.next(m, "2026-05-07T07:00:00Z")
	b.next(once, "2026-05-06T13:00:00.500Z")
	b.next(off, "")
	equal(t, b.get(m).Action, Notify)
	b.wall = instant(t, "2026-05-06T12:30:00Z")
	b.edit(m, Change{CronExpr: ptr("0 10 * * *")})
	b.must(b.db.Write(context.Background(), func(tx *sqlite.Tx) error { return b.store.DeleteTx(tx, anna, once.Ref) }))
	exchange(a, b)
	a.next(m, "2026-05-07T08:00:00Z")
	a.tick("2026-05-06T13:00:01Z")
	a.rang()
}

func TestBothNodesMakeNumber42AndBothRing(t *testing.T) { // E05
	a, b := newNode(t, noon), newPeer(t, "cloud", 1, noon)
	for _, n := range []*node{a, b} {
		for range 41 {
			n.add(Draft{Content: "earlier", TriggerAt: "2027-01-01T00:00:00Z"})
		}
	}
	x := a.add(Draft{Content: "from a", TriggerAt: "2026-05-06T13:00:00Z"})
	y := b.add(Draft{Content: "from b", TriggerAt: "2026-05-06T13:00:00Z"})
	equal(t, x.Ref.String()+" "+y.Ref.String(), "0-42 1-42")
	exchange(a, b)
	for _, n := range []*node{a, b} {
		equal(t, n.get(x).Content+", "+n.get(y).Content, "from a, from b")
	}
	a.tick("2026-05-06T13:00:00Z")
	a.rang("2026-05-06T13:00:00Z from a", "2026-05-06T13:00:00Z from b")
	equal(t, a.rings()[0].FireID == a.rings()[1].FireID, false)
}

func TestWhatCannotBePlannedHereIsKeptAndShown(t *testing.T) {
	n, peer := newNode(t, noon), newPeer(t, "cloud", 1, noon)
	for i, c := range []struct{ name, fields, code string }{
		{"R:A15 never", `"cron_expr":"0 9 30 2 *","tz":"UTC"`, "schedule_never_fires"},
		{"R:A16 a zone in the line", `"cron_expr":"CRON_TZ=UTC 0 9 * * *","tz":"UTC"`, "schedule_zone_prefix"},
		{"R:A16 a zone that panics the parser", `"cron_expr":"TZ=0","tz":"UTC"`, "schedule_zone_prefix"},
		{"R:A17 backwards", `"cron_expr":"@every -5m","tz":"UTC"`, "invalid_cron"},
		{"R:A17 six fields", `"cron_expr":"* * * * * *","tz":"UTC"`, "invalid_cron"},
		{"a zone of tomorrow", `"cron_expr":"0 9 * * *","tz":"Mars/Olympus"`, "unknown_zone"},
		{"the machine's zone", `"cron_expr":"0 9 * * *","tz":"Local"`, "unknown_zone"},
		{"an action of tomorrow", `"cron_expr":"0 9 * * *","action":"sing","args":{"song":"x"}`, "unknown_action"},
		{"no schedule", `"enabled":true`, "invalid_schedule"},
		{"two schedules", `"cron_expr":"0 9 * * *","trigger_at":1798761600000`, "invalid_schedule"},
		{"a rule of tomorrow", `"rrule":"FREQ=LUNAR","tz":"UTC"`, "invalid_rrule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := i + 1
			n.receive(peerRow(id, noon, c.fields))
			bad := n.list(anna)[0]
			equal(t, bad.ID, int64(id))
			equal(t, bad.NextFireAt, nil)
			if p := bad.Problem(); p == nil || p.Code != c.code || p.Detail == "" {
				t.Errorf("problem %v, want %s", p, c.code)
			}

			// It goes on as it came, also after its text was changed here.
			n.edit(bad, Change{Content: ptr("mended")})
			deliver(n, peer)
			for part := range strings.SplitSeq(c.fields, `,"`) {
				column, value, _ := strings.Cut(strings.Trim(part, `"`), `":`)
				got := read(peer, func(tx *sqlite.Tx) (string, error) {
					v, _, err := sqlite.One(tx, sqlite.Value[string], `SELECT coalesce(`+column+`, 'null') FROM scheduled_messages WHERE id = ?`, id)
					return v, err
				})
				if value != "true" {
					equal(t, got, strings.Trim(value, `"`))
				}
			}
			equal(t, peer.get(bad).Content, "mended")
			n.must(n.db.Write(t.Context(), func(tx *sqlite.Tx) error { return n.store.DeleteTx(tx, anna, bad.Ref) }))
		})
	}
	t.Run("and stops no other row of its page", func(t *testing.T) {
		n.receive(peerRow(50, noon, `"cron_expr":"TZ=0"`), peerRow(51, noon, `"cron_expr":"0 13 * * *","tz":"UTC"`))
		equal(t, n.list(anna)[1].Problem(), nil)
		n.tick("2026-05-06T13:00:00Z")
		n.rang("2026-05-06T13:00:00Z from the peer")
	})
}

func TestWhatANewerPeerSetsSurvivesAnEditHere(t *testing.T) {
	n, peer := newNode(t, noon), newPeer(t, "cloud", 1, noon)
	n.receive(peerRow(1, noon, `"cron_expr":"0 13 * * *","tz":"UTC","nag":{"every":5},"must_ring":true,"tz_mode":"follows_me","sung_at":7`))
	m := n.list(anna)[0]
	n.edit(m, Change{Content: ptr("mine"), CronExpr: ptr("0 14 * * *")})
	deliver(n, peer)
	got := read(peer, func(tx *sqlite.Tx) (string, error) {
		v, _, err := sqlite.One(tx, sqlite.Value[string], `
			SELECT json_array(content, cron_expr, json(nag), must_ring, tz_mode, json(extra)) FROM scheduled_messages`)
		return v, err
	})
	equal(t, got, `["mine","0 14 * * *",{"every":5},1,"follows_me",{"sung_at":7}]`)
}

func TestWhatThePeerRangDoesNotRingHere(t *testing.T) {
	a, b := newNode(t, noon), newPeer(t, "cloud", 1, noon)
	once := a.add(Draft{Content: "once", TriggerAt: "2026-05-06T13:00:00Z"})
	daily := a.add(Draft{Content: "daily", CronExpr: "0 13 * * *"})
	exchange(a, b)
	b.tick("2026-05-06T13:00:00Z")
	exchange(a, b)
	a.next(once, "")
	a.next(daily, "2026-05-07T13:00:00Z")
	a.tick("2026-05-06T13:00:30Z")
	a.rang()

	t.Run("done twice: the same page again", func(t *testing.T) {
		page, err := b.log.Page(t.Context(), "", sync.PageRows)
		b.must(err)
		_, err = a.log.Apply(t.Context(), b.name, "elsewhere", page.Cursor, page.Entries)
		a.must(err)
		a.tick("2026-05-06T13:01:00Z")
		a.rang()
	})
}

func TestApartBothRingTheSameFire(t *testing.T) {
	a, b := newNode(t, noon), newPeer(t, "cloud", 1, noon)
	m := a.add(Draft{Content: "x", CronExpr: "0 13 * * *", Zone: "Europe/Berlin"})
	a.edit(m, Change{Content: ptr("y")}) // the text has no part in it
	exchange(a, b)
	a.edit(m, Change{Content: ptr("z")})
	a.tick("2026-05-07T11:00:00Z")
	b.tick("2026-05-07T11:02:00Z")
	equal(t, a.rings()[0].FireID, b.rings()[0].FireID)
	equal(t, len(a.rings()[0].FireID), 64)
	exchange(a, b)
	for _, n := range []*node{a, b} {
		equal(t, len(n.facts(Fired)), 2) // each told it
		n.next(m, "2026-05-08T11:00:00Z")
		n.tick("2026-05-07T12:00:00Z")
		equal(t, len(n.rings()), 1)
	}
}

func TestAFactMayComeBeforeItsMessage(t *testing.T) {
	a, b := newNode(t, noon), newPeer(t, "cloud", 1, noon)
	m := a.add(Draft{Content: "x", CronExpr: "0 * * * *"})
	a.tick("2026-05-06T13:00:00Z")
	a.edit(m, Change{Content: ptr("y")}) // moves the row behind the fact in the log
	page, err := a.log.Page(t.Context(), "", sync.PageRows)
	a.must(err)
	equal(t, len(page.Entries), 2)
	equal(t, strings.Contains(string(page.Entries[0]), `"table":"facts"`), true)
	for i, entry := range page.Entries {
		_, err := b.log.Apply(t.Context(), a.name, "", page.Cursor, page.Entries[i:i+1])
		b.must(err)
		_ = entry
	}
	b.next(m, "2026-05-06T14:00:00Z")
	b.tick("2026-05-06T13:00:10Z")
	b.rang()
}

func TestAFactThatCannotBeReadDoesNotStopThePage(t *testing.T) {
	n := newNode(t, noon)
	fact := func(uid, body string) string {
		return `{"table":"facts","uid":"` + strings.Repeat(uid, 32) + `","kind":"fired","subject":"s","owner":"` + anna + `","node":"peer","at":1` + body + `}`
	}
	n.receive(
		fact("1", `,"body":`+strings.Repeat("[", 1500)+strings.Repeat("]", 1500)), // deeper than SQLite reads
		fact("2", `,"body":null`), fact("3", `,"body":7`), fact("4", `,"body":{"reminder":"no"}`),
		fact("5", `,"body":{"reminder":"000000000000000000000000feed0001","schedule_hash":[],"due_at":1.5e300}`),
		peerRow(1, noon, `"cron_expr":"0 13 * * *","tz":"UTC"`))
	n.tick("2026-05-06T13:00:00Z")
	n.rang("2026-05-06T13:00:00Z from the peer")
}

func TestAReminderFollowsAnOwnerWhoMoves(t *testing.T) {
	moved := func(n *node, zone string) {
		n.homes[anna] = zone
		n.must(n.db.Write(context.Background(), func(tx *sqlite.Tx) error { return n.store.table.MovedTx(tx, anna) }))
	}
	t.Run("R:A11 west, before it rang", func(t *testing.T) {
		n := newNode(t, "2026-06-01T12:00:00Z")
		n.homes[anna] = "Europe/Berlin"
		m := n.add(Draft{Content: "x", CronExpr: "0 6 * * 0"})
		pinned := n.add(Draft{Content: "pinned", CronExpr: "0 6 * * 0", Zone: "Europe/Berlin"})
		n.next(m, "2026-06-07T04:00:00Z")
		n.wall = instant(t, "2026-06-05T12:00:00Z")
		moved(n, "Europe/Lisbon")
		n.next(m, "2026-06-07T05:00:00Z")
		n.next(pinned, "2026-06-07T04:00:00Z")
		n.tick("2026-06-07T05:00:00Z")
		n.rang("2026-06-07T05:00:00Z pinned", "2026-06-07T05:00:00Z x")
	})
	t.Run("west, after it rang", func(t *testing.T) {
		n := newNode(t, "2026-06-07T03:00:00Z")
		n.homes[anna] = "Europe/Berlin"
		m := n.add(Draft{Content: "x", CronExpr: "0 6 * * *"})
		n.tick("2026-06-07T04:00:00Z")
		n.wall = instant(t, "2026-06-07T04:30:00Z")
		moved(n, "Europe/Lisbon") // where it is 06:00 again in half an hour
		n.next(m, "2026-06-08T05:00:00Z")
		n.tick("2026-06-07T05:00:00Z")
		n.rang("2026-06-07T04:00:00Z x")
	})
	t.Run("west, each hour goes on", func(t *testing.T) { // the wall shows times again that rang already
		n := newNode(t, "2026-06-07T03:30:00Z")
		n.homes[anna] = "Asia/Tokyo"
		m := n.add(Draft{Content: "x", CronExpr: "0 * * * *"})
		n.tick("2026-06-07T04:00:00Z")
		n.wall = instant(t, "2026-06-07T04:30:00Z")
		moved(n, "Europe/Berlin")
		n.next(m, "2026-06-07T05:00:00Z")
		n.tick("2026-06-07T05:00:00Z")
		n.rang("2026-06-07T04:00:00Z x", "2026-06-07T05:00:00Z x")
	})
	t.Run("east, after it rang", func(t *testing.T) {
		n := newNode(t, "2026-06-07T03:00:00Z")
		n.homes[anna] = "Europe/Lisbon"
		m := n.add(Draft{Content: "x", CronExpr: "0 6 * * *"})
		n.tick("2026-06-07T05:00:00Z")
		moved(n, "Europe/Berlin")
		n.next(m, "2026-06-08T04:00:00Z")
	})
}
