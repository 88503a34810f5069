package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/push"
	"tandem/internal/sqlite"
	"tandem/internal/standin"
)

// ada is the id of Ada's account.
func (b *bubble) ada() string {
	b.Helper()
	id, found, err := b.cloud.node.users.FirstAdmin(b.Context())
	must(b, err)
	equal(b, "there is an admin", found, true)
	return id
}

// in checks whether the node takes Ada's session.
func (m *machine) in(want bool) {
	m.Helper()
	if want {
		m.do(http.MethodGet, "/v1/todos", nil, nil)
		return
	}
	m.refused(http.MethodGet, "/v1/todos", nil, http.StatusUnauthorized, "no_session")
}

var adasLogin = map[string]string{"email": demoEmail, "password": demoPassword}

func TestOneAccountLogsInAtBothNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.home.in(true)
		b.cloud.in(true)
		b.link.cut() // the copy at home is enough
		b.login()
		b.home.in(true)
		b.home.kill()
		b.home.on()
		b.home.in(true)
		b.home.token = b.cloud.token // a session is good where it was given out
		b.home.in(false)
	})
}

func TestAccountsThatHaveNotComeYetAreNoWrongPassword(t *testing.T) {
	inNewBubble(t, func(t *testing.T, b *bubble) {
		b.home.on() // the cloud was never on
		settle(time.Minute)
		b.home.refused(http.MethodPost, "/v1/auth/login", adasLogin, http.StatusServiceUnavailable, "accounts_not_here_yet")
		b.cloud.on()
		b.open()
		healed()
		b.home.login()
		b.home.in(true)
	})
}

func TestABanEndsSessionsOnBothNodesAndPausesReminders(t *testing.T) { // E10
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("phone")
		b.home.add("stays")
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(time.Second)
		for range 2 { // twice is once
			must(t, b.cloud.node.users.Disable(t.Context(), b.ada()))
			b.cloud.in(false)
			settle(time.Second)
			b.home.in(false)
		}
		for _, m := range []*machine{b.home, b.cloud} {
			m.refused(http.MethodPost, "/v1/auth/login", adasLogin, http.StatusUnauthorized, "wrong_credentials")
		}
		b.home.kill() // a ban outlives the process
		b.home.on()
		settle(20 * time.Minute)
		equal(t, "rang", b.rang(), "")
		b.home.in(false)
		must(t, b.cloud.node.users.Enable(t.Context(), b.ada()))
		settle(time.Minute)
		rang := b.rang()
		if !strings.HasPrefix(rang, "00:20:") || !strings.HasSuffix(rang, "phone: call May (late, was due 00:05)") {
			t.Errorf("after the ban %q rang", rang)
		}
		b.home.in(false) // the sessions that it ended stay ended
		b.cloud.in(false)
		b.login()
		equal(t, "rows", b.home.todos(), "0-1 stays")
		b.alike()
	})
}

// What had fired and reached nobody yet is not sent during the ban either.
func TestANoticeUnderWayWaitsForTheEndOfTheBan(t *testing.T) { // E10
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("phone")
		b.fcm.FailAlways("", standin.InternalError)
		b.telegram.FailAlways(0, standin.HTML(502))
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(6 * time.Minute)
		must(t, b.cloud.node.users.Disable(t.Context(), b.ada()))
		settle(time.Second)
		b.fcm.Heal()
		b.telegram.Heal()
		settle(30 * time.Minute)
		equal(t, "rang", b.rang(), "")
		must(t, b.cloud.node.users.Enable(t.Context(), b.ada()))
		settle(10 * time.Minute)
		if rang := b.rang(); !strings.HasSuffix(rang, "phone: call May (late, was due 00:05)") || strings.Contains(rang, " | ") {
			t.Errorf("after the ban %q rang", rang)
		}
	})
}

// A node that cannot be told goes on; once it can, the ban counts at once.
func TestABanReachesANodeThatWasAway(t *testing.T) { // E10
	for _, off := range []bool{false, true} {
		t.Run(map[bool]string{false: "the link was cut", true: "it was off"}[off], func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				if off {
					b.home.off()
				} else {
					b.link.cut()
				}
				must(t, b.cloud.node.users.Disable(t.Context(), b.ada()))
				settle(10 * time.Minute)
				if off {
					b.home.on()
				} else {
					b.home.in(true)
					b.link.mend()
				}
				healed()
				b.home.in(false)
				b.home.refused(http.MethodPost, "/v1/auth/login", adasLogin, http.StatusUnauthorized, "wrong_credentials")
			})
		})
	}
}

func TestASessionLastsADayAndCanBeEnded(t *testing.T) { // E11
	inBubble(t, func(t *testing.T, b *bubble) {
		b.link.cut() // it is nobody else's business
		first := b.home.token
		b.home.login()
		b.home.do(http.MethodPost, "/v1/auth/logout", nil, nil)
		b.home.in(false)
		second := b.home.token
		b.home.token = first
		b.home.in(true) // another login of hers
		b.home.off()
		b.cloud.off()
		settle(24*time.Hour - time.Minute)
		b.home.on()
		b.home.in(true)
		settle(time.Minute)
		b.home.in(false)
		settle(time.Hour) // until they are swept
		kept, err := sqlite.ReadAll(t.Context(), b.home.node.folder.users, sqlite.Value[int], `SELECT 1 FROM sessions`)
		must(t, err)
		equal(t, "sessions kept", len(kept), 0)
		b.home.login()
		b.home.off()
		for _, token := range []string{first, second, b.home.token, bubbleSecret, demoPassword} {
			nowhereIn(t, b.home.config.Node.Data, token)
			if strings.Contains(b.home.log.String(), token) {
				t.Error("the log holds a secret")
			}
		}
	})
}

// nowhereIn checks that no file in dir holds the text.
func nowhereIn(t *testing.T, dir, text string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) == 0 {
		t.Error("there is nothing to look through")
	}
	for _, e := range entries {
		if b, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil && bytes.Contains(b, []byte(text)) {
			t.Errorf("%s holds a secret", e.Name())
		}
	}
}

func TestASessionIsItsAccounts(t *testing.T) { // E11
	inBubble(t, func(t *testing.T, b *bubble) {
		err := b.home.node.folder.users.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := tx.Exec(`INSERT INTO sessions (token_hash, user_id, password_version, created_at, expires_at) VALUES (zeroblob(32), 'nobody', 1, 0, 1)`)
			return err
		})
		if err == nil {
			t.Error("a session without an account was kept")
		}
	})
}

func TestPhonesAreKnownToBothNodes(t *testing.T) { // E08
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("at-the-cloud")
		b.home.register("at-home")
		settle(time.Second)
		for _, m := range []*machine{b.home, b.cloud} {
			equal(t, m.config.Node.Name, m.phones(), "at-home at-the-cloud")
		}
		b.link.cut() // what is made apart is there once they are together
		b.home.register("apart-at-home")
		b.cloud.register("apart-at-the-cloud")
		b.home.kill()
		b.home.on()
		equal(t, "home, apart", b.home.phones(), "apart-at-home at-home at-the-cloud")
		b.link.mend()
		healed()
		for _, m := range []*machine{b.home, b.cloud} {
			equal(t, m.config.Node.Name, m.phones(), "apart-at-home apart-at-the-cloud at-home at-the-cloud")
		}
		b.cloud.do(http.MethodDelete, "/v1/push-tokens/device-of-at-home", nil, nil)
		b.home.do(http.MethodDelete, "/v1/push-tokens/device-of-at-the-cloud", nil, nil)
		b.home.do(http.MethodDelete, "/v1/push-tokens/device-of-at-the-cloud", nil, nil)
		settle(time.Second)
		for _, m := range []*machine{b.home, b.cloud} {
			equal(t, m.config.Node.Name, m.phones(), "apart-at-home apart-at-the-cloud")
		}
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(10 * time.Minute)
		equal(t, "rang", b.rang(), "00:05:00 apart-at-home: call May | 00:05:00 apart-at-the-cloud: call May")
	})
}

// A token that FCM gave up goes from both nodes for good, and a newer one of the
// same phone stays.
func TestAPhoneThatIsGoneGoesFromBothNodes(t *testing.T) { // E08
	for name, apart := range map[string]bool{"together": false, "apart": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.cloud.register("old")
				b.cloud.register("other")
				settle(time.Second)
				b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
				b.fcm.FailAlways("old", standin.Unregistered)
				if apart {
					b.link.cut()
				}
				settle(10 * time.Minute)
				equal(t, "rang", b.rang(), "00:05:00 other: call May")
				equal(t, "home", b.home.phones(), "other")
				if apart {
					b.home.kill() // the news is in the file
					b.home.on()
					b.link.mend()
					healed()
				}
				for range 2 {
					equal(t, "the cloud", b.cloud.phones(), "other")
					equal(t, "home", b.home.phones(), "other")
					b.cloud.off()
					b.home.off()
					b.cloud.on()
					b.home.on()
					healed()
				}
				equal(t, "posts", b.fcm.Posts("old"), 1)
				b.cloud.do(http.MethodPost, "/v1/push-tokens", map[string]string{"token": "new", "platform": "android", "device_id": "device-of-old"}, nil)
				settle(time.Second)
				equal(t, "home", b.home.phones(), "new other")
			})
		})
	}
}

// The phone has a new token by the time that home hears of the end of the old one.
func TestANewTokenOutlivesTheEndOfTheOldOne(t *testing.T) { // E08
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("old")
		settle(time.Second)
		b.link.cut()
		b.cloud.do(http.MethodPost, "/v1/push-tokens", map[string]string{"token": "new", "platform": "android", "device_id": "device-of-old"}, nil)
		b.fcm.FailAlways("old", standin.Unregistered)
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(10 * time.Minute)
		equal(t, "rang", b.rang(), "00:05:00 telegram: call May")
		b.link.mend()
		healed()
		equal(t, "the cloud", b.cloud.phones(), "new")
		equal(t, "home", b.home.phones(), "new")
	})
}

// Whoever holds the phone has its reminders: a token that moves, moves wholly.
func TestAPhoneThatChangesHandsRingsItsNewOwner(t *testing.T) { // E08
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("phone")
		settle(time.Second)
		err := b.cloud.node.folder.todos.Write(context.Background(), func(tx *sqlite.Tx) error {
			_, err := b.cloud.node.tokens.RegisterTx(tx, "01BEN000000000000000000000", push.Registration{Token: "phone", Platform: "android", DeviceID: "device-of-phone"})
			return err
		})
		must(t, err)
		settle(time.Second)
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(10 * time.Minute)
		equal(t, "rang", b.rang(), "00:05:00 telegram: call May")
	})
}
