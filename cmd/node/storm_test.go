package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"
)

var (
	stormSeed = flag.Uint64("seed", 0, "what the storms choose by; 0: another one each time")
	stormFor  = flag.Duration("storm", 20*time.Second, "how long the storms last")
)

// storm is people who write at both nodes whatever happens to these, and what they
// were answered.
type storm struct {
	*pair
	seed  uint64
	kept  []*written // that only collide writes to, once each
	first int        // how many of kept are left: the rest was used

	mu         sync.Mutex
	todos      []*written
	reminders  []string // the contents of those that were answered
	deletes    int
	collisions []collision
}

// written is a todo as its author knows it.
type written struct {
	content string   // never changes, and no other has it
	ref     string   // empty until its creation was answered
	notes   []string // all that anybody tried to write into it
	told    []told   // what was answered
	doomed  bool     // somebody has tried to delete it
}

// told is a version that a node has said it has saved. Of a deletion only that it is
// later than what was there is known.
type told struct {
	at    int64 // Unix ms
	by    string
	notes string
	later bool // the version is later than that
}

// collision is an edit of a todo at each node that had not seen the other's.
type collision struct {
	content string
	notes   [2]string
}

// newStorm prints the seed by which all that is random here is chosen.
func newStorm(w *pair) *storm {
	seed := *stormSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	w.t.Logf("to have it choose alike: -seed %d", seed)
	return &storm{pair: w, seed: seed}
}

func (s *storm) random(stream int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(stream))) }

func (s *storm) nodes() [2]*process { return [2]*process{s.home, s.cloud} }

// rage has people write at both nodes while trouble is made.
func (s *storm) rage(writers int, trouble func(context.Context)) {
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	var group sync.WaitGroup
	for i := range 2 * writers {
		group.Go(func() { s.write(ctx, i%2, s.random(1+i)) })
	}
	trouble(ctx)
	stop()
	group.Wait()
}

// write is one person at one node.
func (s *storm) write(ctx context.Context, at int, r *rand.Rand) {
	p := s.nodes()[at]
	for n := 0; ctx.Err() == nil; n++ {
		var err error
		switch todo, dice := s.pick(r), r.IntN(20); {
		case dice == 0:
			err = s.remind(ctx, at, r)
		case todo == nil || dice < 8:
			err = s.create(ctx, at, r)
		case dice < 18:
			err = s.edit(ctx, p, todo, fmt.Sprintf("at %d: %x", at, r.Uint64()))
		default:
			err = s.delete(ctx, p, todo)
		}
		pause := 10 * time.Millisecond
		if err != nil { // the node is down, or has not got the todo yet
			pause = 50 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// pick is one of the todos whose creation was answered, more often a late one.
func (s *storm) pick(r *rand.Rand) *written {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.todos) == 0 {
		return nil
	}
	w := s.todos[max(r.IntN(len(s.todos)), r.IntN(len(s.todos)))]
	if w.ref == "" {
		return nil
	}
	return w
}

// create adds a todo.
func (s *storm) create(ctx context.Context, at int, r *rand.Rand) error {
	w := &written{content: fmt.Sprintf("todo %016x", r.Uint64()), notes: []string{""}}
	s.mu.Lock()
	s.todos = append(s.todos, w)
	s.mu.Unlock()
	row, err := s.insist(ctx, at, r, "/v1/todos", w.content, map[string]string{"content": w.content})
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.ref, w.told = row.Ref, append(w.told, row.told())
	}
	return err
}

// remind adds a reminder that will not ring before the test is over.
func (s *storm) remind(ctx context.Context, at int, r *rand.Rand) error {
	content := fmt.Sprintf("reminder %016x", r.Uint64())
	_, err := s.insist(ctx, at, r, "/v1/scheduled-messages", content, map[string]string{"content": content, "trigger_at": "2100-01-01T00:00:00Z"})
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reminders = append(s.reminders, content)
	}
	return err
}

// insist asks under one key until it is answered, now and then at the other node.
func (s *storm) insist(ctx context.Context, at int, r *rand.Rand, path, key string, in any) (row stormRow, err error) {
	for {
		err = s.nodes()[at].asks(ctx, http.MethodPost, path, key, in, &row)
		if err == nil || ctx.Err() != nil {
			return row, err
		}
		if r.IntN(4) == 0 {
			at = 1 - at
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *storm) edit(ctx context.Context, p *process, w *written, notes string) error {
	s.mu.Lock()
	w.notes = append(w.notes, notes)
	s.mu.Unlock()
	var row stormRow
	err := p.asks(ctx, http.MethodPatch, "/v1/todos/"+w.ref, "", map[string]string{"notes": notes}, &row)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.told = append(w.told, row.told())
	}
	return err
}

// delete deletes, now and then: many at once would be held back until somebody says
// that they were meant.
func (s *storm) delete(ctx context.Context, p *process, w *written) error {
	s.mu.Lock()
	spared := s.deletes >= 20+len(s.todos)/20
	if !spared {
		s.deletes++
		w.doomed = true
	}
	s.mu.Unlock()
	if spared {
		return nil
	}
	var row stormRow
	if err := p.asks(ctx, http.MethodGet, "/v1/todos/"+w.ref, "", nil, &row); err != nil {
		return err
	}
	err := p.asks(ctx, http.MethodDelete, "/v1/todos/"+w.ref, "", nil, nil)
	if err == nil {
		was := row.told()
		was.later = true
		s.mu.Lock()
		defer s.mu.Unlock()
		w.told = append(w.told, was)
	}
	return err
}

// keep makes todos for collide, before the storm.
func (s *storm) keep(n int) {
	s.t.Helper()
	for i := range n {
		w := &written{content: fmt.Sprint("kept ", i), notes: []string{""}}
		row, err := s.insist(s.t.Context(), 0, s.random(0), "/v1/todos", w.content, map[string]string{"content": w.content})
		must(s.t, err)
		w.ref, w.told = row.Ref, []told{row.told()}
		s.kept = append(s.kept, w)
	}
}

// collide edits a todo at both nodes, between which nothing passes just now. Where a
// node is down it does not.
func (s *storm) collide(ctx context.Context) {
	if s.first == len(s.kept) {
		return
	}
	w := s.kept[s.first]
	var now [2]stormRow
	for i, p := range s.nodes() {
		if err := p.asks(ctx, http.MethodGet, "/v1/todos/"+w.ref, "", nil, &now[i]); err != nil {
			return
		}
	}
	if now[0] != now[1] {
		return
	}
	s.first++
	c := collision{w.content, [2]string{w.content + " at home", w.content + " at the cloud"}}
	for i, p := range s.nodes() {
		if err := s.edit(ctx, p, w, c.notes[i]); err != nil {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collisions = append(s.collisions, c)
}

// stormRow is as much of an answered row as the storm keeps.
type stormRow struct {
	Ref, Notes string
	UpdatedAt  string `json:"updated_at"`
	UpdatedBy  string `json:"updated_by"`
}

func (r stormRow) told() told {
	at, _ := time.Parse(time.RFC3339Nano, r.UpdatedAt) // of which the node is the author
	return told{at: at.UnixMilli(), by: r.UpdatedBy, notes: r.Notes}
}

// asks is call with a key, for any goroutine.
func (p *process) asks(ctx context.Context, method, path, key string, in, out any) error {
	body := &bytes.Buffer{}
	if in != nil {
		if err := json.NewEncoder(body).Encode(in); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+p.token)
	if key != "" {
		r.Header.Set("Idempotency-Key", url.QueryEscape(key))
	}
	res, err := demoHTTP.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, b)
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(b, out)
}
