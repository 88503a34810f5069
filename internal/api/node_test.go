package api

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"tandem/internal/push"
	"tandem/internal/scheduler"
	"tandem/internal/settings"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
	"tandem/internal/sync/link"
	"tandem/internal/todos"
	"tandem/internal/users"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.seed", "20260506") // the same input in each run
	os.Exit(m.Run())
}

const (
	password   = "correct horse"
	peerSecret = "a secret of both nodes, 0123456789"
	pairCode   = "a-code-of-a-moment"
)

// node is a node as the outside sees it, the cloud but for one: real files, real
// stores, the real handler. Its clock stands still until a test moves it.
type node struct {
	testing.TB
	name       string
	origin     int64
	db, userDB *sqlite.DB
	accounts   *users.Store
	log        *sync.Log
	services   Services
	handler    http.Handler
	contract   contract
	anna, ben  person
	stopped    context.Context
	stop       func() // ends the polls that are held open

	copies bool   // accounts live at the other node
	crash  string // the point at which the process dies
	ill    error  // what readyz finds
	broken bool   // a test that expects answers of 500 and more

	mu      gosync.Mutex
	clock   time.Time
	logged  bytes.Buffer
	secrets []string // what no line of the log may have in it
}

// newNode starts a node on 1 February 2026 with two people, anna being its admin.
func newNode(t testing.TB) *node { return newNodeAt(t, "2026-02-01T12:00:00Z") }

func newNodeAt(t testing.TB, now string) *node {
	n := &node{TB: t, name: "cloud", origin: 1, clock: instant(t, now)}
	n.begin()
	n.anna = n.join("anna@example.org", users.Admin)
	n.ben = n.join("ben@example.org", users.User)
	return n
}

func (n *node) begin() {
	n.db, n.userDB = n.open(sqlite.Todos, byte(n.origin)), n.open(sqlite.Users, byte(n.origin)+2)
	n.stopped, n.stop = context.WithCancel(context.Background())
	n.Cleanup(n.stop)
	n.secrets = []string{password, peerSecret}
	n.wire()
	n.Cleanup(n.audit)
}

// home is the node to which this one is the peer, with a copy of its accounts and
// anna logged in.
func (n *node) home() *node {
	n.Helper()
	h := &node{TB: n.TB, name: "local", clock: n.clock, copies: true}
	h.begin()
	generation, accounts, err := n.accounts.Export(n.Context())
	n.must(err)
	n.must(h.accounts.Import(n.Context(), generation, accounts))
	h.anna = h.login("anna@example.org")
	return h
}

// wire makes the parts of a node anew on its files, as a start does.
func (n *node) wire() {
	ctx := context.Background()
	log := slog.New(slog.NewTextHandler(n, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	n.accounts, err = users.NewStore(ctx, n.userDB, users.Options{Authority: !n.copies, Hasher: hasher, Log: log})
	n.must(err)
	zone := func(tx *sqlite.Tx, owner string) (string, error) { return settings.ZoneTx(tx, owner) }
	messages := scheduler.NewTable(zone)
	n.log, err = sync.NewLog(ctx, n.db, sync.Options{Node: n.name, Origin: n.origin, Facts: messages.Facts,
		Tables: []*sync.Table{todos.Table(), settings.Table(messages.MovedTx), messages.Table()}})
	n.must(err)
	tokens := push.NewTokens(n.db, push.TokenOptions{Authority: true, Log: log})
	accounts := link.Set{Name: "accounts", Path: "accounts", Generation: n.accounts.Generation, Export: n.accounts.Export, Import: n.accounts.Import}
	pushTokens := link.Set{Name: "tokens", Path: "push-tokens", Generation: tokens.Generation, Export: tokens.Export, Import: tokens.Import}
	server := link.NewServer(link.ServerOptions{
		Log: n.log, Name: "local", Sets: []link.Set{accounts, pushTokens}, Stop: n.stopped, Crash: n.crashes, Logger: log,
		Calls: []link.Call{link.Taking("push-tokens", tokens.Receive), link.Taking("push-tokens/unregistered", tokens.Unregistered),
			link.Answering("pair", n.pair)},
		Hello: n.hello,
	})
	n.services = Services{
		DB: n.db, Users: n.accounts, Settings: settings.NewStore(n.db, n.log, messages.MovedTx),
		Todos: todos.NewStore(n.db, n.log, zone), Scheduler: scheduler.NewStore(n.db, n.log, messages), Tokens: tokens, Replica: n.log,
		Letters: letters.NewBox(n.db, letters.Options{}), Compare: server.CompareSoon,
		Peer: &Peer{
			Name: "local", Match: func(s string) bool { return s == peerSecret }, Pairing: func(s string) bool { return s == pairCode }, Server: server, TurnedAway: server.TurnedAway,
		},
		Link:  func() SyncState { return SyncState{Status: server.Status()} },
		Ready: func(context.Context) error { return n.ill }, Secret: []byte("the node's own"), Version: "test",
		Crash: n.crashes, Log: log,
	}
	n.handler = New(n.services)
	n.contract = describe(n)
}

func (n *node) crashes(point string) {
	if point == n.crash {
		panic("killed at " + point)
	}
}

// pair answers with the name it was told and the code that came with it.
func (n *node) pair(_ context.Context, code, name string) (string, error) {
	return name + " " + code, nil
}

func (n *node) hello() link.Hello {
	return link.Hello{Node: n.name, Origin: n.origin, Incarnation: n.log.Incarnation(), Protocol: link.Protocol, Version: "test", Scheduler: "standby", Now: n.now().UnixMilli()}
}

// hasher has a cost at which a test can afford hundreds of logins.
var hasher = users.NewHasher(users.Cost{Memory: 8, Passes: 1})

func (n *node) open(schema sqlite.Schema, seed byte) *sqlite.DB {
	path := filepath.Join(n.TempDir(), schema.File())
	n.must(os.WriteFile(path, blank(schema), 0o600))
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: path, Schema: schema, Now: n.now, Rand: rand.NewChaCha8([32]byte{seed})})
	n.must(err)
	n.Cleanup(func() { _ = db.Close() })
	return db
}

var blanks gosync.Map

// blank is a migrated file without rows: made once, since each test needs one.
func blank(schema sqlite.Schema) []byte {
	make := gosync.OnceValue(func() []byte {
		dir, err := os.MkdirTemp("", "blank")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, schema.File())
		db, err := sqlite.Open(context.Background(), sqlite.Options{Path: path, Schema: schema, Now: time.Now, Rand: rand.NewChaCha8([32]byte{})})
		if err != nil {
			panic(err)
		}
		db.Close()
		file, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		return file
	})
	f, _ := blanks.LoadOrStore(schema.File(), make)
	return f.(func() []byte)()
}

// join makes an account and logs it in. Invitations are not built here: the row is
// written as a directory brings it.
func (n *node) join(email string, role users.Role) person {
	n.Helper()
	hash, err := hasher.Hash(context.Background(), password)
	n.must(err)
	n.must(n.userDB.Write(context.Background(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`INSERT INTO users (id, email, password_hash, role, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)`,
			tx.NewID(), email, hash, role, tx.Millis(), tx.Millis())
		return err
	}))
	return n.login(email)
}

func (n *node) login(email string) person {
	n.Helper()
	c := person{node: n}
	a := c.post("/v1/auth/login", fmt.Sprintf(`{"email": %q, "password": %q}`, email, password)).wants(200)
	token := a.text("token")
	n.secrets = append(n.secrets, token)
	c = c.with("Authorization", "Bearer "+token)
	c.id = c.get("/v1/me").wants(200).text("id")
	return c
}

// audit looks at the log of the whole test.
func (n *node) audit() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.secrets {
		if strings.Contains(n.logged.String(), s) {
			n.Errorf("the log has a secret in it, %.12s…:\n%s", s, n.logged.String())
		}
	}
	if !n.broken && strings.Contains(n.logged.String(), "level=ERROR") {
		n.Errorf("logged as an error:\n%s", n.logged.String())
	}
}

// Write takes a line of the log.
func (n *node) Write(line []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.logged.Write(line)
}

func (n *node) now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clock
}

func (n *node) wait(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clock = n.clock.Add(d)
}

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// sql runs a statement behind the stores' back.
func (n *node) sql(query string, args ...any) {
	n.Helper()
	n.must(n.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}))
}

func (n *node) count(query string, args ...any) int {
	n.Helper()
	v, _, err := sqlite.ReadOne(context.Background(), n.db, sqlite.Value[int], query, args...)
	n.must(err)
	return v
}

// rows is how much there is of everything that a request can write.
func (n *node) rows() string {
	var out []string
	for _, table := range []string{"todos", "scheduled_messages", "settings", "facts", "push_tokens", "push_forgotten", "push_unregistered",
		"delivery_intents", "idempotency", "applied", "sync_cursors", "sync_quarantine"} {
		out = append(out, fmt.Sprint(table, "=", n.count(`SELECT count(*) FROM `+table)))
	}
	return strings.Join(out, " ")
}
