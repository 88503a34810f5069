package link

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"tandem/internal/sync"
)

// Server answers the peer's calls. It trusts whoever reaches it: to tell the peer
// from a stranger is for the handler before it.
type Server struct {
	ServerOptions
	mux *http.ServeMux
}

// ServerOptions are what a Server needs.
type ServerOptions struct {
	Log    *sync.Log
	Name   string // the peer's
	Sets   []Set  // what this node holds whole
	Posts  []Post // what else the peer may send
	Asks   []Ask  // and what it may ask for besides
	Hello  func() Hello
	Heard  func(Hello)        // each greeting of the peer
	Stop   context.Context    // ends the polls that are held open
	Crash  func(point string) // called at sync.served and sync.applied
	Logger *slog.Logger
}

// Post is a call that brings something and is answered with 204.
type Post struct {
	Path string // below /peer/v1/
	take func(context.Context, []byte) error
}

// NewPost returns the call that has do take a T.
func NewPost[T any](path string, do func(context.Context, T) error) Post {
	return Post{path, func(ctx context.Context, b []byte) error {
		var v T
		if err := unmarshal(b, &v); err != nil {
			return err
		}
		return do(ctx, v)
	}}
}

// call answers one request; an error becomes a problem.
type call func(http.ResponseWriter, *http.Request) error

// NewServer returns the handler of every path below /peer/v1/.
func NewServer(o ServerOptions) *Server {
	s := &Server{o, http.NewServeMux()}
	calls := map[string]map[string]call{
		"hello":   {http.MethodPost: s.hello},
		"changes": {http.MethodGet: s.poll, http.MethodPost: s.take},
	}
	add := func(path, method string, c call) {
		if calls[path] == nil {
			calls[path] = map[string]call{}
		}
		calls[path][method] = c
	}
	for _, set := range o.Sets {
		add(set.Path, http.MethodGet, s.whole(set))
	}
	for _, p := range o.Posts {
		add(p.Path, http.MethodPost, s.post(p))
	}
	for _, a := range o.Asks {
		add(a.Path, http.MethodPost, s.ask(a))
	}
	for path, methods := range calls {
		s.mux.Handle("/peer/v1/"+path, s.answer(methods))
	}
	s.mux.Handle("/", s.answer(nil))
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) hello(w http.ResponseWriter, r *http.Request) error {
	var theirs Hello
	if err := read(r, &theirs); err != nil {
		return err
	}
	mine := s.Hello()
	if err := theirs.Check(mine, s.Name); err != nil {
		s.Logger.WarnContext(r.Context(), "greeted by a node that cannot be the peer", "error", err)
	} else {
		s.Heard(theirs)
	}
	return write(w, mine) // the caller sees for itself, and says so at its end too
}

func (s *Server) poll(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	wait, err := time.ParseDuration(query.Get("wait"))
	if err != nil || wait < 0 {
		wait = 0
	}
	held := map[string]string{}
	for _, set := range s.Sets {
		if v, ok := query[set.Name]; ok {
			held[set.Name] = v[0]
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.Stop, cancel)()
	p, err := Poll(ctx, s.Log, query.Get("cursor"), s.Sets, held, wait)
	if err != nil {
		return err
	}
	if p.Entries == nil {
		p.Entries = []json.RawMessage{}
	} else {
		s.Crash("sync.served")
	}
	return write(w, p)
}

func (s *Server) take(w http.ResponseWriter, r *http.Request) error {
	var offer Offer
	if err := read(r, &offer); err != nil {
		return err
	}
	cursor, err := s.Log.Apply(r.Context(), s.Name, offer.From, offer.To, offer.Entries)
	if err != nil {
		return err
	}
	if len(offer.Entries) > 0 { // an empty one only asks for the cursor
		s.Crash("sync.applied")
	}
	return write(w, Ack{Cursor: cursor})
}

func (s *Server) whole(set Set) call {
	return func(w http.ResponseWriter, r *http.Request) error {
		generation, body, err := set.Export(r.Context())
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-store")
		return write(w, Whole{Generation: generation, Body: body})
	}
}

func (s *Server) post(p Post) call {
	return func(w http.ResponseWriter, r *http.Request) error {
		b, err := body(r)
		if err != nil {
			return err
		}
		if err := p.take(r.Context(), b); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// answer has the call of the request's method answer, and what goes wrong become
// a problem.
func (s *Server) answer(methods map[string]call) http.Handler {
	var allowed []string
	for m := range methods {
		allowed = append(allowed, m)
	}
	allow := strings.Join(allowed, ", ")
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
