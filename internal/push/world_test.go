package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sqlite"
	nodesync "tandem/internal/sync"
)

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func same(t testing.TB, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// starts counts the processes of the test binary, so that none repeats the random
// bytes of another.
var starts byte

// open is a process that opens a file, as if the one before had been killed: the
// former is left as it stands.
func open(t testing.TB, path string) *sqlite.DB {
	t.Helper()
	starts++
	db, err := sqlite.Open(t.Context(), sqlite.Options{
		Path: path, Schema: sqlite.Todos, Now: time.Now, Rand: rand.NewChaCha8([32]byte{starts}),
	})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// fake is a channel that answers as it is told and remembers what it was given.
type fake struct {
	name   string
	mu     sync.Mutex
	answer func(context.Context, Target) error
	posts  []post
}

type post struct {
	at time.Time
	Target
	Message
}

func (f *fake) Name() string { return f.name }

func (f *fake) Send(ctx context.Context, to Target, m Message) (string, error) {
	f.mu.Lock()
	f.posts = append(f.posts, post{time.Now(), to, m})
	n, answer := len(f.posts), f.answer
	f.mu.Unlock()
	return fmt.Sprintf("%s-%d", f.name, n), answer(ctx, to)
}

func (f *fake) will(answer func(context.Context, Target) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// to are the addresses the fake was asked to reach. One attempt calls all of its
// targets at once, in no order.
func (f *fake) to() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.posts {
		all = append(all, p.Address)
	}
	return all
}

func (f *fake) last() post {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.posts[len(f.posts)-1]
}

func take(context.Context, Target) error { return nil }

func fail(v Verdict, code string) func(context.Context, Target) error {
	return func(context.Context, Target) error { return &Failure{Verdict: v, Code: code} }
}

// each answers by address; others are taken.
func each(answers map[string]func(context.Context, Target) error) func(context.Context, Target) error {
	return func(ctx context.Context, to Target) error {
		if answer := answers[to.Address]; answer != nil {
			return answer(ctx, to)
		}
		return nil
	}
}

// hang is a service that never answers.
func hang(ctx context.Context, _ Target) error {
	<-ctx.Done()
	return &Failure{Verdict: Retry, Code: "timeout", MaybeTaken: true}
}

// world is one node's push with fakes for the services. Ada has a chat, Bob has
// none; phones are registered by the test.
type world struct {
	t      *testing.T
	path   string
	db     *sqlite.DB
	log    *nodesync.Log
	tokens *Tokens
	outbox *Outbox

	fcm, telegram *fake
	chatsFail     error
	crashAt       string
	routes        func(*world) []Route
	banned        []string
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, path: filepath.Join(t.TempDir(), "todos.db"), routes: bothRoutes,
		fcm: &fake{name: "fcm", answer: take}, telegram: &fake{name: "telegram", answer: take},
	}
	w.start()
	return w
}

func bothRoutes(w *world) []Route {
	return []Route{{Channel: w.fcm, Targets: w.tokens.Targets}, {Channel: w.telegram, Targets: w.chats, PerAddress: true}}
}

func (w *world) chats(_ context.Context, owner string) ([]Target, error) {
	if owner != "ada" {
		return nil, w.chatsFail
	}
	return []Target{{Address: "42"}}, w.chatsFail
}

// start starts a process on the file, whatever became of the one before.
func (w *world) start() {
	w.t.Helper()
	w.db = open(w.t, w.path)
	log, err := nodesync.NewLog(w.t.Context(), w.db, nodesync.Options{Node: "local"})
	must(w.t, err)
	w.log = log
	w.tokens = NewTokens(w.db, TokenOptions{Authority: true, Log: quiet()})
	w.crashAt = ""
	w.outbox, err = NewOutbox(w.t.Context(), w.db, log, w.tokens, OutboxOptions{Routes: w.routes(w), Disabled: func() []string { return w.banned }, Crash: w.crash, Log: quiet()})
	must(w.t, err)
}

// crash dies at the point the test has set: the loop's recovery stands in for the
// process's end, since nothing is written on the way out.
func (w *world) crash(point string) {
	if point == w.crashAt {
		panic("crash at " + point)
	}
}

// dies has a process die at a point, and another start.
func (w *world) dies(point string) {
	w.t.Helper()
	w.crashAt = point
	if err := w.outbox.Deliver(w.t.Context()); err == nil {
		w.t.Fatalf("nothing died at %s", point)
	}
	w.start()
}

func (w *world) write(fn func(*sqlite.Tx) error) {
	w.t.Helper()
	must(w.t, w.db.Write(w.t.Context(), fn))
}

// phone registers a device under a token of the same name.
func (w *world) phone(owner string, tokens ...string) {
	w.t.Helper()
	for _, token := range tokens {
		w.write(func(tx *sqlite.Tx) error {
			_, err := w.tokens.RegisterTx(tx, owner, Registration{token, "android", "device-" + token})
			return err
		})
	}
}

func ring(fire, owner string) Notice {
	return Notice{
		FireID: fire, Kind: "ring", Owner: owner, Title: "Reminder", Body: "call May",
		DueAt: time.Now(), TTL: 24 * time.Hour, Zone: "Europe/Berlin",
	}
}

func (w *world) enqueue(notices ...Notice) {
	w.t.Helper()
	w.write(func(tx *sqlite.Tx) error {
		for _, n := range notices {
			if err := w.outbox.EnqueueTx(tx, n); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) deliver() {
	w.t.Helper()
	must(w.t, w.outbox.Deliver(w.t.Context()))
}

// run has the loops of a node run for so long.
func (w *world) run(loops []*loop.Loop, d time.Duration) {
	ctx, stop := context.WithTimeout(w.t.Context(), d)
	defer stop()
	var all sync.WaitGroup
	for _, l := range loops {
		all.Go(func() { _ = l.Run(ctx) })
	}
	all.Wait()
}

// delivery is what the file holds of a notice, apart from its text.
type delivery struct {
	State           State
	Channel, Reason string
	Attempts        int
	NextAttemptAt   *int64
	Targets         int // devices and chats that were tried
	Events          []event
}

type event struct {
	From, To      State
	Channel, Code string
	At            time.Time
}

// of is the one delivery of a fire.
func (w *world) of(fire string) (d delivery) {
	w.t.Helper()
	_, err := sqlite.Read(w.t.Context(), w.db, func(tx *sqlite.Tx) (_ struct{}, err error) {
		all, err := sqlite.All(tx, func(r sqlite.Row) (id string, err error) {
			return id, r.Scan(&id, &d.State, &d.Channel, &d.Reason, &d.Attempts, &d.NextAttemptAt, &d.Targets)
		}, `
			SELECT id, state, coalesce(channel, ''), coalesce(code, ''), attempts, next_attempt_at,
			  (SELECT count(*) FROM delivery_targets WHERE intent_id = id)
			FROM delivery_intents
			WHERE fire_id = ?`, fire)
		if err != nil || len(all) != 1 {
			return struct{}{}, fmt.Errorf("%d deliveries of %s: %w", len(all), fire, err)
		}
		d.Events, err = sqlite.All(tx, func(r sqlite.Row) (e event, err error) {
			var at int64
			err = r.Scan(&e.From, &e.To, &e.Channel, &e.Code, &at)
			e.At = sqlite.Time(at)
			return e, err
		}, `SELECT from_state, to_state, coalesce(channel, ''), coalesce(code, ''), at FROM delivery_events WHERE intent_id = ? ORDER BY id`, all[0])
		return
	})
	must(w.t, err)
	return d
}

// story is the audit of a fire, as "to:channel:code".
func (w *world) story(fire string) (all []string) {
	w.t.Helper()
	from := State("prepared")
	for _, e := range w.of(fire).Events {
		equal(w.t, e.From, from) // they form a path
		from = e.To
		all = append(all, fmt.Sprintf("%s:%s:%s", e.To, e.Channel, e.Code))
	}
	equal(w.t, w.of(fire).State, from)
	return all
}

// facts are the fire's, each as its kind and body.
func (w *world) facts(fire, kind string) (bodies []string) {
	w.t.Helper()
	all, err := sqlite.Read(w.t.Context(), w.db, func(tx *sqlite.Tx) ([]nodesync.Fact, error) { return nodesync.FactsTx(tx, fire) })
	must(w.t, err)
	for _, f := range all {
		if f.Kind == kind {
			bodies = append(bodies, string(f.Body))
		}
	}
	return bodies
}

// link is the way to the cloud, over JSON as in life.
type link struct {
	cloud *Tokens
	away  bool // nothing arrives
	mute  bool // what was asked is done, and the answer lost
	calls int

	during func() // what happens between the doing and the answer, once
}

var errAway = errors.New("the peer is away")

func (l *link) Call(ctx context.Context, method, path string, in, _ any) error {
	l.calls++
	if l.away {
		return errAway
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	switch method + " " + path {
	case "POST push-tokens":
		var f Forwarded
		err = errors.Join(json.Unmarshal(body, &f), l.cloud.Receive(ctx, f))
	case "POST push-tokens/unregistered":
		var dead []Lapsed
		err = errors.Join(json.Unmarshal(body, &dead), l.cloud.Unregistered(ctx, dead))
	default:
		err = fmt.Errorf("no such call: %s %s", method, path)
	}
	if during := l.during; during != nil {
		l.during = nil
		during()
	}
	if l.mute && err == nil {
		return errAway
	}
	return err
}

func loops(all ...*loop.Loop) []*loop.Loop { return all }
