package link

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"tandem/internal/sync"
)

const (
	// MaxWait bounds how long a poll is held open; many proxies cut at 60 s.
	MaxWait = 50 * time.Second
	// echoHold is how long a poll waits after an offer that another follows: what it
	// would be answered with came from the reader.
	echoHold = 2 * time.Second
)

// Page is what answers a poll: a stretch of the log, and what else is news.
type Page struct {
	sync.Page
	Sets map[string]string // newer generations of what is copied whole, by name
}

// pageTail is a Page as it crosses, without its entries.
type pageTail struct {
	Cursor string            `json:"cursor"`
	Reset  string            `json:"reset,omitempty"`
	End    int64             `json:"end"`
	At     int64             `json:"at"`
	More   bool              `json:"more,omitempty"`
	Sets   map[string]string `json:"sets,omitempty"`
}

func (p Page) encode() ([]byte, error) {
	return joinRows(p.Entries, pageTail{p.Cursor, p.Reset, p.End, p.At, p.More, p.Sets})
}

func readPage(b []byte) (p Page, err error) {
	var tail pageTail
	entries, err := splitRows(b, &tail)
	p.Page = sync.Page{Entries: entries, Cursor: tail.Cursor, Reset: cut(tail.Reset, longReason), End: tail.End, At: tail.At, More: tail.More}
	p.Sets = tail.Sets
	return p, err
}

// question is what a poll wants to know.
type question struct {
	cursor string
	limit  int
	wait   time.Duration
	has    map[string]string // generations of the sets that the caller has
}

func (s *Server) readQuestion(r *http.Request) question {
	query := r.URL.Query()
	q := question{cursor: query.Get("cursor"), limit: sync.PageRows, has: map[string]string{}}
	if n, err := strconv.Atoi(query.Get("limit")); err == nil {
		q.limit = max(1, min(n, sync.PageRows))
	}
	if wait, err := time.ParseDuration(query.Get("wait")); err == nil {
		q.wait = max(0, min(wait, MaxWait))
	}
	names := []string{lettersSet, asideSet}
	for _, set := range s.sets {
		names = append(names, set.Name)
	}
	for _, name := range names {
		if v, ok := query[name]; ok {
			q.has[name] = v[0]
		}
	}
	return q
}

// poll answers with the page after a cursor. When that is empty it waits, until a
// change, a newer set, or for as long as it was asked to.
func (s *Server) poll(w http.ResponseWriter, r *http.Request) error {
	q := s.readQuestion(r)
	ctx, cancel := context.WithTimeout(r.Context(), q.wait)
	defer cancel()
	defer context.AfterFunc(s.stop, cancel)()
	for {
		changed := s.log.Changed() // before the look, so that no change falls between
		wait, over := s.waiting(q.wait)
		page, err := s.look(context.WithoutCancel(ctx), q, wait > 0)
		if s.noted(r, lineOffer, err) != nil {
			return err
		}
		if len(page.Entries) > 0 || len(page.Sets) > 0 || page.Reset != "" || ctx.Err() != nil {
			return s.serve(w, r, q, page)
		}
		s.status.took(q.cursor, s.hello().Now, wait == 0)
		pause(ctx, changed, wait, over)
	}
}

// pause returns at a change, after a wait where there is one, or with ctx.
func pause(ctx context.Context, changed <-chan struct{}, wait time.Duration, over <-chan struct{}) {
	if wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, wait)
		defer stop()
	}
	select {
	case <-changed:
	case <-over:
	case <-ctx.Done():
	}
}

// look returns what there is for a poll now; while polls are deferred, without
// entries of the log.
func (s *Server) look(ctx context.Context, q question, deferred bool) (page Page, err error) {
	page.Cursor = q.cursor
	if !deferred { // the log first: by the reader's cursor it may find that a life begins, which the sets tell of
		if page.Page, err = s.log.Page(ctx, q.cursor, q.limit); err != nil {
			return page, err
		}
	}
	if page.Sets, err = newer(ctx, s.sets, q.has); err != nil {
		return page, err
	}
	s.addAside(q, &page)
	return page, s.addLetters(ctx, q, &page)
}

// name has the page tell of a set.
func (p *Page) name(set, generation string) {
	if p.Sets == nil {
		p.Sets = map[string]string{}
	}
	p.Sets[set] = generation
}

// addLetters names the letters that wait, unless the caller has heard of them: one
// that it cannot take yet must not end each poll at once.
func (s *Server) addLetters(ctx context.Context, q question, page *Page) error {
	had, asked := q.has[lettersSet]
	if !asked || s.letters == nil {
		return nil
	}
	oldest, err := s.letters.Next(ctx)
	if err != nil || oldest == had || oldest == "" {
		return err
	}
	page.name(lettersSet, oldest)
	return nil
}

// asideSet is how a poll says what the caller knows of this node's quarantine.
const asideSet = "aside"

// addAside tells how much is in quarantine, where the caller was told something else: it
// greets then, and people at both nodes read the same.
func (s *Server) addAside(q question, page *Page) {
	had, asked := q.has[asideSet]
	if is := asideOf(s.log.QuarantineCounts()); asked && is != had {
		page.name(asideSet, is)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, q question, page Page) error {
	now := s.hello().Now
	s.status.took(q.cursor, now, len(page.Entries) == 0 && page.Reset == "")
	if page.Reset != "" {
		s.logger.InfoContext(r.Context(), "the peer reads this node's log from its start", "peer", s.name, "reason", page.Reset)
		s.status.wasReset(page.Reset, now)
	}
	if len(page.Entries) > 0 {
		s.crash("sync.served")
	}
	b, err := page.encode()
	if err != nil {
		return err
	}
	s.write(w, r, b)
	return nil
}

// deferPolls has polls wait after an offer that another follows, and ends their wait after
// the last.
func (s *Server) deferPolls(more bool) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if more {
		s.gate.deferred = time.Now().Add(echoHold)
		if s.gate.resumed == nil {
			s.gate.resumed = make(chan struct{})
		}
		return
	}
	s.gate.deferred = time.Time{}
	if s.gate.resumed != nil {
		close(s.gate.resumed)
		s.gate.resumed = nil
	}
}

// waiting returns how much longer a poll has to wait, and what ends that wait. One
// that does not want to wait does not.
func (s *Server) waiting(wait time.Duration) (time.Duration, <-chan struct{}) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if left := time.Until(s.gate.deferred); wait > 0 && left > 0 {
		return left, s.gate.resumed
	}
	return 0, nil
}
