package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	nodesync "tandem/internal/sync"
	"tandem/internal/sync/link"
)

func TestATodoCrossesBothWays(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.add("buy milk")
		settle(time.Second)
		equal(t, "home", b.home.todos(), "1-1 buy milk")
		b.home.add("call May")
		b.home.edit("1-1", map[string]any{"content": "buy oat milk"})
		settle(time.Second)
		equal(t, "the cloud", b.cloud.todos(), "1-1 buy oat milk, 0-1 call May")
		b.cloud.do(http.MethodDelete, "/v1/todos/0-1", nil, nil)
		settle(time.Second)
		equal(t, "home", b.home.todos(), "1-1 buy oat milk")
		b.alike()
		b.quiet()
	})
}

// S:47. Who asks again under the same key makes nothing twice: at the node that
// answered, at the other one once it has heard of it, and while the two are apart.
func TestATodoPostedTwiceIsOneOnBothNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		ask := func(m *machine, key string) (row struct{ Ref string }) {
			m.do(http.MethodPost, "/v1/todos", map[string]string{"content": key}, &row, "Idempotency-Key: "+key)
			return row
		}
		for _, m := range []*machine{b.home, b.cloud} {
			for range 3 {
				equal(t, "ref at "+m.config.Node.Name, ask(m, "one").Ref, "0-1")
				settle(time.Second)
			}
		}
		b.link.cut()
		equal(t, "refs while the nodes are apart", ask(b.cloud, "two").Ref+" "+ask(b.home, "two").Ref, "1-1 0-2")
		b.link.mend()
		healed()
		equal(t, "home", b.home.todos(), "0-1 one, 0-2 two")
		b.alike()
		for _, m := range []*machine{b.home, b.cloud} {
			var row struct{ Ref string }
			m.do(http.MethodGet, "/v1/todos/1-1", nil, &row)
			equal(t, "where the other ref leads", row.Ref, "0-2")
		}
		b.quiet()
	})
}

func TestWhatHappensWhileTheOtherNodeIsOffArrivesWhenItIsOn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		for _, away := range []*machine{b.home, b.cloud} {
			here := b.cloud
			if away == b.cloud {
				here = b.home
			}
			away.off()
			ref := here.add("while " + away.config.Node.Name + " is off")
			settle(2 * time.Hour)
			here.edit(ref, map[string]any{"done": true})
			away.on()
			healed()
		}
		equal(t, "home", b.home.todos(), "1-1 while home is off, 0-1 while cloud is off")
		b.alike()
		b.quiet()
	})
}

func TestACutLinkHealsByItselfAndTheNewerEditStays(t *testing.T) { // E06
	for _, apart := range []time.Duration{time.Minute, 3 * time.Hour} {
		t.Run(apart.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				shared, gone := b.cloud.add("buy milk"), b.cloud.add("sell the car")
				settle(time.Second)
				b.link.cut()
				b.home.edit(shared, map[string]any{"content": "buy oat milk", "done": true})
				b.cloud.do(http.MethodDelete, "/v1/todos/"+gone, nil, nil)
				settle(apart)
				b.cloud.edit(shared, map[string]any{"content": "buy rice milk"}) // the newer
				b.home.edit(gone, map[string]any{"content": "sell the red car"}) // and here it is home's
				b.home.add("at home")
				b.cloud.add("at the cloud")
				equal(t, "offline", b.home.node.client.Status().Code, "peer_away")
				b.link.mend()
				healed()
				equal(t, "home", b.home.todos(), "1-1 buy rice milk, 1-2 sell the red car, 0-1 at home, 1-3 at the cloud")
				equal(t, "the state", b.home.node.client.Status().State, "ok")
				b.alike()
				b.quiet()
			})
		})
	}
}

// Two edits of one millisecond are told apart by who made them, on both nodes alike.
func TestOfTwoEditsAtOnceTheNodesNameDecides(t *testing.T) { // E06
	inBubble(t, func(t *testing.T, b *bubble) {
		ref := b.cloud.add("buy milk")
		settle(time.Second)
		b.link.cut()
		b.home.edit(ref, map[string]any{"content": "as home says"})
		b.cloud.edit(ref, map[string]any{"content": "as the cloud says"})
		b.link.mend()
		healed()
		equal(t, "home", b.home.todos(), ref+" as home says")
		b.alike()
		b.quiet()
	})
}

// An edit beats what its author has seen, even by a clock that is far behind; and a
// clock that is ahead costs nobody a row.
func TestClocksThatDisagreeLoseNothing(t *testing.T) { // E06
	inBubble(t, func(t *testing.T, b *bubble) {
		b.home.clock, b.cloud.clock = -time.Hour, 10*time.Minute
		ref := b.cloud.add("buy milk")
		settle(time.Second)
		b.home.edit(ref, map[string]any{"content": "buy oat milk"})
		b.home.add("call May")
		settle(time.Second)
		equal(t, "the cloud", b.cloud.todos(), "0-1 call May, "+ref+" buy oat milk")
		b.alike()
		settle(time.Minute) // until they have greeted each other again
		for _, m := range []*machine{b.home, b.cloud} {
			if found := m.node.examinePeer()[0]; found.Level != fail || !strings.Contains(found.Detail, "1h10m0s") {
				t.Errorf("the doctor of %s says %+v", m.config.Node.Name, found)
			}
		}
		b.quiet()
	})
}

// S:18. A clock that was a year ahead: the status is red while it is, and once it has been
// put right it is well, while the doctor of both nodes still names what it left behind.
func TestAClockThatWasAYearAheadIsToldAtBothNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.clock = 366 * 24 * time.Hour
		b.cloud.login()
		ref := b.cloud.add("of next year")
		settle(time.Minute)
		for _, m := range []*machine{b.home, b.cloud} {
			equal(t, m.config.Node.Name+", while it is wrong", m.node.contact.Status().Clock, link.Red)
		}
		b.cloud.clock = 0
		settle(time.Minute)
		b.cloud.off()
		b.cloud.on()
		healed()
		b.home.edit(ref, map[string]any{"content": "edited"})
		settle(time.Second)
		equal(t, "an edit of it", b.home.todos(), ref+" edited")
		b.alike()
		for _, m := range []*machine{b.home, b.cloud} {
			equal(t, m.config.Node.Name+", once it is right", m.node.contact.Status().Clock, link.Green)
			found := fmt.Sprint(m.node.examineStamps(t.Context()))
			if !strings.Contains(found, "clock warn One entry says that it was written more than a day from now: a clock was wrong.") {
				t.Errorf("the doctor of %s says %q", m.config.Node.Name, found)
			}
		}
	})
}

func TestBothNodesMayMakeTheSameNumber(t *testing.T) { // E03, E04, E05
	inBubble(t, func(t *testing.T, b *bubble) {
		b.link.cut()
		for _, m := range []*machine{b.home, b.cloud} {
			m.add("todo of " + m.config.Node.Name)
			m.remind(map[string]any{"content": "reminder of " + m.config.Node.Name, "trigger_at": "2000-02-01T12:00:00Z"})
			m.remind(map[string]any{"content": "daily of " + m.config.Node.Name, "cron_expr": "0 9 * * *", "enabled": false})
		}
		b.link.mend()
		healed()
		for _, m := range []*machine{b.home, b.cloud} {
			for path, want := range map[string]string{
				"/v1/todos/0-1": "todo of home", "/v1/todos/1-1": "todo of cloud",
				"/v1/scheduled-messages/0-1": "reminder of home", "/v1/scheduled-messages/1-1": "reminder of cloud",
				"/v1/scheduled-messages/0-2": "daily of home", "/v1/scheduled-messages/1-2": "daily of cloud",
			} {
				var row struct{ Content string }
				m.do(http.MethodGet, path, nil, &row)
				equal(t, path, row.Content, want)
			}
		}
		b.alike()
		// Owning the number says nothing of who may edit: the other node's edit counts.
		b.home.edit("1-1", map[string]any{"content": "edited at home"})
		b.cloud.edit("0-1", map[string]any{"content": "edited at the cloud"})
		settle(time.Second)
		equal(t, "home", b.home.todos(), "0-1 edited at the cloud, 1-1 edited at home")
		b.alike()
		b.quiet()
	})
}

func TestTheTablesAreAsWasAgreed(t *testing.T) { // E03, E04, E08
	inBubble(t, func(t *testing.T, b *bubble) {
		for table, want := range map[string][]string{
			"todos": {"origin key", "id key", "content", "due_at", "done = 0", "created_at", "updated_at", "updated_by = 'legacy'"},
			"scheduled_messages": {"origin key", "id key", "content", "action = 'notify'", "trigger_at", "cron_expr", "enabled = 1",
				"created_at", "updated_at", "updated_by = 'legacy'"},
			"push_tokens": {"token key", "platform", "updated_at"},
		} {
			got := b.home.rows(`SELECT name || CASE WHEN pk > 0 THEN ' key' ELSE '' END || coalesce(' = ' || dflt_value, '') FROM pragma_table_info('` + table + `')`)
			for _, column := range want {
				if !slices.Contains(got, column) {
					t.Errorf("%s has %q, and no %q", table, got, column)
				}
			}
		}
	})
}

// The cloud is offered home's whole log again, in any order and in pieces, over the
// peer's own calls; and home reads the cloud's again from any place.
func TestReplaysInAnyOrderChangeNothing(t *testing.T) { // E07
	inBubble(t, func(t *testing.T, b *bubble) {
		ref := b.home.add("buy milk")
		settle(time.Second)
		early, err := b.home.node.log.Page(t.Context(), "", nodesync.PageRows) // as it was before the edits
		must(t, err)
		b.cloud.edit(ref, map[string]any{"content": "buy oat milk"})
		settle(time.Second)
		b.home.edit(ref, map[string]any{"content": "buy rice milk"})
		b.home.do(http.MethodDelete, "/v1/todos/"+b.home.add("gone"), nil, nil)
		settle(time.Second)
		late, err := b.home.node.log.Page(t.Context(), "", nodesync.PageRows)
		must(t, err)
		before := b.alike()

		cloud := link.NewPeer("http://cloud.test", "cloud", "home", bubbleSecret, b.link)
		read, err := b.cloud.node.log.Cursor(t.Context(), "home")
		must(t, err)
		offer := func(entries ...json.RawMessage) {
			t.Helper()
			var ack link.Ack
			must(t, cloud.Call(t.Context(), http.MethodPost, "changes", map[string]any{"from": "a.past.place", "to": "a.wrong.place", "rows": entries}, &ack))
			equal(t, "how far the cloud has read", ack.Cursor, read)
		}
		all := append(slices.Clone(early.Entries), late.Entries...)
		offer(all...)
		slices.Reverse(all)
		offer(all...)
		for _, e := range all {
			offer(e)
			offer(e, e)
		}
		for _, cursor := range []string{"", "nonsense", "of.another.life"} {
			_, err := b.home.node.log.Apply(t.Context(), "cloud", readCursor(b), cursor, nil)
			must(t, err)
			b.home.kill()
			b.home.on()
			healed()
		}
		equal(t, "rows", fmt.Sprint(b.alike()), fmt.Sprint(before))
		equal(t, "the cloud", b.cloud.todos(), ref+" buy rice milk")
		b.quiet()
	})
}

// readCursor is how far home has read the cloud's log.
func readCursor(b *bubble) string {
	cursor, err := b.home.node.log.Cursor(b.Context(), "cloud")
	must(b, err)
	return cursor
}

// The machine dies at each point on the way, with nothing that left it after.
func TestAKilledNodeGoesOnWhereItWas(t *testing.T) {
	for _, c := range todoCrashes {
		t.Run(c.point+" at "+c.dies, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				machines := map[string]*machine{"home": b.home, "cloud": b.cloud}
				post := func() int {
					status, _, _ := machines[c.from].ask(http.MethodPost, "/v1/todos", map[string]string{"content": "buy milk"}, "Idempotency-Key: one")
					return status
				}
				machines[c.dies].diesAt(c.point, func() { post() })
				equal(t, "asked again", post(), http.StatusCreated)
				healed()
				equal(t, "rows", len(b.alike()), 1)
				b.quiet()
			})
		})
	}
}
