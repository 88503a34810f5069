package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/internal/config"
	"tandem/internal/push"
	"tandem/internal/sqlite"
	"tandem/internal/sync/link"
)

// told are the titles of what the nodes said of themselves, sorted.
func (b *bubble) told() string {
	var out []string
	for _, m := range b.fcm.Messages() {
		out = append(out, m.Data["title"])
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// syncStatus is what a node says of its link.
func (m *machine) syncStatus() (s struct {
	State, Code, Detail, Banner string
	Fetch, Send                 struct {
		LastSuccess string `json:"last_success"`
		Pending     *int64
	}
}) {
	m.Helper()
	m.do(http.MethodGet, "/v1/sync/status", nil, &s)
	return s
}

// revoke has the cloud know a secret that may be another than home's.
func (b *bubble) revoke(secret string) {
	b.Helper()
	b.cloud.off()
	b.cloud.config.Peer.Token = config.Secret(secret)
	b.cloud.on()
}

// S:66. A link that is dead for a day is told of by each node that runs, and once more
// when it is over.
func TestALinkThatIsDeadForADayIsToldOf(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.home.register("phone")
		settle(time.Minute)
		equal(t, "banner", b.home.syncStatus().Banner+b.cloud.syncStatus().Banner, "")
		b.revoke(strings.Repeat("another-secret-", 4))
		settle(20 * time.Hour)
		b.login()
		for _, m := range []*machine{b.home, b.cloud} {
			if s := m.syncStatus(); s.State == "ok" || s.Banner != "" || s.Detail == "" {
				t.Errorf("after 20 h: %+v", s)
			}
		}
		equal(t, "told after 20 h", b.told(), "")
		b.home.kill() // what has crossed last is known for good
		b.home.on()
		settle(5*time.Hour + 5*time.Minute)
		equal(t, "told after 25 h", b.told(), "cloud not synced for 24 h, home not synced for 24 h")
		b.login()
		for m, other := range map[*machine]string{b.home: "cloud", b.cloud: "home"} {
			if s := m.syncStatus(); !strings.HasPrefix(s.Banner, other+" not synced for 25 h, since 2000-01-01T00:0") || s.Fetch.LastSuccess == "" || s.Send.LastSuccess == "" {
				t.Errorf("after 25 h: %+v", s)
			}
		}
		for _, m := range b.fcm.Messages() {
			if !strings.HasPrefix(m.Data["body"], "Nothing has crossed between ") || !strings.Contains(m.Data["body"], " since 2000-01-01 00:0") {
				t.Errorf("told: %q", m.Data["body"])
			}
			if strings.Contains(m.Data["body"], bubbleSecret) || strings.Contains(m.Data["body"], "another-secret-") {
				t.Errorf("told with a secret: %q", m.Data["body"])
			}
		}
		b.revoke(bubbleSecret)
		settle(3 * time.Minute)
		equal(t, "told when it is over", b.told(), "cloud not synced for 24 h, cloud syncs again, home not synced for 24 h, home syncs again")
		equal(t, "banner", b.home.syncStatus().Banner+b.cloud.syncStatus().Banner, "")
		equal(t, "state", b.home.syncStatus().State+" "+b.cloud.syncStatus().State, "ok ok")
		b.alike()
	})
}

// quietWorld is what a contact lives in, without a node around it.
type quietWorld struct {
	*testing.T
	db    *sqlite.DB
	clock time.Time
	link  link.Status
	admin string
	*contact
}

func newQuietWorld(t *testing.T) *quietWorld {
	w := &quietWorld{T: t, clock: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), admin: "ada"}
	var err error
	w.db, err = sqlite.Open(t.Context(), sqlite.Options{
		Path: filepath.Join(t.TempDir(), "todos.db"), Schema: sqlite.Todos, Rand: rand.NewChaCha8([32]byte{}), Now: func() time.Time { return w.clock },
	})
	must(t, err)
	t.Cleanup(func() { w.db.Close() })
	w.start()
	return w
}

// start begins another process: what the link knew is gone.
func (w *quietWorld) start() {
	w.Helper()
	outbox, err := push.NewOutbox(w.Context(), w.db, nil, nil, push.OutboxOptions{Log: slog.New(slog.DiscardHandler)})
	must(w, err)
	w.link = link.Status{Detail: "It is cut."}
	w.contact = &contact{contactOptions: contactOptions{
		db: w.db, outbox: outbox, node: "home", peer: "cloud", status: func() link.Status { return w.link },
		admin: func(context.Context) (string, bool, error) { return w.admin, w.admin != "", nil },
		zone:  func(*sqlite.Tx, string) (string, error) { return "Asia/Shanghai", nil },
	}}
}

// pass lets time pass, a round each minute; works says whether the link does, each way.
func (w *quietWorld) pass(d time.Duration, fetches, offers bool) {
	w.Helper()
	for range int(d / time.Minute) {
		w.clock = w.clock.Add(time.Minute)
		if fetches {
			w.link.FetchedAt = w.clock.UnixMilli()
		}
		if offers {
			w.link.OfferedAt = w.clock.UnixMilli()
		}
		must(w, w.look(w.Context()))
	}
}

// notices are what the owner was told, oldest first.
func (w *quietWorld) notices() string {
	w.Helper()
	all, err := sqlite.ReadAll(w.Context(), w.db, sqlite.Value[string], `SELECT title || ': ' || body FROM delivery_intents ORDER BY created_at`)
	must(w, err)
	return strings.Join(all, "\n")
}

const (
	dayOne  = "cloud not synced for 24 h: Nothing has crossed between home and cloud since 2026-05-01 21:00 CST. It is cut."
	overNow = "cloud syncs again: home and cloud are in touch. What was written meanwhile crosses now."
)

func TestASilenceIsToldOfOnceADay(t *testing.T) {
	w := newQuietWorld(t)
	w.pass(time.Hour, true, true)
	w.pass(24*time.Hour, false, false)
	equal(t, "told after a day", w.notices(), "")
	w.pass(10*time.Minute, false, false)
	equal(t, "told after a day and ten minutes", w.notices(), dayOne)
	w.pass(24*time.Hour-time.Minute, false, false)
	equal(t, "told before the second day", w.notices(), dayOne)
	w.pass(time.Minute, false, false)
	dayTwo := dayOne + "\n" + strings.Replace(dayOne, "24 h", "48 h", 1)
	equal(t, "told after the second day", w.notices(), dayTwo)
	w.pass(time.Minute, true, false)
	equal(t, "told when one way works", w.notices(), dayTwo)
	w.pass(time.Minute, true, true)
	equal(t, "told when both do", w.notices(), dayTwo+"\n"+overNow)
	w.pass(72*time.Hour, true, true)
	equal(t, "told after that", w.notices(), dayTwo+"\n"+overNow)
}

// One way that works does not hide the other.
func TestASilenceOfOneWayIsToldOf(t *testing.T) {
	for _, fetches := range []bool{true, false} {
		w := newQuietWorld(t)
		w.pass(time.Hour, true, true)
		w.pass(25*time.Hour, fetches, !fetches)
		want := "cloud has not read what home wrote since 2026-05-01 21:00 CST."
		if !fetches {
			want = "home has not read what cloud wrote since 2026-05-01 21:00 CST."
		}
		equal(t, "told", w.notices(), "cloud not synced for 24 h: "+want+" It is cut.")
	}
}

// What was last in touch, and what was told, is known for good.
func TestASilenceOutlastsARestart(t *testing.T) {
	w := newQuietWorld(t)
	w.pass(time.Hour, true, true)
	w.pass(20*time.Hour, false, false)
	w.start()
	w.pass(3*time.Hour, false, false)
	s := w.state()
	if s.Silent != 0 || s.FetchedAt < w.clock.Add(-24*time.Hour-contactKept).UnixMilli() || s.OfferedAt == 0 {
		t.Errorf("after a restart: %+v", s)
	}
	w.pass(time.Hour+10*time.Minute, false, false)
	equal(t, "told", strings.Count(w.notices(), "\n")+1, 1)
	if !strings.HasPrefix(w.notices(), "cloud not synced for 24 h") || w.state().Silent == 0 {
		t.Errorf("after a day: %+v, told %q", w.state(), w.notices())
	}
	w.start()
	w.pass(20*time.Hour, false, false)
	equal(t, "told after another restart", strings.Count(w.notices(), "\n"), 0)
	w.start() // the link works again while it starts
	w.pass(time.Minute, true, true)
	equal(t, "told when it is over", strings.HasSuffix(w.notices(), overNow), true)
	w.start()
	w.pass(time.Hour, true, true)
	equal(t, "told in all", strings.Count(w.notices(), "\n"), 1)
}

// A node that was off or asleep for days has yet to try: it tells nobody of a silence
// that was its own.
func TestANodeThatWasAsleepTellsOfNoSilence(t *testing.T) {
	w := newQuietWorld(t)
	w.pass(time.Hour, true, true)
	for range 3 {
		w.clock = w.clock.Add(96 * time.Hour)
		w.pass(9*time.Minute, false, false)
		w.pass(time.Minute, true, true)
		w.clock = w.clock.Add(96 * time.Hour)
		w.start()
		w.pass(9*time.Minute, false, false)
		w.pass(time.Minute, true, true)
	}
	equal(t, "told", w.notices(), "")
}

// A success that was noted by a clock that ran ahead hides no silence.
func TestAClockThatWasWrongHidesNoSilence(t *testing.T) {
	w := newQuietWorld(t)
	w.clock = w.clock.Add(365 * 24 * time.Hour)
	w.pass(time.Hour, true, true)
	w.clock = w.clock.Add(-365 * 24 * time.Hour)
	w.pass(24*time.Hour+12*time.Minute, false, false)
	equal(t, "told", strings.HasPrefix(w.notices(), "cloud not synced for 24 h"), true)
	w.clock = w.clock.Add(-365 * 24 * time.Hour)
	w.pass(time.Minute, true, true)
	equal(t, "told when it is over", strings.Count(w.notices(), overNow), 1)
	w.start()
	w.pass(24*time.Hour+12*time.Minute, false, false)
	equal(t, "told of another one", strings.Count(w.notices(), "cloud not synced for 24 h"), 2)
}

// A silence before anybody has an account is told of as soon as somebody has one.
func TestASilenceBeforeAnybodyIsThereToTell(t *testing.T) {
	w := newQuietWorld(t)
	w.admin = ""
	w.pass(30*time.Hour, false, false)
	equal(t, "told", w.notices(), "")
	w.admin = "ada"
	w.pass(time.Minute, false, false)
	equal(t, "told", strings.HasPrefix(w.notices(), "cloud not synced for 30 h"), true)
}
