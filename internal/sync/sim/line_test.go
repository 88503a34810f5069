package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// line is what lies between local's client and the cloud's server. Each call is
// served within RoundTrip, in the driver's own goroutine.
type line struct {
	w       *world
	sent    []call // those that change something, or ask for a page, for one that arrives late
	lost    []call // of these, those that have not arrived yet
	crossed bool   // a call is overtaken by one the other way
	came    page   // what local was answered, and has not applied yet
	useful  int    // entries of those that count as useful, unless local dies before it has applied them

	passes  [2]bool         // a full pass of this node's log is under way
	counted map[string]bool // resets, by the cursor that followed
}

// call is a request as it was made, and what its entries were for the one who sent it.
type call struct {
	method, target string
	header         http.Header
	body           []byte
	page           page
}

// page is a stretch of a log as it crosses.
type page struct {
	entries []carried
	reset   bool // it begins at the start, since the reader's cursor was void
	first   bool // it begins at the start, since the reader has no cursor
	to      string
}

// carried is one entry, and what its sender held when it sent it.
type carried struct {
	row      *history
	ref      sync.Ref
	held     holding
	fact     sync.UID
	at       int64  // of the fact
	conflict *loser // what the fact tells, if it is one
}

var (
	errLost = errors.New("connection reset by peer")
	errMute = errors.New("no answer came")
)

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	w := l.w
	l.flush()
	if w.calls++; w.calls > 1000 {
		w.fail("local makes calls without end: %s", r.URL.Path)
	}
	r.Header.Del("Accept-Encoding") // nothing is packed: the simulator reads along
	c := call{method: r.Method, target: w.short(r.URL.RequestURI(), "limit=%d"), header: r.Header.Clone()}
	if r.Body != nil {
		var err error
		if c.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	name := strings.TrimPrefix(r.URL.Path, "/peer/v1/")
	c.page = l.read(w.nodes[0], c.body, "")
	late := name == "changes" || c.method == http.MethodPost && name != "hello"
	if late {
		l.sent = append(l.sent, c)
	}
	w.tell("      %s %s %s", r.Method, name, w.entries(c.page.entries))
	if len(c.page.entries) > 0 {
		l.cross(func() { _, _ = w.fetchPage() })
	}
	switch {
	case w.fault(w.odds.lose):
		w.met["call lost"]++
		if late {
			l.lost = append(l.lost, c)
		}
		w.add(", lost")
		return nil, errLost
	case w.fault(w.odds.refuse):
		return l.refused(r), nil
	case w.fault(w.odds.cut) && len(c.body) > 2:
		half := c
		half.body = c.body[:w.rand.IntN(len(c.body))]
		half.page = page{}
		w.met["call cut"]++
		w.add(", cut on the way")
		l.serve(half)
		return nil, errLost
	}
	faulted := false
	if w.fault(w.odds.twice) {
		faulted = true
		w.met["call twice"]++
		w.add(", twice")
		l.serve(c)
	}
	res := l.serve(c)
	if res == nil || w.fault(w.odds.mute) {
		w.met["answer lost"]++
		w.add(", the answer is lost")
		return nil, errMute
	}
	return l.answer(r, c, res, faulted)
}

// answer hands local what the cloud said, whole or cut off.
func (l *line) answer(r *http.Request, c call, res *http.Response, faulted bool) (*http.Response, error) {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	res.Body, res.Request = io.NopCloser(bytes.NewReader(body)), r
	res.Header.Del("Accept-Encoding")
	if strings.HasSuffix(r.URL.Path, "/hello") {
		body = []byte(l.w.short(string(body), `"page_limit":%d`))
		res.Body = io.NopCloser(bytes.NewReader(body))
	}
	if l.w.fault(l.w.odds.cut) && len(body) > 0 {
		l.w.met["answer cut"]++
		l.w.add(", the answer is cut")
		body = body[:l.w.rand.IntN(len(body))]
		res.Body = io.NopCloser(bytes.NewReader(body))
		if l.w.chance(0.5) { // the connection broke; otherwise a proxy ended it in good order
			res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{}))
		}
		return res, nil
	}
	if res.StatusCode >= 300 {
		l.w.add(" → %d", res.StatusCode)
	}
	down := l.read(l.w.nodes[1], body, r.URL.Query().Get("cursor"))
	l.lookAhead(c, down)
	if len(down.entries) > 0 {
		l.cross(func() { _, _ = l.w.offerPage() })
	}
	if c.method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/digest") {
		l.takes(down, strings.HasSuffix(r.URL.Path, "/rows"))
		l.w.add(" → %s", l.w.entries(down.entries))
		if down.reset {
			l.w.add(" from the start")
		}
	}
	if !faulted {
		l.tally(0, c.page)
		l.tally(1, down)
	}
	return res, nil
}

// begins forgets what local was answered before.
func (l *line) begins() {
	l.came, l.useful, l.w.nodes[0].applied = page{}, 0, false
}

// takes keeps what local is about to apply: a page, or of a bucket what it does not
// hold itself.
func (l *line) takes(p page, bucket bool) {
	if !bucket {
		l.came = p
		return
	}
	local := l.w.nodes[0]
	aside, there := local.quarantine(), l.w.nodes[1].quarantine()
	for _, c := range p.entries {
		if c.row != nil {
			held, ok := local.ought.rows[c.row.uid]
			_, here := aside[c.row.uid]
			_, explained := there[c.row.uid]
			if ok && held.version == c.held.version || here || explained {
				continue
			}
		}
		l.came.entries = append(l.came.entries, c)
	}
}

// flush tells the model of what local has applied since it was asked last.
func (l *line) flush() {
	if local := l.w.nodes[0]; local.applied {
		local.applied = false
		local.meets(l.came)
		l.came, l.useful = page{}, 0
	}
}

// cross has a call the other way overtake one that is under way, as it does between
// loops that run at once.
func (l *line) cross(call func()) {
	if l.crossed || !l.w.fault(l.w.odds.cross) {
		return
	}
	l.crossed = true
	defer func() { l.crossed = false }()
	l.w.met["calls cross"]++
	l.w.add(", and meanwhile")
	call()
}

// lookAhead does what the loops of a client do, but not its steps: while a page is
// stored or sent the next one is made already, and nobody may ever come for it.
func (l *line) lookAhead(c call, down page) {
	w, cursor := l.w, cmp.Or(c.page.to, down.to)
	if cursor == "" || !strings.Contains(c.target, "/changes") || !w.fault(w.odds.ahead) {
		return
	}
	w.met["look ahead"]++
	w.add(", looked ahead")
	n := w.nodes[1]
	if c.page.to != "" {
		n = w.nodes[0]
	}
	_, err := n.log.Page(ctx, cursor, max(1, w.odds.page))
	w.must(err)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errLost }

// tally counts the entries that a call carried from a node, those of full passes
// apart: a pass begins with a page from the start and ends with one that is empty.
func (l *line) tally(from int, p page) {
	if l.passes[from] = (l.passes[from] || p.reset || p.first) && len(p.entries) > 0; !l.passes[from] {
		l.w.count.useful += len(p.entries)
		if from == 1 {
			l.useful += len(p.entries)
		}
	}
}

// dropped takes back what counted as useful and died with local.
func (l *line) dropped() {
	l.w.count.useful -= l.useful
	l.useful = 0
}

// serve has the cloud answer a call; nil when it died over it.
func (l *line) serve(c call) (res *http.Response) {
	w, cloud := l.w, l.w.nodes[1]
	rec := httptest.NewRecorder()
	if c.header.Get("Authorization") != "Bearer "+canary || c.header.Get(link.NodeHeader) != "local" {
		rec.WriteHeader(http.StatusUnauthorized)
		return rec.Result()
	}
	r := httptest.NewRequest(c.method, "http://cloud"+c.target, bytes.NewReader(c.body))
	r.Header = c.header
	cloud.applied = false
	died := func() (died bool) {
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(crash); !ok {
					panic(p)
				}
				died = true
			}
		}()
		cloud.server.ServeHTTP(rec, r)
		return false
	}()
	if cloud.applied {
		cloud.meets(c.page)
	}
	if died || cloud.died != "" {
		w.revive(cloud)
		return nil
	}
	return rec.Result()
}

// refused is what something between the nodes answers instead of the cloud.
func (l *line) refused(r *http.Request) *http.Response {
	status := oneOf(l.w, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway)
	l.w.met[fmt.Sprint("answered ", status)]++
	l.w.add(", answered %d on the way", status)
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", "text/html")
	rec.Header().Set("Retry-After", "1")
	rec.WriteHeader(status)
	_, _ = rec.WriteString("<h1>no</h1>")
	res := rec.Result()
	res.Request = r
	return res
}

// read finds the entries in what a node sends.
func (l *line) read(from *node, body []byte, cursor string) page {
	var p struct {
		Rows                    []json.RawMessage
		From, Reset, To, Cursor string
	}
	if json.Unmarshal(body, &p) != nil {
		return page{}
	}
	out := page{reset: p.Reset != "", to: cmp.Or(p.To, p.Cursor)}
	if from.origin == 0 {
		cursor = p.From
		out.reset = cursor != "" && !from.issued(cursor)
	}
	out.first = cursor == ""
	for _, raw := range p.Rows {
		out.entries = append(out.entries, from.carries(raw))
	}
	l.w.count.moved += len(out.entries)
	return out
}

// short has a page be short, so that a log has many: it replaces the limit that either
// end names by the world's own.
func (w *world) short(text, limit string) string {
	if w.odds.page == 0 {
		return text
	}
	return strings.Replace(text, fmt.Sprintf(limit, sync.PageRows), fmt.Sprintf(limit, w.odds.page), 1)
}

// fault draws whether something goes wrong now.
func (w *world) fault(p float64) bool { return !w.healing && w.chance(p) }
