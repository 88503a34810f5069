package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/config"
	"tandem/internal/sqlite"
	"tandem/internal/standin"
	"tandem/internal/users"
)

// bubble is two whole nodes in one process and in virtual time: real files, real
// handlers, and lines in memory where there would be sockets.
type bubble struct {
	*testing.T
	fcm         *standin.FCM
	telegram    *standin.Telegram
	home, cloud *machine
	link        *line // from home to the cloud
}

const bubbleSecret = "a-secret-of-two-nodes-that-share-one-bubble-0"

// inBubble runs a test with two nodes that are on and know each other: Ada has an
// account, and a session at each. It begins at midnight, UTC, as 2000 does.
func inBubble(t *testing.T, test func(*testing.T, *bubble)) {
	t.Helper()
	inNewBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.on()
		b.home.on()
		b.open()
		settle(time.Second)
		b.login()
		test(t, b)
	})
}

// inNewBubble runs a test with two nodes that have never been on.
func inNewBubble(t *testing.T, test func(*testing.T, *bubble)) {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { test(t, newBubble(t, dir)) })
}

func newBubble(t *testing.T, dir string) *bubble {
	b := &bubble{T: t, fcm: standin.NewFCM("demo"), telegram: standin.NewTelegram("1:demo")}
	b.cloud = newMachine(b, dir, config.Node{Name: "cloud", Origin: 1}, config.Peer{Name: "home"}, config.Standby)
	b.link = &line{to: b.cloud}
	b.home = newMachine(b, dir, config.Node{Name: "home"}, config.Peer{Name: "cloud", URL: "http://cloud.test"}, config.Active)
	t.Cleanup(func() {
		b.home.off()
		b.cloud.off()
	})
	return b
}

func newMachine(b *bubble, dir string, n config.Node, peer config.Peer, mode config.Mode) *machine {
	n.Data, peer.Token = filepath.Join(dir, n.Name), bubbleSecret
	m := &machine{T: b.T, config: config.Config{Node: n, Peer: peer, Scheduler: config.Scheduler{Mode: mode}, Push: config.Push{
		FCM:      config.FCM{ProjectID: "demo", Endpoint: "http://fcm.test"},
		Telegram: config.Telegram{Token: "1:demo", Endpoint: "http://telegram.test", ChatID: demoChat},
	}}}
	m.door = &line{to: m}
	m.far = func() outside {
		return outside{
			now: m.now, rand: rand.NewChaCha8([32]byte{byte(n.Origin), m.starts}), crash: m.crash,
			peer: leaving{m, b.link}, fcm: leaving{m, standin.Transport(b.fcm)}, telegram: leaving{m, standin.Transport(b.telegram)},
		}
	}
	return m
}

// open makes Ada's account at the cloud, with a password that is cheap to check.
func (b *bubble) open() {
	b.Helper()
	accounts, err := users.NewStore(b.Context(), b.cloud.node.folder.users, users.Options{
		Authority: true, Hasher: users.NewHasher(users.Cost{Memory: 8, Passes: 1}), OnChange: b.cloud.node.announce,
	})
	must(b, err)
	_, err = accounts.Init(b.Context(), demoEmail, demoPassword)
	must(b, err)
}

// login gives Ada new sessions: one lasts a day.
func (b *bubble) login() {
	b.Helper()
	b.home.login()
	b.cloud.login()
}

// settle lets so much time pass, and then waits until nothing moves.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// healed lets as much time pass as a link may take that has healed, and then as
// much as crossing takes.
func healed() { settle(31 * time.Second) }

// tables is what replicates, as each node holds it.
const tables = `
	SELECT json_array('todo', origin, id, hex(uid), owner, created_at, updated_at, updated_by, deleted_at, content, due_at, due_on, tz, done, notes, seen) FROM todos
	UNION ALL SELECT json_array('settings', origin, id, hex(uid), owner, created_at, updated_at, updated_by, deleted_at, tz, seen) FROM settings
	UNION ALL SELECT json_array('reminder', origin, id, hex(uid), owner, created_at, updated_at, updated_by, deleted_at, content, trigger_at, cron_expr, rrule, tz, enabled, schedule_effective_from, seen) FROM scheduled_messages
	UNION ALL SELECT json_array('fact', hex(uid), kind, subject, owner, node, at, body) FROM facts
	ORDER BY 1`

// alike checks that both nodes hold the same, byte for byte, and returns it.
func (b *bubble) alike() []string {
	b.Helper()
	home, cloud := b.home.rows(tables), b.cloud.rows(tables)
	if !slices.Equal(home, cloud) {
		b.Errorf("home holds\n%s\nthe cloud holds\n%s", strings.Join(home, "\n"), strings.Join(cloud, "\n"))
	}
	return home
}

// quiet checks that nothing moves between the nodes any more.
func (b *bubble) quiet() {
	b.Helper()
	count := func() string {
		const seq = `SELECT max(seq) FROM (SELECT seq FROM todos UNION ALL SELECT seq FROM settings
			UNION ALL SELECT seq FROM scheduled_messages UNION ALL SELECT seq FROM facts)`
		return fmt.Sprint(b.home.rows(seq), b.cloud.rows(seq))
	}
	before := count()
	settle(3 * time.Minute)
	equal(b, "moved without a reason", count(), before)
}

// rows reads lines of text from todos.db.
func (m *machine) rows(query string) []string {
	m.Helper()
	list, err := sqlite.ReadAll(context.Background(), m.node.folder.todos, sqlite.Value[string], query)
	must(m, err)
	return list
}

// register has a phone ring for Ada; its token is its name.
func (m *machine) register(phone string) {
	m.Helper()
	m.do(http.MethodPost, "/v1/push-tokens", map[string]string{"token": phone, "platform": "android", "device_id": "device-of-" + phone}, nil)
}

// phones are the tokens that the node would ring.
func (m *machine) phones() string {
	m.Helper()
	return strings.Join(m.rows(`SELECT token FROM push_tokens ORDER BY token`), " ")
}

// remind sets a reminder and returns its ref.
func (m *machine) remind(fields map[string]any) string {
	m.Helper()
	var row struct{ Ref string }
	m.do(http.MethodPost, "/v1/scheduled-messages", fields, &row)
	return row.Ref
}

// rang is what reached people, in order: "15:04:05 via: text (notes)".
func (b *bubble) rang() string {
	type ring struct {
		at   time.Time
		text string
	}
	var all []ring
	for _, m := range b.fcm.Messages() {
		text := m.Token + ": " + m.Data["body"]
		if notes := m.Data["notes"]; notes != "" {
			text += " (" + strings.ReplaceAll(notes, "\n", "; ") + ")"
		}
		all = append(all, ring{m.At, text})
	}
	for _, m := range b.telegram.Messages() {
		lines := strings.Split(m.Text, "\n")
		text := "telegram: " + lines[1] // below the title
		if len(lines) > 2 {
			text += " (" + strings.Join(lines[2:], "; ") + ")"
		}
		all = append(all, ring{m.At, text})
	}
	slices.SortFunc(all, func(a, b ring) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.text, b.text)) })
	var out []string
	for _, r := range all {
		out = append(out, r.at.UTC().Format(time.TimeOnly)+" "+r.text)
	}
	return strings.Join(out, " | ")
}
