package contact

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/push"
	"tandem/internal/sqlite"
	"tandem/internal/sync/link"
)

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// quietWorld is what a contact lives in, without a node around it.
type quietWorld struct {
	*testing.T
	db    *sqlite.DB
	clock time.Time
	link  link.Status
	admin string
	*Contact
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
	w.Contact = New(Options{
		DB: w.db, Outbox: outbox, Node: "home", Peer: "cloud", Status: func() link.Status { return w.link },
		Admin: func(context.Context) (string, bool, error) { return w.admin, w.admin != "", nil },
		Zone:  func(*sqlite.Tx, string) (string, error) { return "Asia/Shanghai", nil },
	})
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
	s, silent := w.State()
	if silent != 0 || s.FetchedAt < w.clock.Add(-24*time.Hour-contactKept).UnixMilli() || s.OfferedAt == 0 {
		t.Errorf("after a restart: %+v", s)
	}
	w.pass(time.Hour+10*time.Minute, false, false)
	equal(t, "told", strings.Count(w.notices(), "\n")+1, 1)
	if s, silent = w.State(); !strings.HasPrefix(w.notices(), "cloud not synced for 24 h") || silent == 0 {
		t.Errorf("after a day: %+v, told %q", s, w.notices())
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

// A node that was parted and stops keeps when the two were last in touch.
func TestAPartedNodeThatStopsForgetsNoSuccess(t *testing.T) {
	w := newQuietWorld(t)
	w.pass(time.Hour, true, true)
	before := w.last()
	w.link = link.Status{State: link.Alone, Code: link.CodeParted}
	must(t, w.Close(t.Context()))
	equal(t, "known", w.last(), before)
}
