package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
)

// syncView is as much of a node's word on replication as the tests look at.
type syncView struct {
	State, Code, Detail string
	Peer                struct{ Version string }
	Fetch, Send         struct{ Pending *int64 }
	Quarantine          struct {
		Counts map[string]int
		Items  []struct{ Kind, Reason string }
	}
}

// sync is what the node says of replication.
func (p *process) sync() (v syncView, err error) {
	err = p.call(p.t.Context(), http.MethodGet, "/v1/sync/status", nil, &v)
	return v, err
}

// idle returns nil where the node says that it has heard of its peer and that there is
// nothing left to move.
func (p *process) idle() error {
	v, err := p.sync()
	nothing := func(n *int64) bool { return n != nil && *n == 0 }
	if err == nil && (v.State != "ok" || v.Peer.Version == "" || !nothing(v.Fetch.Pending) || !nothing(v.Send.Pending)) {
		err = fmt.Errorf("%s is %s %s: %s; version %q, pending %v", p.dir, v.State, v.Code, v.Detail, v.Peer.Version,
			[]bool{nothing(v.Fetch.Pending), nothing(v.Send.Pending)})
	}
	return err
}

// behind makes a pair whose nodes talk through a gateway.
func behind(t *testing.T) (*pair, *gateway) {
	t.Helper()
	w := newPair(t)
	g := newGateway(t, w.link.to)
	w.link.to = strings.TrimPrefix(g.url, "http://")
	return w, g
}

// inTime is eventually with a limit of its own.
func inTime(t testing.TB, limit time.Duration, holds func() error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	if err := until(ctx, holds); err != nil {
		t.Fatal(err)
	}
}

// S:6: what came whole is not asked for again, what did not is, and who waits moves
// nothing.
func TestALineThatLosesTheEndOfEachAnswerIsOutlived(t *testing.T) {
	t.Parallel()
	w, g := behind(t)
	g.clipping("/peer/v1/changes")
	w.cloud.start()
	w.home.start()
	for i := range 20 {
		must(t, w.cloud.add(fmt.Sprint("cloud ", i), strings.Repeat("c", 1000)))
		must(t, w.home.add(fmt.Sprint("home ", i), strings.Repeat("h", 1000)))
	}
	rounds := func() (n int) {
		for _, c := range g.recorded() {
			if strings.HasSuffix(c.URL.Path, "/changes") && c.Method == http.MethodGet {
				n++
			}
		}
		return n
	}
	eventually(t, func() error {
		if n := rounds(); n < 3 {
			return fmt.Errorf("%d rounds", n)
		}
		return nil
	})
	equal(t, "what of the cloud is at home", len(todosAt(t, w.home, "cloud %")), 0)
	g.clipping("")
	inTime(t, time.Minute, w.alike)
	inTime(t, time.Minute, w.settle)
	w.home.terminates()
	w.cloud.terminates()
	before, seen := w.marks(), len(g.recorded())
	w.cloud.start()
	for range 5 {
		w.home.start()
		eventually(t, w.home.idle)
		w.home.terminates()
	}
	w.cloud.terminates()
	equal(t, "what moved in five idle rounds", w.marks(), before)
	for _, c := range g.recorded()[seen:] {
		var page struct {
			Rows  []json.RawMessage
			Reset string
		}
		_ = json.Unmarshal(c.said, &page)
		if len(page.Rows) > 0 || page.Reset != "" || c.carries() {
			t.Errorf("an idle round moved something: %s %s %s", c.Method, c.URL.Path, page.Reset)
		}
	}
}

// add adds a todo with notes.
func (p *process) add(content, notes string) error {
	body := map[string]string{"content": content, "notes": notes}
	return p.call(p.t.Context(), http.MethodPost, "/v1/todos", body, nil)
}

// todosAt lists the contents at a node that are like a pattern, from its file.
func todosAt(t testing.TB, p *process, pattern string) []string {
	t.Helper()
	rows, err := look(t.Context(), p.dir, sqlite.Todos, `SELECT content FROM todos WHERE content LIKE '`+pattern+`' ORDER BY content`)
	must(t, err)
	return rows
}

// settle returns nil once neither node has anything for the other: as each says, and
// as each has read the other's log to its end.
func (w *pair) settle() error {
	for _, p := range []*process{w.home, w.cloud} {
		if err := p.idle(); err != nil {
			return err
		}
	}
	for _, ends := range [][2]*process{{w.home, w.cloud}, {w.cloud, w.home}} {
		read, err := look(w.t.Context(), ends[0].dir, sqlite.Todos, `SELECT cursor FROM sync_cursors`)
		if err != nil {
			return err
		}
		end, err := look(w.t.Context(), ends[1].dir, sqlite.Todos, logEnd)
		if err != nil {
			return err
		}
		if len(read) == 0 && end[0] == "0" {
			continue // there was never anything to read
		}
		if len(read) != 1 || !strings.Contains(read[0], "."+end[0]+".") {
			return fmt.Errorf("%s has read to %v of %s", ends[0].dir, read, end[0])
		}
	}
	return nil
}

const logEnd = `SELECT coalesce(max(seq), 0) || '' FROM (
	SELECT max(seq) AS seq FROM todos UNION SELECT max(seq) FROM scheduled_messages UNION SELECT max(seq) FROM settings UNION SELECT max(seq) FROM facts)`

// marks is all that changes at a node when an entry moves: the places in the logs, the
// pages that were served and how far the other was read.
func (w *pair) marks() string {
	w.t.Helper()
	var all []string
	for _, p := range []*process{w.home, w.cloud} {
		for _, query := range []string{
			`SELECT 'page ' || max(n) FROM sync_tokens`, `SELECT peer || ' ' || cursor FROM sync_cursors`, logEnd,
		} {
			rows, err := look(w.t.Context(), p.dir, sqlite.Todos, query)
			must(w.t, err)
			all = append(all, rows...)
		}
	}
	return strings.Join(all, ", ")
}

// S:44: what did not arrive is sent again without another write that asks for it.
func TestAFailedPushIsMadeAgainAlone(t *testing.T) {
	t.Parallel()
	w, g := behind(t)
	w.cloud.start()
	w.home.start()
	eventually(t, w.home.idle)
	for name, answers := range map[string]http.Handler{
		"503":             says(http.StatusServiceUnavailable, "text/html", "<h1>Service Unavailable"),
		"503 of a node":   says(http.StatusServiceUnavailable, "application/problem+json", `{"code":"busy"}`),
		"a login page":    says(http.StatusOK, "text/html; charset=utf-8", "<p>Welcome to our hotel"),
		"too many":        says(http.StatusTooManyRequests, "text/html", "<h1>Too Many Requests"),
		"half an answer":  says(http.StatusOK, "application/json", `{"cursor":"`),
		"a redirect away": http.RedirectHandler("http://elsewhere.test/", http.StatusTemporaryRedirect),
	} {
		refused := make(chan bool, 1)
		g.answering(func(w http.ResponseWriter, c *call) bool {
			if !c.carries() {
				return false
			}
			select {
			case refused <- true: // the first alone
				answers.ServeHTTP(w, c.Request)
				return true
			default:
				return false
			}
		})
		must(t, w.home.add(name, ""))
		eventually(t, func() error { return w.cloud.has(t.Context(), name) })
		equal(t, name+": pushes that were refused", len(refused), 1)
	}
	eventually(t, w.settle)
}

// A proxy that takes no large call is told of; what it lets pass, passes.
func TestWhatAProxyFindsTooLargeIsSentInParts(t *testing.T) {
	t.Parallel()
	const limit = 4 << 10
	w, g := behind(t)
	w.cloud.start()
	w.home.start()
	eventually(t, w.home.idle)
	g.answering(func(w http.ResponseWriter, c *call) bool {
		if len(c.body) <= limit {
			return false
		}
		says(http.StatusRequestEntityTooLarge, "text/html", "<h1>Request Entity Too Large").ServeHTTP(w, c.Request)
		return true
	})
	w.link.cut()
	for i := range 20 {
		must(t, w.home.add(fmt.Sprintf("small %02d", i), strings.Repeat("s", 500)))
		if i == 10 {
			must(t, w.home.add("too large", strings.Repeat("l", 2*limit)))
		}
	}
	w.link.mend()
	inTime(t, time.Minute, func() error {
		if n := len(todosAt(t, w.cloud, "small %")); n < 20 {
			return fmt.Errorf("%d of 20 have come", n)
		}
		return nil
	})
	eventually(t, func() error {
		v, err := w.home.sync()
		if err == nil && (v.Quarantine.Counts["unencodable"] != 1 || len(v.Quarantine.Items) != 1 || !strings.Contains(v.Quarantine.Items[0].Reason, "size")) {
			err = fmt.Errorf("home says %+v", v.Quarantine)
		}
		return err
	})
	equal(t, "what is too large", len(todosAt(t, w.cloud, "too large")), 0)
}

// chaotic makes a pair whose nodes talk over a line that fails as it is told to.
func chaotic(t *testing.T) (*pair, *faultLine) {
	t.Helper()
	w := newPair(t)
	l := newFaultLine(t, w.link.to)
	w.home.env = append(w.home.env, "TANDEM_PEER_URL="+l.url())
	return w, l
}

// S:45: packets are dropped and nobody is told. What had been sent passes once they
// are not.
func TestAStallEndsByItself(t *testing.T) {
	t.Parallel()
	w, l := chaotic(t)
	w.stalls(l, 3*time.Second, patience, l.resume)
}

// S:45 in full: for so long that the connections do not survive it.
func TestALongStallEndsByItself(t *testing.T) {
	t.Parallel()
	w, l := chaotic(t)
	w.stalls(l, 30*time.Second, 75*time.Second, l.forget)
}

// stalls has the line stall for a time, and checks that all crosses again by itself
// within limit of when that began.
func (w *pair) stalls(l *faultLine, lasts, limit time.Duration, ends func()) {
	w.t.Helper()
	w.cloud.start()
	w.home.start()
	eventually(w.t, w.settle)
	l.stall()
	at := time.Now()
	over := time.AfterFunc(lasts, ends)
	defer over.Stop()
	must(w.t, w.home.add("from home", ""))
	must(w.t, w.cloud.add("from the cloud", ""))
	inTime(w.t, limit, func() error {
		if err := w.cloud.has(w.t.Context(), "from home"); err != nil {
			return err
		}
		return w.home.has(w.t.Context(), "from the cloud")
	})
	crossed := time.Since(at)
	w.t.Logf("it crossed %v after the stall had begun, which lasted %v", crossed, lasts)
	if crossed < lasts {
		w.t.Error("it crossed through the stall")
	}
	inTime(w.t, limit, w.alike)
}

// S:64: a push that somebody recorded does nothing when it is made again, and is no
// good under another name or at another door.
func TestAReplayedPushDoesNothing(t *testing.T) {
	t.Parallel()
	w, g := behind(t)
	w.cloud.start()
	w.home.start()
	eventually(t, w.home.idle)
	must(t, w.home.add("as it was", ""))
	eventually(t, func() error { return w.cloud.has(t.Context(), "as it was") })
	list, err := w.cloud.todos(t.Context())
	must(t, err)
	edit := func(p *process, content string) {
		must(t, p.call(t.Context(), http.MethodPatch, "/v1/todos/"+list[0].Ref, map[string]string{"content": content}, nil))
	}
	edit(w.cloud, "as it is")
	eventually(t, func() error { return w.home.has(t.Context(), "as it is") })
	edit(w.home, "as it will be")
	eventually(t, func() error { return w.cloud.has(t.Context(), "as it will be") })
	eventually(t, w.settle)
	w.home.terminates()
	before := w.marks() + fmt.Sprint(todosOf(w.cloud))
	pushes := 0
	for _, c := range g.recorded() {
		if !c.carries() {
			continue
		}
		pushes++
		equal(t, "replayed", g.again(t, c, nil), http.StatusOK)
		equal(t, "as another node", g.again(t, c, func(r *http.Request) { r.Header.Set("Tandem-Node", "shed") }), http.StatusUnauthorized)
		equal(t, "without the secret", g.again(t, c, func(r *http.Request) { r.Header.Del("Authorization") }), http.StatusUnauthorized)
		equal(t, "at the people's door", g.again(t, c, func(r *http.Request) { r.URL.Path = "/v1/todos" }), http.StatusUnauthorized)
	}
	if pushes < 2 {
		t.Fatalf("%d pushes were recorded", pushes)
	}
	equal(t, "what the replays did", w.marks()+fmt.Sprint(todosOf(w.cloud)), before)
}
