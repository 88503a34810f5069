package push

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
)

func TestReminderReachesEveryPhoneAndNoChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a", "b")
		w.phone("bob", "c")
		w.enqueue(ring("fire", "ada"))
		w.deliver()
		to := w.fcm.to()
		slices.Sort(to)
		same(t, to, []string{"a", "b"})
		equal(t, len(w.telegram.to()), 0)
		same(t, w.story("fire"), []string{"sending:fcm:", "accepted:fcm:"}) // A41, A42
		equal(t, len(w.facts("fire", "accepted")), 2)
		same(t, w.facts("fire", "attempt"), []string{`{"kind":"ring","attempt":1,"channel":"fcm","targets":[{"place":"device-a"},{"place":"device-b"}]}`})
		if w.of("fire").NextAttemptAt != nil {
			t.Error("it is to be tried again")
		}
		time.Sleep(time.Hour)
		w.deliver()
		equal(t, len(w.fcm.to()), 2)
	})
}

func TestReminderFallsBackToTelegram(t *testing.T) { // E09
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.fcm.will(fail(Retry, "500"))
		w.enqueue(ring("fire", "ada"))
		w.deliver()
		same(t, w.telegram.to(), []string{"42"})
		equal(t, w.telegram.last().FireID, w.fcm.last().FireID)
		same(t, w.story("fire"), []string{"sending:fcm:", "failed_retryable:fcm:500", "sending:telegram:", "accepted:telegram:"})
		same(t, w.facts("fire", "accepted"), []string{`{"kind":"ring","channel":"telegram","place":"42","message_id":"telegram-1"}`})
		equal(t, len(w.facts("fire", "attempt")), 2)
		time.Sleep(time.Hour)
		w.deliver()
		equal(t, len(w.fcm.to()), 1) // the person was told
	})
}

func TestNoticeIsEnqueuedOnceAndOnlyWithItsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		undone := errors.New("undone")
		err := w.db.Write(t.Context(), func(tx *sqlite.Tx) error {
			return errors.Join(w.outbox.EnqueueTx(tx, ring("never", "ada")), undone)
		})
		equal(t, errors.Is(err, undone), true)
		w.enqueue(ring("fire", "ada"), ring("fire", "ada"))
		w.deliver()
		w.enqueue(ring("fire", "ada")) // done twice
		w.deliver()
		same(t, w.fcm.to(), []string{"a"})
		equal(t, w.fcm.last().FireID, "fire")
	})
}

func TestEnqueuedNoticeWakesTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		time.AfterFunc(7*time.Second, func() { w.enqueue(ring("fire", "ada")) })
		began := time.Now()
		w.run(w.outbox.Loops(), time.Minute)
		same(t, w.fcm.to(), []string{"a"})
		equal(t, w.fcm.last().at.Sub(began), 7*time.Second)
	})
}

func TestHalfANoticeIsRefused(t *testing.T) {
	w := newWorld(t)
	whole := ring("fire", "ada")
	for name, spoil := range map[string]func(*Notice){
		"fire":  func(n *Notice) { n.FireID = "" },
		"kind":  func(n *Notice) { n.Kind = "" },
		"owner": func(n *Notice) { n.Owner = "" },
		"time":  func(n *Notice) { n.DueAt = time.Time{} },
		"life":  func(n *Notice) { n.TTL = 0 },
	} {
		n := whole
		spoil(&n)
		if err := w.db.Write(t.Context(), func(tx *sqlite.Tx) error { return w.outbox.EnqueueTx(tx, n) }); err == nil {
			t.Errorf("a notice without a %s was taken", name)
		}
	}
}

func TestEachRoundIsOneAttemptUnderTheSameFire(t *testing.T) { // R:C1
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("bob", "b")
		// Taken, and the answer lost: no answer came, so it is sent again.
		w.fcm.will(func(context.Context, Target) error { return &Failure{Verdict: Retry, Code: "network"} })
		w.enqueue(ring("fire", "bob"))
		w.deliver()
		w.deliver()
		equal(t, len(w.fcm.to()), 1)
		w.fcm.will(fail(Retry, "503"))
		for round := 2; round <= 5; round++ {
			time.Sleep(longestBackoff * 5 / 4)
			w.deliver()
			equal(t, len(w.fcm.to()), round)
		}
		w.fcm.will(take)
		time.Sleep(longestBackoff * 5 / 4)
		w.deliver()
		for _, p := range w.fcm.posts {
			equal(t, p.FireID, "fire")
		}
		equal(t, w.of("fire").State, Accepted)
		equal(t, len(w.facts("fire", "attempt")), 6)
	})
}

func TestOfThreeTokensOnlyTheOneThatFailedIsRetried(t *testing.T) { // R:C3
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "fine", "unwell", "dead")
		w.fcm.will(each(map[string]func(context.Context, Target) error{"unwell": fail(Retry, "500"), "dead": fail(Unregistered, "UNREGISTERED")}))
		w.enqueue(ring("fire", "ada"))
		w.deliver()
		equal(t, len(w.fcm.to()), 3)
		equal(t, len(w.facts("fire", "accepted")), 1)
		devices, err := w.tokens.List(t.Context(), "ada")
		must(t, err)
		equal(t, len(devices), 2)

		time.Sleep(9 * time.Second)
		w.deliver()
		equal(t, len(w.fcm.to()), 3) // not before its time
		time.Sleep(4 * time.Second)
		w.deliver()
		same(t, w.fcm.to()[3:], []string{"unwell"})
		w.fcm.will(take)
		time.Sleep(30 * time.Second)
		w.deliver()
		same(t, w.fcm.to()[3:], []string{"unwell", "unwell"})
		equal(t, w.of("fire").State, Accepted)
		equal(t, len(w.telegram.to()), 0)
		equal(t, len(w.facts("fire", "accepted")), 2)
	})
}

func TestADeviceThatStaysUnwellIsGivenUpWhereAnotherRang(t *testing.T) { // R:B7
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "fine", "unwell")
		w.fcm.will(each(map[string]func(context.Context, Target) error{"unwell": fail(Retry, "500")}))
		w.enqueue(ring("fire", "ada"))
		w.run(w.outbox.Loops(), 3*time.Hour)
		equal(t, len(w.fcm.to()), 1+spareAttempts)
		equal(t, w.of("fire").State, Accepted)
	})
}

func TestUserWithoutDevicesIsToldByTelegramAtOnce(t *testing.T) { // R:C12
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.enqueue(ring("fire", "ada"))
		w.deliver()
		time.Sleep(time.Hour)
		w.deliver()
		same(t, w.telegram.to(), []string{"42"})
		equal(t, len(w.fcm.to()), 0)
		equal(t, len(w.facts("fire", "attempt")), 1)
		same(t, w.story("fire"), []string{"sending:telegram:", "accepted:telegram:"})
	})
}

func TestPermanentFailureIsDeadWithItsReasonAfterBoundedTries(t *testing.T) { // R:B7, A47
	t.Run("never taken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.phone("ada", "a")
			w.fcm.will(fail(Rejected, "INVALID_ARGUMENT"))
			w.telegram.will(fail(Rejected, "400"))
			w.enqueue(ring("fire", "ada"))
			w.run(w.outbox.Loops(), 2*time.Hour)
			equal(t, len(w.fcm.to())+len(w.telegram.to()), 2)
			d := w.of("fire")
			equal(t, d.State, Terminal)
			equal(t, d.Reason, "400")
			equal(t, len(w.facts("fire", "accepted")), 0)
		})
	})
	t.Run("unwell for as long as it matters", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.phone("bob", "b")
			w.fcm.will(fail(Retry, "500"))
			n := ring("fire", "bob")
			n.TTL = 2 * time.Hour
			w.enqueue(n)
			w.run(w.outbox.Loops(), time.Hour)
			waiting, err := w.outbox.Waiting(t.Context())
			must(t, err)
			equal(t, len(waiting), 1)
			equal(t, fmt.Sprint(waiting[0].FireID, " ", waiting[0].State, " ", waiting[0].Reason), "fire failed_retryable 500")
			equal(t, waiting[0].DueAt, n.DueAt.UnixMilli())
			if in := time.Until(time.UnixMilli(waiting[0].NextAt)); in <= 0 || in > time.Hour {
				t.Errorf("it is tried again in %v", in)
			}
			w.run(w.outbox.Loops(), 2*time.Hour)
			if n := len(w.fcm.to()); n < 20 || n > 30 {
				t.Errorf("%d attempts in two hours", n)
			}
			if late := w.fcm.last().at.Sub(n.DueAt); late > n.TTL {
				t.Errorf("tried %v after it was due", late)
			}
			dead, err := w.outbox.Dead(t.Context())
			must(t, err)
			equal(t, len(dead), 1)
			equal(t, dead[0].FireID, "fire")
			equal(t, dead[0].State, Terminal)
			equal(t, dead[0].Reason, "500")
			waiting, err = w.outbox.Waiting(t.Context())
			must(t, err)
			equal(t, len(waiting), 0)
			events := w.of("fire").Events
			if late := events[len(events)-1].At.Sub(n.DueAt.Add(n.TTL)); late > poll {
				t.Errorf("called dead %v after its time", late)
			}
			equal(t, len(w.facts("fire", "accepted")), 0)
		})
	})
}

func TestBackoffGrowsFromTenSecondsToFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("bob", "b")
		w.fcm.will(fail(Retry, "500"))
		w.enqueue(ring("fire", "bob"))
		w.run(w.outbox.Loops(), time.Hour)
		least := firstBackoff
		for i := 1; i < len(w.fcm.posts); i++ {
			gap := w.fcm.posts[i].at.Sub(w.fcm.posts[i-1].at)
			if gap < least || gap > least*5/4+poll {
				t.Errorf("gap %d is %v, want about %v", i, gap, least)
			}
			least = min(2*least, longestBackoff)
		}
	})
}

func TestAWaitThatTheServiceNamedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("bob", "b")
		w.fcm.will(func(context.Context, Target) error {
			return &Failure{Verdict: Retry, Code: "500", RetryAfter: 20 * time.Minute}
		})
		w.enqueue(ring("fire", "bob"))
		w.run(w.outbox.Loops(), 19*time.Minute)
		equal(t, len(w.fcm.to()), 1)
		w.run(w.outbox.Loops(), 2*time.Minute)
		equal(t, len(w.fcm.to()), 2)
	})
}

func TestAllChannelsDownDeliversLateAndSaysSo(t *testing.T) { // R:B8
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.fcm.will(fail(Retry, "network"))
		w.telegram.will(fail(Retry, "network"))
		time.Sleep(8 * time.Hour) // 09:00 in Berlin
		w.enqueue(ring("fire", "ada"))
		w.run(w.outbox.Loops(), 20*time.Minute)
		equal(t, w.of("fire").State, Retryable)
		equal(t, len(w.facts("fire", "accepted")), 0)
		same(t, w.fcm.posts[0].Notes, []string{})
		same(t, w.fcm.last().Notes, []string{"late, was due 09:00"})

		w.telegram.will(take)
		w.run(w.outbox.Loops(), 7*time.Minute)
		d := w.of("fire")
		equal(t, d.State, Accepted)
		equal(t, d.Channel, "telegram")
		same(t, w.telegram.last().Notes, []string{"late, was due 09:00"})
	})
}

func TestLateNoteTellsTheTimeAsThePersonReadsIt(t *testing.T) {
	due := time.Date(2026, 5, 6, 6, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		zone  string
		after time.Duration
		notes []string
		want  []string
	}{
		{"Europe/Berlin", time.Minute, nil, nil},
		{"Europe/Berlin", time.Hour, nil, []string{"late, was due 08:30"}},
		{"Europe/Berlin", 20 * time.Hour, nil, []string{"late, was due 2026-05-06 08:30"}},
		{"", time.Hour, nil, []string{"late, was due 2026-05-06T06:30:00Z"}},
		{"Nowhere/Land", time.Hour, nil, []string{"late, was due 2026-05-06T06:30:00Z"}},
		{"Europe/Berlin", time.Hour, []string{"2 earlier missed"}, []string{"2 earlier missed", "late, was due 08:30"}},
	} {
		in := &intent{notice: Notice{DueAt: due, Zone: c.zone, Notes: c.notes}}
		same(t, in.message(due.Add(c.after), "").Notes, c.want)
	}
}

func TestALateFireIsTriedAtLeastOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		late := ring("late", "ada")
		late.DueAt = time.Now().Add(-3 * 24 * time.Hour) // the node was down
		w.enqueue(late, ring("waits", "ada"))
		time.Sleep(2 * 24 * time.Hour) // and again, right after
		w.deliver()
		equal(t, len(w.fcm.to()), 2)
		equal(t, w.of("late").State, Accepted)
		equal(t, w.of("waits").State, Accepted)
	})
}

func TestWhoCannotBeReachedIsToldOnceADeviceComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.enqueue(ring("fire", "bob"))
		w.run(w.outbox.Loops(), 10*time.Minute)
		equal(t, w.of("fire").State, Retryable)
		equal(t, w.of("fire").Reason, NoAddress)
		equal(t, len(w.of("fire").Events), 1) // waiting on is no change
		w.phone("bob", "b")
		w.run(w.outbox.Loops(), 7*time.Minute)
		same(t, w.fcm.to(), []string{"b"})
		equal(t, w.of("fire").State, Accepted)
	})
}

func TestWhoIsDisabledIsToldNothingUntilLetInAgain(t *testing.T) { // E10
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.phone("bob", "b")
		w.fcm.will(fail(Rejected, "400")) // under way: FCM will not have it
		w.outbox.crash = func(point string) {
			if point == "push.fallback" {
				w.banned = []string{"ada"}
			}
		}
		w.enqueue(ring("fire", "ada"))
		w.deliver()
		w.fcm.will(take)
		short := ring("short", "ada")
		short.TTL = 10 * time.Minute
		w.enqueue(short, ring("bob's", "bob"))
		w.run(w.outbox.Loops(), 20*time.Minute)
		equal(t, len(w.telegram.to()), 0)
		equal(t, w.of("bob's").State, Accepted)
		equal(t, w.of("fire").State, Retryable)
		equal(t, w.of("fire").Reason, disabled)
		equal(t, w.of("short").State, Terminal) // its life is over
		equal(t, w.of("short").Reason, disabled)
		w.banned = nil
		w.run(w.outbox.Loops(), 7*time.Minute)
		same(t, w.telegram.to(), []string{"42"})
		equal(t, w.of("fire").State, Accepted)
	})
}

func TestANodeWithoutChannelsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.routes = func(*world) []Route { return nil }
		w.start()
		w.phone("ada", "a")
		n := ring("fire", "ada")
		n.TTL = time.Hour
		w.enqueue(n)
		w.deliver()
		equal(t, w.of("fire").State, Retryable)
		equal(t, w.of("fire").Reason, NoChannel)
		w.run(w.outbox.Loops(), 2*time.Hour)
		equal(t, w.of("fire").State, Terminal)
		equal(t, w.of("fire").Reason, NoChannel)
	})
}

func TestMisconfiguredChannelKeepsTheToken(t *testing.T) { // R:C4 SENDER_ID_MISMATCH
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.phone("bob", "b")
		w.fcm.will(fail(Misconfig, "SENDER_ID_MISMATCH"))
		w.enqueue(ring("one", "ada"), ring("two", "bob"))
		w.deliver()
		equal(t, w.of("one").State, Accepted)
		equal(t, w.of("one").Channel, "telegram")
		equal(t, w.of("two").Reason, "SENDER_ID_MISMATCH")
		w.fcm.will(take)
		w.run(w.outbox.Loops(), 6*time.Minute)
		equal(t, w.of("two").State, Accepted)
	})
}

func TestOneChannelsTroubleDelaysNobodyElse(t *testing.T) {
	t.Run("a service that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.phone("bob", "b")
			w.fcm.will(hang)
			began := time.Now()
			w.enqueue(ring("hangs", "bob"))
			time.AfterFunc(time.Second, func() { w.enqueue(ring("fire", "ada")) })
			w.run(w.outbox.Loops(), 10*time.Second)
			same(t, w.telegram.to(), []string{"42"})
			equal(t, w.telegram.last().at.Sub(began), time.Second)
		})
	})
	t.Run("a service that panics", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.phone("ada", "a")
			w.fcm.will(func(context.Context, Target) error { panic("a bug") })
			w.enqueue(ring("fire", "ada"))
			w.deliver()
			same(t, w.story("fire"), []string{"sending:fcm:", "failed_retryable:fcm:panic", "sending:telegram:", "accepted:telegram:"})
		})
	})
	t.Run("chats that cannot be read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.chatsFail = errors.New("no file")
			w.phone("bob", "b")
			w.enqueue(ring("one", "bob"), ring("two", "ada"))
			w.deliver()
			equal(t, w.of("one").State, Accepted)
			equal(t, w.of("two").State, Retryable)
			equal(t, w.of("two").Reason, noLookup)
			w.chatsFail = nil
			time.Sleep(lookAgain)
			w.deliver()
			equal(t, w.of("two").State, Accepted)
		})
	})
	t.Run("a hundred at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.phone("bob", "b")
			var many []Notice
			for i := range 100 {
				many = append(many, ring(fmt.Sprint(i), []string{"ada", "bob"}[i%2]))
			}
			w.enqueue(many...)
			w.deliver()
			equal(t, len(w.fcm.to()), 50)
			equal(t, len(w.telegram.to()), 50)
		})
	})
}

func TestHangingServiceFallsBackWithinItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.fcm.will(hang)
		began := time.Now()
		w.enqueue(ring("fire", "ada"))
		w.deliver()
		same(t, w.telegram.to(), []string{"42"})
		equal(t, w.telegram.last().at.Sub(began), sendLimit)
		equal(t, w.of("fire").State, Accepted)
	})
}

// Nothing of a notice's text, and no token, is in what facts tell of it.
func TestDeliveryTellsNoTextAndNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "canary")
		w.write(func(tx *sqlite.Tx) error {
			_, err := tx.Exec(`UPDATE push_tokens SET device_id = 'pixel'`)
			return err
		})
		w.enqueue(ring("fire", "ada"))
		w.deliver()
		told := fmt.Sprint(w.facts("fire", "attempt"), w.facts("fire", "accepted"))
		for _, secret := range []string{"canary", "call May"} {
			if strings.Contains(told, secret) {
				t.Errorf("%q is in %s", secret, told)
			}
		}
		if !strings.Contains(told, "pixel") {
			t.Error("the device is not named")
		}
	})
}
