package link

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	gosync "sync"
	"sync/atomic"
	"time"

	"tandem/internal/fault"
	"tandem/internal/loop"
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
)

// Server answers the peer's calls. It trusts whoever reaches it: to tell the peer
// from a stranger is for the handler before it.
type Server struct {
	end
	sets    []Set
	stop    context.Context
	crash   func(point string)
	mux     *http.ServeMux
	codec   codec
	started int64       // Unix ms
	compare atomic.Bool // the peer is asked to compare, when it greets next
	gate    gate
	refused refused
}

// refused is the last call in the peer's place that was not let in.
type refused struct {
	mu   gosync.Mutex
	at   int64
	name string
}

// gate is what keeps calls of the peer waiting, or out.
type gate struct {
	mu       gosync.Mutex
	barred   error         // why the peer's last greeting did not count
	deferred time.Time     // polls wait until then
	resumed  chan struct{} // closed when they need not any more; nil: nobody waits
}

// ServerOptions are what a Server needs.
type ServerOptions struct {
	Log     *sync.Log
	Name    string       // the peer's
	Sets    []Set        // what this node holds whole
	Letters *letters.Box // nil: none cross
	Calls   []Call       // what else the peer may bring
	Hello   func() Hello
	Stop    context.Context    // ends the polls that are held open
	Crash   func(point string) // called at sync.served and sync.applied
	Logger  *slog.Logger
}

// call answers one request; an error becomes a problem.
type call func(http.ResponseWriter, *http.Request) error

// NewServer returns the handler of every path below /peer/v1/.
func NewServer(o ServerOptions) *Server {
	s := &Server{
		end:  end{log: o.Log, name: o.Name, letters: o.Letters, hello: o.Hello, logger: o.Logger},
		sets: o.Sets, stop: o.Stop, crash: o.Crash, mux: http.NewServeMux(), codec: newCodec(), started: o.Hello().Now,
	}
	calls := map[string]map[string]call{}
	add := func(method, path string, c call) {
		if calls[path] == nil {
			calls[path] = map[string]call{}
		}
		calls[path][method] = c
	}
	add(http.MethodPost, "hello", s.greeted)
	add(http.MethodGet, "changes", s.accepted(s.poll))
	add(http.MethodPost, "changes", s.accepted(s.take))
	add(http.MethodGet, "digest", s.accepted(s.digest))
	add(http.MethodGet, "rows", s.accepted(s.rows))
	add(http.MethodPost, "aside", s.accepted(s.aside))
	if o.Letters != nil {
		add(http.MethodGet, "letters", s.accepted(s.give))
		add(http.MethodPost, "letters", s.accepted(s.receive))
	}
	for _, set := range o.Sets {
		add(http.MethodGet, set.Path, s.accepted(s.whole(set)))
	}
	for _, c := range o.Calls {
		add(http.MethodPost, c.Path, s.own(c))
	}
	for path, methods := range calls {
		s.mux.Handle("/peer/v1/"+path, s.answer(methods))
	}
	s.mux.Handle("/", s.answer(nil))
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// greeted answers a greeting with this node's own, whoever greets: the caller sees
// for itself, and says so at its end too.
func (s *Server) greeted(w http.ResponseWriter, r *http.Request) error {
	b, err := s.body(w, r)
	if err != nil {
		return err
	}
	theirs, err := readHello(b)
	if err != nil {
		return sync.ErrBadPage.Because(err)
	}
	mine, err := s.introduce(r.Context())
	if err != nil {
		return err
	}
	mine.Compare = s.compare.Load()
	if err = theirs.Check(mine, s.name); err == nil {
		if other, found := s.twins.met(theirs.Process, time.Now()); found {
			mine.Twin, err = &other, twinOf(s.name, theirs.Process, other)
		}
	}
	s.bar(err)
	s.status.called(mine.Now)
	if s.status.note(lineHello, err) == nil {
		if err := s.meet(r.Context(), mine, theirs); err != nil {
			return err
		}
		s.status.met(theirs, mine.Now, apart(theirs.Now, mine.Now))
		if theirs.Pending != nil && *theirs.Pending == 0 {
			s.status.breaks()
		}
	}
	s.status.tell(r.Context(), s.logger, s.name)
	s.hasTold(mine) // an answer that is lost the next poll makes good
	return s.writeJSON(w, r, mine)
}

// silence is how long the peer may not call before it counts as away: three greetings.
const silence = time.Minute

var errSilent = fault.New(fault.Unavailable, CodeSilent, "The other node has not called for more than a minute.")

// Status returns how the last calls went. Where the peer has not been heard of when it
// should have, and somebody was not let in, that is why.
func (s *Server) Status() Status {
	s.listen()
	out := s.status.snapshot(s.name, s.log.QuarantineCounts())
	now := s.hello().Now
	s.refused.mu.Lock()
	defer s.refused.mu.Unlock()
	if r := &s.refused; r.at > out.HeardAt && now-r.at <= silence.Milliseconds() && now-out.HeardAt > helloEvery.Milliseconds()*3/2 {
		out.State, out.Code, out.Reason = Attention, CodeTurnedAway, ""
		out.Detail = fmt.Sprintf("%s calls and is not let in: it does not have the secret of this node.", s.name)
		if r.name != s.name {
			out.Detail = fmt.Sprintf("A node that calls itself %s calls and is not let in: peer.name here is %s.", r.name, s.name)
		}
	}
	return out
}

// aName is what a node may be called.
var aName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// TurnedAway is told of each call that was not let in: whose it was as it says, and
// whether it came with the right secret. Neither a name that is none nor a stranger's is
// worth a word.
func (s *Server) TurnedAway(name string, secret bool) {
	if !aName.MatchString(name) || name != s.name && !secret {
		return
	}
	now := s.hello().Now
	s.refused.mu.Lock()
	defer s.refused.mu.Unlock()
	s.refused.at, s.refused.name = now, name
}

// CompareSoon has the nodes compared as soon as they are at rest: the peer, which does
// it, is asked to from its next greeting on until it begins.
func (s *Server) CompareSoon() { s.compare.Store(true) }

// Loop is what runs while the node does: it notices that nobody calls.
func (s *Server) Loop() *loop.Loop {
	return loop.New("silence", helloEvery, s.logger, func(ctx context.Context) error {
		s.listen()
		s.status.tell(ctx, s.logger, s.name)
		return nil
	})
}

// listen notes that the peer has fallen silent, if it has.
func (s *Server) listen() {
	if s.hello().Now-max(s.started, s.status.heardAt()) > silence.Milliseconds() {
		_ = s.status.note(lineHello, errSilent)
	}
}

// accepted has c answer unless the peer's last greeting did not count: it may be a copy
// of this node, or speak another protocol.
func (s *Server) accepted(c call) call {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.barred(); err != nil {
			return err
		}
		return c(w, r)
	}
}

func (s *Server) bar(why error) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.barred = why
}

func (s *Server) barred() error {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.barred
}

// take applies what the peer offers of its log.
func (s *Server) take(w http.ResponseWriter, r *http.Request) error {
	b, err := s.body(w, r)
	if err != nil {
		return err
	}
	var offer Offer
	entries, err := splitRows(b, &offer)
	if err != nil {
		return sync.ErrBadPage.Because(err)
	}
	if len(entries) > sync.PageRows {
		return errTooManyEntries
	}
	if offer.More {
		s.deferPolls(true)
	}
	cursor, err := s.log.Apply(r.Context(), s.name, offer.From, offer.To, entries)
	if s.noted(r, lineFetch, err) != nil {
		return err
	}
	s.deferPolls(offer.More) // from now on, since to apply it took time; or no more
	if offer.More {
		s.status.begins(1) // where it ends, the last one says
	}
	s.status.brought(s.hello().Now, 0, offer.More)
	s.announceAside()
	if len(entries) > 0 {
		s.crash("sync.applied")
	}
	return s.writeJSON(w, r, Ack{Cursor: cursor}) // an empty offer only asks for it
}

// announceAside has a poll that waits tell the peer what is in quarantine here by now,
// once.
func (s *Server) announceAside() {
	aside, news := s.untold()
	s.mu.Lock()
	news, s.announced = news && s.announced != aside, aside
	s.mu.Unlock()
	if news {
		s.log.Announce()
	}
}

// noted keeps for the status how an answer went, and returns err: what fails here is
// this node's own trouble, which its people should not have to learn from the other.
func (s *Server) noted(r *http.Request, l line, err error) error {
	if r.Context().Err() != nil { // the peer has gone, and means nothing by it
		return err
	}
	return s.status.note(l, err)
}

func (s *Server) whole(set Set) call {
	return func(w http.ResponseWriter, r *http.Request) error {
		generation, body, err := set.Export(r.Context())
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-store")
		return s.writeJSON(w, r, Whole{Generation: generation, Body: body})
	}
}

// answer has the call of the request's method answer, and what goes wrong become
// a problem.
func (s *Server) answer(methods map[string]call) http.Handler {
	allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := methods[r.Method]
		switch {
		case len(methods) == 0:
			c = func(http.ResponseWriter, *http.Request) error { return errNoRoute }
		case !ok:
			w.Header().Set("Allow", allow)
			c = func(http.ResponseWriter, *http.Request) error { return errNoMethod }
		}
		if err := c(w, r); err != nil {
			s.refuse(w, r, err)
		}
	})
}

// writeJSON answers 200 with v.
func (s *Server) writeJSON(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		s.write(w, r, b)
	}
	return err
}
