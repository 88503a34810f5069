package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	gosync "sync"
	"testing"
	"time"

	"tandem/internal/fault"
	"tandem/internal/push"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

const (
	anna = "01ANNA00000000000000000000"
	ben  = "01BEN000000000000000000000"
)

// node is one node's scheduler on a real file, with a clock that the test moves.
type node struct {
	testing.TB
	name   string
	origin int64
	path   string
	idle   bool // is not active
	banned []string
	homes  map[string]string                   // where owners live
	crash  string                              // the point at which the process dies
	refuse func(*sqlite.Tx, push.Notice) error // what the outbox says first
	quiet  bool                                // what it holds in the end is not the same in each run

	offset time.Duration // from the machine's clock, or
	wall   time.Time     // the clock, where the test moves it by hand

	db        *sqlite.DB
	log       *sync.Log
	store     *Store
	scheduler *Scheduler
}

// newNode starts a node whose clock stands still at the time given.
func newNode(t testing.TB, at string) *node { return newPeer(t, "local", 0, at) }

func newPeer(t testing.TB, name string, origin int64, at string) *node {
	n := &node{TB: t, name: name, origin: origin, homes: map[string]string{}, wall: instant(t, at),
		path: filepath.Join(t.TempDir(), name+".db")}
	if err := os.WriteFile(n.path, blank(), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	t.Cleanup(func() {
		n.dump()
		_ = n.db.Close()
	})
	return n
}

// blank is a migrated file without rows: made once, since each test needs one.
var blank = gosync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp("", "blank")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "blank.db")
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: path, Schema: sqlite.Todos, Now: time.Now, Rand: rand.NewChaCha8([32]byte{})})
	if err != nil {
		panic(err)
	}
	if err := db.Close(); err != nil {
		panic(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return file
})

func (n *node) start() {
	n.Helper()
	ctx := context.Background()
	var err error
	n.db, err = sqlite.Open(ctx, sqlite.Options{Path: n.path, Schema: sqlite.Todos, Now: n.now, Rand: rand.NewChaCha8([32]byte{byte(n.origin), byte(n.now().Unix())})})
	n.must(err)
	table := NewTable(func(_ *sqlite.Tx, owner string) (string, error) { return n.homes[owner], nil })
	n.log, err = sync.NewLog(ctx, n.db, sync.Options{Node: n.name, Origin: n.origin, Tables: []*sync.Table{table.Table()}, Facts: table.Facts})
	n.must(err)
	n.store = NewStore(n.db, n.log, table)
	n.scheduler = New(n.db, n.store, n, Options{Active: !n.idle, Disabled: func() []string { return n.banned }, Crash: n.die, Log: slog.New(slog.DiscardHandler)})
}

// restart stops the node, as a crash does as well as a stop, and starts it again.
func (n *node) restart() {
	n.Helper()
	n.must(n.db.Close())
	n.start()
}

func (n *node) die(point string) {
	if point == n.crash {
		panic("killed at " + point)
	}
}

func (n *node) now() time.Time {
	if n.wall.IsZero() {
		return time.Now().Add(n.offset)
	}
	return n.wall
}

// EnqueueTx keeps notices as the outbox does, one of a kind for each fire; but a
// second one is an error, which fails the test.
func (n *node) EnqueueTx(tx *sqlite.Tx, notice push.Notice) error {
	if n.refuse != nil {
		if err := n.refuse(tx, notice); err != nil {
			return err
		}
	}
	b, err := json.Marshal(notice)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO applied (effect_key, answer, at) VALUES (?, ?, ?)`, notice.FireID+"/"+notice.Kind, string(b), tx.Millis())
	return err
}

// ring is a notice that was handed out, and when.
type ring struct {
	push.Notice
	At time.Time
}

func (n *node) rings() []ring {
	n.Helper()
	return read(n, func(tx *sqlite.Tx) ([]ring, error) {
		return sqlite.All(tx, func(r sqlite.Row) (out ring, err error) {
			var text string
			var at int64
			err = errors.Join(r.Scan(&text, &at), json.Unmarshal([]byte(text), &out.Notice))
			out.At = sqlite.Time(at)
			return out, err
		}, `SELECT answer, at FROM applied ORDER BY at, rowid`)
	})
}

// rang compares what was handed out so far: "when body (notes)".
func (n *node) rang(want ...string) {
	n.Helper()
	var got []string
	for _, r := range n.rings() {
		line := when.Format(r.At) + " " + r.Body
		for _, note := range r.Notes {
			line += " (" + note + ")"
		}
		got = append(got, line)
	}
	equal(n, fmt.Sprintf("%q", got), fmt.Sprintf("%q", want))
}

// tick moves the clock and has the scheduler do what it then does until it rests.
func (n *node) tick(at string) {
	n.Helper()
	n.wall = instant(n, at)
	n.must(n.round())
}

// round is two, as the loop would do: the second finds what the first derived.
func (n *node) round() error {
	for range 2 {
		if err := n.scheduler.round(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) add(d Draft) Message {
	n.Helper()
	return n.addFor(anna, d)
}

func (n *node) addFor(owner string, d Draft) (m Message) {
	n.Helper()
	n.must(n.db.Write(context.Background(), func(tx *sqlite.Tx) (err error) {
		m, _, err = n.store.AddTx(tx, owner, d)
		return err
	}))
	return m
}

func (n *node) edit(m Message, c Change) Message {
	n.Helper()
	edited, err := n.tryEdit(m, c)
	n.must(err)
	return edited
}

func (n *node) tryEdit(m Message, c Change) (edited Message, err error) {
	err = n.db.Write(context.Background(), func(tx *sqlite.Tx) (err error) {
		edited, _, err = n.store.EditTx(tx, m.Owner, m.Ref, c)
		return err
	})
	return edited, err
}

func (n *node) get(m Message) Message {
	n.Helper()
	got, err := n.store.Get(context.Background(), m.Owner, m.Ref)
	n.must(err)
	return got
}

// next checks when the message rings next; empty is never.
func (n *node) next(m Message, want string) {
	n.Helper()
	equal(n, showTime(n.get(m).NextFireAt), want)
}

// facts returns what the facts of this kind tell, in the order in which they came.
func (n *node) facts(kind string) []story {
	n.Helper()
	return read(n, func(tx *sqlite.Tx) ([]story, error) {
		return sqlite.All(tx, func(r sqlite.Row) (s story, err error) {
			var body string
			return s, errors.Join(r.Scan(&body), json.Unmarshal([]byte(body), &s))
		}, `SELECT body FROM facts WHERE kind = ? ORDER BY seq`, kind)
	})
}

func read[T any](n *node, fn func(*sqlite.Tx) (T, error)) T {
	n.Helper()
	v, err := sqlite.Read(context.Background(), n.db, fn)
	n.must(err)
	return v
}

// deliver hands all of from's log that to has not read to it.
func deliver(from, to *node) {
	to.Helper()
	ctx := context.Background()
	for {
		cursor, err := to.log.Cursor(ctx, from.name)
		to.must(err)
		page, err := from.log.Page(ctx, cursor, sync.PageRows)
		to.must(err)
		if len(page.Entries) == 0 {
			return
		}
		_, err = to.log.Apply(ctx, from.name, cursor, page.Cursor, page.Entries)
		to.must(err)
	}
}

// exchange brings both nodes to the same rows and facts.
func exchange(a, b *node) {
	a.Helper()
	deliver(a, b)
	deliver(b, a)
	deliver(a, b)
}

// receive applies entries as a peer would send them.
func (n *node) receive(entries ...string) {
	n.Helper()
	var raw []json.RawMessage
	for _, e := range entries {
		raw = append(raw, json.RawMessage(e))
	}
	_, err := n.log.Apply(context.Background(), "peer", "", "", raw)
	n.must(err)
}

// peerRow is a row as the peer sends it, with fields as JSON.
func peerRow(id int, at, fields string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"table":"scheduled_messages","origin":1,"id":%d,"uid":"%032x","owner":%q,"created_at":%d,"updated_at":%d,"updated_by":"peer","content":"from the peer",%s}`,
		id, 0xfeed0000+id, anna, t.UnixMilli(), t.UnixMilli(), fields)
}

// dump logs what the file holds, for the comparison between machines of other zones.
func (n *node) dump() {
	if n.quiet {
		return
	}
	lines, err := sqlite.Read(context.Background(), n.db, func(tx *sqlite.Tx) ([]string, error) {
		return sqlite.All(tx, sqlite.Value[string], `
			SELECT json_array(origin, id, hex(uid), content, trigger_at, cron_expr, rrule, tz, enabled, schedule_effective_from, next_fire_at)
			FROM scheduled_messages
			UNION ALL SELECT json_array(kind, subject, node, at, json(body)) FROM facts WHERE json_valid(body)
			UNION ALL SELECT json_array(effect_key, at, json(answer)) FROM applied`)
	})
	if err != nil {
		n.Error(err)
	}
	for _, line := range lines {
		n.Log(line)
	}
}

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// refused checks that err is a fault of the caller with this code.
func refused(t testing.TB, err error, code string) {
	t.Helper()
	if f := fault.From(err); err == nil || f.Kind != fault.Invalid || f.Code != code || f.Detail == "" {
		t.Errorf("got %v, want the fault %s", err, code)
	}
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func showTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return when.Format(*t)
}

func ptr[T any](v T) *T { return &v }
