package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/standin"
	"tandem/internal/when"
)

// todoCrashes are the points on the way of a todo to the other node.
var todoCrashes = []struct {
	point, dies string // where, and at which node
	from        string // the node at which the todo is posted
}{
	{"api.committed", "home", "home"},
	{"api.committed", "cloud", "cloud"},
	{"sync.served", "cloud", "cloud"},
	{"sync.fetched", "home", "cloud"},
	{"sync.stored", "home", "cloud"},
	{"sync.offering", "home", "home"},
	{"sync.applying", "home", "cloud"},
	{"sync.applying", "cloud", "home"},
	{"sync.applied", "cloud", "home"},
	{"sync.offered", "home", "home"},
}

func (w *pair) node(name string) *process {
	if name == "home" {
		return w.home
	}
	return w.cloud
}

func TestATodoArrivesOnceWhereverANodeIsKilled(t *testing.T) {
	t.Parallel()
	for _, c := range todoCrashes {
		t.Run(c.point+" at "+c.dies, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			w.link.cut() // so that the node does not die before there is a todo
			for _, n := range []*process{w.home, w.cloud} {
				if n == w.node(c.dies) {
					n.start("CRASH_AT=" + c.point)
				} else {
					n.start()
				}
			}
			from, todo := w.node(c.from), map[string]string{"content": "buy milk"}
			_, err := from.post("/v1/todos", "one", todo)
			equal(t, "answered", err == nil, c.point != "api.committed")
			w.link.mend()
			w.node(c.dies).dies()
			w.node(c.dies).start()
			replayed, err := from.post("/v1/todos", "one", todo) // the phone asks again
			must(t, err)
			equal(t, "the first answer", replayed, true)
			eventually(t, w.alike)
			w.home.terminates()
			w.cloud.terminates()
			equal(t, "rows", fmt.Sprint(todosOf(w.home)), fmt.Sprint(todosOf(w.cloud)))
			equal(t, "how many", len(todosOf(w.home)), 1)
		})
	}
}

// alike returns nil where both nodes list the same todos, and some.
func (w *pair) alike() error {
	home, err := w.home.todos(w.t.Context())
	if err != nil {
		return err
	}
	cloud, err := w.cloud.todos(w.t.Context())
	if err != nil {
		return err
	}
	if len(home) == 0 || !slices.Equal(home, cloud) {
		return fmt.Errorf("home has %v, the cloud %v", home, cloud)
	}
	return nil
}

// todosOf are all rows of a node that has stopped, tombstones too.
func todosOf(p *process) []string {
	p.t.Helper()
	rows, err := look(p.t.Context(), p.dir, sqlite.Todos,
		`SELECT json_array(hex(uid), origin, id, owner, content, updated_at, updated_by, deleted_at) FROM todos ORDER BY uid`)
	must(p.t, err)
	return rows
}

const (
	plain = "plain"
	again = "again" // with the note "sent again after a restart"
)

// ringCrashes are the points on the way of a reminder to a person.
var ringCrashes = []struct {
	point   string
	refuses bool   // FCM, so that Telegram has to deliver
	before  string // what the services had when the node died: posts to FCM, messages of Telegram
	want    string // what rang in the end, through the service that delivers
}{
	{"scheduler.due", false, "0 0", plain},
	{"push.sending", false, "0 0", again},
	{"push.taken", false, "1 0", plain + " " + again}, // R:B3: the one window in which it rings twice
	{"push.recorded", false, "1 0", plain},

	{"scheduler.due", true, "0 0", plain},
	{"push.sending", true, "0 0", plain}, // what may have been sent went to FCM
	{"push.taken", true, "1 1", plain + " " + again},
	{"push.recorded", true, "1 0", plain},
	{"push.fallback", true, "1 0", plain},
}

func TestAReminderRingsOnceWhereverTheNodeIsKilled(t *testing.T) { // R:B1, R:B3, E09
	t.Parallel()
	for _, c := range ringCrashes {
		t.Run(fmt.Sprintf("%s, FCM refuses %t", c.point, c.refuses), func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			if c.refuses {
				w.fcm.FailAlways("", standin.InternalError)
			}
			w.remind("CRASH_AT=" + c.point)
			w.home.dies()
			equal(t, "before the restart", fmt.Sprint(w.fcm.Posts(""), len(w.telegram.Messages())), c.before)
			w.home.start()
			w.settled()
			rang := w.rang()
			equal(t, "what rang", strings.Join(rang[c.refuses], " "), c.want)
			equal(t, "what the other service took", len(rang[!c.refuses]), 0)
		})
	}
}

// The loop that sends runs beside the one that has just fired, so that it may come
// some way before the kill does.
func TestAReminderThatFiredAsTheNodeWasKilledRings(t *testing.T) { // R:B3
	t.Parallel()
	for _, refuses := range []bool{false, true} {
		t.Run(fmt.Sprintf("FCM refuses %t", refuses), func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			if refuses {
				w.fcm.FailAlways("", standin.InternalError)
			}
			w.remind("CRASH_AT=scheduler.fired")
			w.home.dies()
			w.home.start()
			w.settled()
			rang := w.rang()
			if got := strings.Join(rang[refuses], " "); got != plain && got != again && got != plain+" "+again {
				t.Errorf("it rang %q", got)
			}
			equal(t, "what the other service took", len(rang[!refuses]), 0)
		})
	}
}

const medicine = "take the medicine"

// remind starts both nodes and sets a reminder at home that is about to ring.
func (w *pair) remind(env ...string) {
	w.t.Helper()
	w.cloud.start()
	w.home.start(env...)
	body := map[string]string{"content": medicine, "trigger_at": when.Format(time.Now().Add(2 * time.Second))}
	must(w.t, w.home.call(w.t.Context(), http.MethodPost, "/v1/scheduled-messages", body, nil))
}

// settled waits until the reminder was delivered, restarts the node once more, and
// waits until the cloud tells the story too. There is then nothing left to send.
func (w *pair) settled() {
	w.t.Helper()
	var fire string
	eventually(w.t, func() error {
		intents, err := look(w.t.Context(), w.home.dir, sqlite.Todos, `SELECT state || ' ' || fire_id FROM delivery_intents`)
		if err != nil {
			return err
		}
		var accepted bool
		if len(intents) == 1 {
			fire, accepted = strings.CutPrefix(intents[0], "accepted ")
		}
		if !accepted {
			return fmt.Errorf("the outbox holds %v", intents)
		}
		return nil
	})
	w.home.terminates()
	w.home.start()
	eventually(w.t, func() error {
		var story struct{ Facts []struct{ Kind string } }
		if err := w.cloud.call(w.t.Context(), http.MethodGet, "/v1/fires/"+fire, nil, &story); err != nil {
			return err
		}
		kinds := map[string]int{}
		for _, f := range story.Facts {
			kinds[f.Kind]++
		}
		if kinds["fired"] != 1 || kinds["accepted"] != 1 {
			return fmt.Errorf("the cloud has %v", kinds)
		}
		return nil
	})
	for _, m := range w.fcm.Messages() {
		equal(w.t, "the fire that rang", m.Data["fire_id"], fire)
	}
	if shown := w.fcm.Screen(demoPhone); len(shown) > 1 {
		w.t.Errorf("the phone shows %d notices", len(shown))
	}
	w.home.terminates()
	w.cloud.terminates()
}

// rang is what reached a person, in order: through FCM (false) and Telegram (true).
func (w *pair) rang() map[bool][]string {
	mark := func(text string) string {
		if strings.Contains(text, "sent again after a restart") {
			return again
		}
		return plain
	}
	out := map[bool][]string{}
	for _, m := range w.fcm.Messages() {
		if m.Data["body"] == medicine {
			out[false] = append(out[false], mark(m.Data["notes"]))
		}
	}
	for _, m := range w.telegram.Messages() {
		if strings.Contains(m.Text, medicine) {
			out[true] = append(out[true], mark(m.Text))
		}
	}
	return out
}

// crashCalls finds where the code calls out before it goes on; one that names a file
// has the file's name after it.
var crashCalls = regexp.MustCompile(`[cC]rash\("([^"]+?) ?"`)

func TestEachCrashPointHasATest(t *testing.T) {
	var tests, code strings.Builder
	must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(path, "/sync/sim/") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.HasSuffix(path, "_test.go") {
			tests.Write(text)
		} else {
			code.Write(text)
		}
		return err
	}))
	listed, err := os.ReadFile("../../CONTRIBUTING.md")
	must(t, err)
	called := map[string]bool{}
	for _, m := range crashCalls.FindAllStringSubmatch(code.String(), -1) {
		called[m[1]] = true
		if !strings.Contains(string(listed), "| `"+m[1]+"` |") {
			t.Errorf("CONTRIBUTING.md does not list %s", m[1])
		}
		if !regexp.MustCompile(`"([\w=]+[ =])?` + regexp.QuoteMeta(m[1]) + `[" ]`).MatchString(tests.String()) {
			t.Errorf("no test dies at %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+\\.[a-z]+)` \\|").FindAllStringSubmatch(string(listed), -1) {
		if !called[m[1]] {
			t.Errorf("CONTRIBUTING.md lists %s, and nothing calls it", m[1])
		}
	}
}
