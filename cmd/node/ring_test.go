package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/internal/config"
	"tandem/internal/standin"
)

// kinds counts the facts that a node holds.
func (m *machine) kinds() string {
	m.Helper()
	return strings.Join(m.rows(`SELECT kind || ' ' || count(*) FROM facts GROUP BY kind ORDER BY kind`), ", ")
}

func TestAReminderThatFCMRefusesArrivesThroughTelegram(t *testing.T) { // E09
	for _, made := range []string{"home", "cloud"} {
		t.Run("made at "+made, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.cloud.register("phone")
				b.fcm.FailAlways("phone", standin.InternalError)
				m := map[string]*machine{"home": b.home, "cloud": b.cloud}[made]
				m.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
				settle(20 * time.Minute)
				equal(t, "rang", b.rang(), "00:05:00 telegram: call May")
				equal(t, "posts to FCM", b.fcm.Posts("phone"), 1)
				equal(t, "facts", b.home.kinds(), "accepted 1, attempt 2, fired 1")
				b.alike()
				b.quiet()
			})
		})
	}
}

func TestAReminderRingsThePhoneAndNothingElse(t *testing.T) { // E09, R:C1
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("phone")
		settle(time.Second)
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		b.home.remind(map[string]any{"content": "stretch", "cron_expr": "10,12 0 * * *", "tz": "UTC"})
		settle(6 * time.Minute)
		equal(t, "rang", b.rang(), "00:05:00 phone: call May")
		for range 2 { // a restart rings nothing again
			b.home.off()
			b.home.on()
			settle(time.Minute)
		}
		settle(10 * time.Minute)
		equal(t, "rang", b.rang(), "00:05:00 phone: call May | 00:10:00 phone: stretch | 00:12:00 phone: stretch")
		equal(t, "on the screen", len(b.fcm.Screen("phone")), 3)
		b.alike()
	})
}

// The machine dies at each point of the way to Telegram.
func TestAKilledNodeRingsWhatWasDue(t *testing.T) { // R:B3
	for _, c := range ringCrashes {
		if !c.refuses {
			continue
		}
		t.Run(c.point, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.cloud.register("phone")
				b.fcm.FailAlways("", standin.InternalError)
				b.home.diesAt(c.point, func() {
					b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:00:30Z"})
				})
				settle(20 * time.Minute)
				rang := strings.Split(b.rang(), " | ")
				equal(t, "how often", len(rang), len(strings.Fields(c.want)))
				for i, want := range strings.Fields(c.want) {
					equal(t, rang[i], strings.Contains(rang[i], "sent again after a restart"), want == again)
					equal(t, "at once: "+rang[i], strings.HasPrefix(rang[i], "00:00:3"), true)
				}
				b.alike()
			})
		})
	}
}

// FCM took it and the answer was lost: nobody can know, so it rings again, with the
// same tag.
func TestALostAnswerOfFCMShowsOneNotice(t *testing.T) { // R:C1
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("phone")
		b.fcm.Fail("phone", standin.AcceptThenCut)
		b.home.config.Push.Telegram = config.Telegram{}
		b.home.off()
		b.home.on()
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(20 * time.Minute)
		equal(t, "posts", b.fcm.Posts("phone"), 2)
		equal(t, "on the screen", len(b.fcm.Screen("phone")), 1)
		equal(t, "that says so", strings.Count(b.rang(), "sent again, the first may have arrived"), 1)
	})
}

// Whether it waits for its turn or has none: it knows the phones, and rings none of them.
func TestTheStandbyRingsNothing(t *testing.T) { // E08
	for _, mode := range []config.Mode{config.Standby, config.Off} {
		t.Run(string(mode), func(t *testing.T) { ringsNothingAs(t, mode) })
	}
}

func ringsNothingAs(t *testing.T, mode config.Mode) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.off()
		b.cloud.config.Scheduler.Mode = mode
		b.cloud.on()
		healed()
		settle(time.Minute - 31*time.Second)
		equal(t, "its scheduler, as home hears", b.home.node.client.Status().Scheduler, string(mode))
		b.cloud.register("phone")
		b.home.off()
		b.cloud.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(7 * time.Minute)
		b.cloud.off()
		b.cloud.on()
		equal(t, "phones", b.cloud.phones(), "phone")
		settle(2*time.Minute - time.Second) // Ada's login took one
		equal(t, "rang", b.rang(), "")
		equal(t, "facts", b.cloud.kinds(), "")
		b.home.on()
		healed()
		equal(t, "rang", b.rang(), "00:10:00 phone: call May (late, was due 00:05)")
		b.alike()
	})
}

// What comes from the cloud already overdue rings at once; the phones that came with
// it are known by then, however slowly they come.
func TestAReminderThatComesOverdueRingsThePhonesOfNow(t *testing.T) { // E08
	inBubble(t, func(t *testing.T, b *bubble) {
		b.home.off()
		b.cloud.register("phone")
		b.cloud.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(10 * time.Minute)
		b.link.answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/push-tokens") {
				time.Sleep(10 * time.Second)
			}
			h, _ := b.cloud.listens()
			h.ServeHTTP(w, r)
		}))
		b.home.on()
		healed()
		if rang := b.rang(); !strings.HasSuffix(rang, " phone: call May (late, was due 00:05)") {
			t.Errorf("rang %q", rang)
		}
	})
}

func TestWhatWasDueWhileTheNodeWasOffRingsLate(t *testing.T) { // R:B1, R:B2
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("phone")
		b.home.do(http.MethodPatch, "/v1/me", map[string]any{"tz": "Europe/Berlin"}, nil) // an hour ahead of UTC
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T08:30"})
		b.home.remind(map[string]any{"content": "stretch", "cron_expr": "30 8 * * *"})
		settle(time.Second)
		b.cloud.off()
		b.home.off()
		until := func(at string) {
			t.Helper()
			then, err := time.Parse(time.RFC3339, at)
			must(t, err)
			settle(time.Until(then))
		}
		until("2000-01-01T08:29:00+01:00")
		b.home.on()
		until("2000-01-01T08:29:47+01:00")
		b.home.off()
		until("2000-01-01T08:31:05+01:00")
		b.home.on()
		settle(time.Second)
		rang := "07:31:05 phone: call May (late, was due 08:30) | 07:31:05 phone: stretch (late, was due 08:30)"
		equal(t, "rang", b.rang(), rang)
		b.home.kill() // R:B1: the next process does not ring them again
		b.home.on()
		settle(time.Minute)
		equal(t, "rang", b.rang(), rang)
		b.home.off()
		until("2000-01-04T10:00:00+01:00")
		b.home.on()
		settle(time.Second)
		equal(t, "rang", b.rang(), rang+" | 09:00:00 phone: stretch (2 earlier missed; late, was due 08:30)")
		b.cloud.on()
		healed()
		b.alike()
	})
}

// next is when a reminder rings next, as a node tells it.
func (m *machine) next(ref string) string {
	m.Helper()
	var row struct{ Next []struct{ At string } }
	m.do(http.MethodGet, "/v1/scheduled-messages/"+ref, nil, &row)
	if len(row.Next) == 0 {
		return "never"
	}
	return row.Next[0].At
}

func TestWhoMovesIsRungByTheNewClockOnBothNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		mine := b.home.remind(map[string]any{"content": "stretch", "cron_expr": "0 9 * * *"})
		fixed := b.home.remind(map[string]any{"content": "call Tokyo", "cron_expr": "0 9 * * *", "tz": "Asia/Tokyo"})
		settle(time.Second)
		both := func(what, ref, want string) {
			t.Helper()
			equal(t, what+", home", b.home.next(ref), want)
			equal(t, what+", the cloud", b.cloud.next(ref), want)
		}
		both("no zone", mine, "2000-01-01T09:00:00Z")
		move := func(m *machine, zone string) {
			t.Helper()
			m.do(http.MethodPatch, "/v1/me", map[string]any{"tz": zone}, nil)
		}
		for _, m := range []*machine{b.home, b.cloud} {
			move(m, "America/New_York")
			settle(time.Second)
			both("in New York", mine, "2000-01-01T14:00:00Z")
			move(m, "UTC")
			settle(time.Second)
			both("in UTC", mine, "2000-01-01T09:00:00Z")
		}
		both("a zone of its own", fixed, "2000-01-02T00:00:00Z")
		b.link.cut() // apart, both choose; the later one stays
		move(b.home, "Asia/Tokyo")
		settle(time.Minute)
		move(b.cloud, "Europe/Berlin")
		equal(t, "home, apart", b.home.next(mine), "2000-01-02T00:00:00Z")
		b.link.mend()
		healed()
		both("together again", mine, "2000-01-01T08:00:00Z")
		b.alike()
		b.quiet()
	})
}

// An edit, a pause and a deletion at the cloud reach the node that rings.
func TestWhatTheCloudIsToldOfAReminderCountsAtHome(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("phone")
		var refs []string
		for _, content := range []string{"moved", "paused", "deleted", "reworded"} {
			refs = append(refs, b.home.remind(map[string]any{"content": content, "trigger_at": "2000-01-01T00:05:00Z"}))
		}
		settle(time.Second)
		path := "/v1/scheduled-messages/"
		b.cloud.do(http.MethodPatch, path+refs[0], map[string]any{"trigger_at": "2000-01-01T00:07:00Z"}, nil)
		b.cloud.do(http.MethodPatch, path+refs[1], map[string]any{"enabled": false}, nil)
		b.cloud.do(http.MethodDelete, path+refs[2], nil, nil)
		b.cloud.do(http.MethodPatch, path+refs[3], map[string]any{"content": "in other words"}, nil)
		settle(10 * time.Minute)
		equal(t, "rang", b.rang(), "00:05:00 phone: in other words | 00:07:00 phone: moved")
		b.cloud.do(http.MethodPatch, path+refs[3], map[string]any{"content": "in other words yet"}, nil)
		settle(5 * time.Minute)
		equal(t, "after a new text", len(b.fcm.Messages()), 2)
		b.alike()
	})
}

// With no way out the reminder waits, and says so; it rings when there is one.
func TestAReminderThatReachesNobodyIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("phone")
		b.fcm.FailAlways("", standin.InternalError)
		b.telegram.FailAlways(0, standin.Hang)
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(25 * time.Minute)
		equal(t, "rang", b.rang(), "")
		b.fcm.Heal()
		settle(10 * time.Minute)
		rang := b.rang()
		if !strings.HasPrefix(rang, "00:2") && !strings.HasPrefix(rang, "00:3") || !strings.HasSuffix(rang, " phone: call May (late, was due 00:05)") {
			t.Errorf("rang %q", rang)
		}
		settle(20 * time.Minute)
		equal(t, "later", b.rang(), rang)
		b.alike()
	})
}

func TestAReminderThatReachedNobodyIsShown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.fcm.FailAlways("", standin.HTML(502))
		b.telegram.FailAlways(0, standin.TelegramError(http.StatusBadRequest, "Bad Request: chat not found"))
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(10 * time.Minute)
		found, err := b.home.node.doctorFor(t.Context(), struct{}{})
		must(t, err)
		var said []string
		for _, f := range found {
			if f.Check == "delivery" {
				said = append(said, fmt.Sprint(f.Level, " ", f.Detail))
			}
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], "warn fire ") || !strings.HasSuffix(said[0], " reached nobody: 400") {
			t.Errorf("the doctor says %q", said)
		}
	})
}
