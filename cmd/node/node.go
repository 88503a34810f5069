package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"tandem/internal/api"
	"tandem/internal/config"
	"tandem/internal/contact"
	"tandem/internal/fcm"
	"tandem/internal/loop"
	"tandem/internal/pairing"
	"tandem/internal/push"
	"tandem/internal/scheduler"
	"tandem/internal/settings"
	"tandem/internal/sqlite"
	nodesync "tandem/internal/sync"
	"tandem/internal/sync/letters"
	"tandem/internal/sync/link"
	"tandem/internal/telegram"
	"tandem/internal/todos"
	"tandem/internal/users"
)

// node is a whole node, wired but not running.
type node struct {
	config.Config
	configFile string // the path it came from, for people; empty: none
	folder     *folder
	out        outside
	logger     *slog.Logger
	process    link.Process
	users      *users.Store
	log        *nodesync.Log
	settings   *settings.Store
	todos      *todos.Store
	messages   *scheduler.Store
	tokens     *push.Tokens
	chatOwners *push.Chats
	outbox     *push.Outbox
	scheduler  *scheduler.Scheduler
	keys       *config.Keyring
	parting    *pairing.Parting
	pairing    *pairing.Pairing
	peer       *link.Peer   // nil: this node does not call
	unjoined   *link.Peer   // the same, for the calls that come before it is joined
	client     *link.Client // as peer
	server     *link.Server // nil: nobody calls this node
	letters    *letters.Box
	contact    *contact.Contact // nil: there is no peer
	handler    http.Handler
	loops      []*loop.Loop
	polling    context.Context // ends at shutdown, and with it the polls that are held open
	stopPolls  context.CancelFunc
}

// newNode wires a node, each part before those that need it.
func newNode(ctx context.Context, c config.Config, f *folder, out outside, log *slog.Logger) (*node, error) {
	n := &node{Config: c, folder: f, out: out, logger: log, process: link.ThisProcess(out.now(), c.Node.Data)}
	n.polling, n.stopPolls = context.WithCancel(context.Background())
	var err error
	if n.keys, err = config.OpenKeyring(c, out.rand); err != nil {
		return nil, err
	}
	if n.parting, err = pairing.OpenParting(f.dir, c.Peer.Name); err != nil {
		return nil, err
	}
	n.users, err = users.NewStore(ctx, f.users, users.Options{
		Authority: n.authority(), AuthorityURL: c.Peer.URL, Hasher: users.NewHasher(users.Cost{}), OnChange: n.announce, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if err := n.openLog(ctx); err != nil {
		return nil, err
	}
	n.letters = letters.NewBox(f.todos, letters.Options{OnChange: n.lettersWait})
	if err := n.openPush(ctx); err != nil {
		return nil, err
	}
	n.scheduler = scheduler.New(f.todos, n.messages, n.outbox, scheduler.Options{
		Active: c.Scheduler.Mode == config.Active, Disabled: n.users.Disabled, Crash: out.crash, Log: log,
	})
	n.loops = append(n.loops, n.scheduler.Loop(), loop.New("upkeep", time.Hour, log, n.upkeep))
	if c.Peer.URL != "" {
		n.unjoined = link.NewPeer(c.Peer.URL, c.Peer.Name, c.Node.Name, n.keys.Send(), out.peer)
		n.peer = link.NewPeer(c.Peer.URL, c.Peer.Name, c.Node.Name, n.keys.Send(), joined{n, out.peer})
		n.client = link.NewClient(n.log, n.peer, link.ClientOptions{Sets: n.sets(), Letters: n.letters, Hello: n.hello, Crash: out.crash, Logger: log})
		n.loops = append(n.loops, n.client.Loops()...)
		n.loops = append(n.loops, n.tokens.ForwardLoop(quiet{n.peer}))
		n.keepContact()
	}
	n.keepPairing()
	n.handler = api.New(n.services())
	return n, nil
}

// authority reports whether accounts and push tokens live here: at the node with
// the public door, or at the only one.
func (n *node) authority() bool { return !n.Peer.On() || n.Node.Origin == 1 }

func (n *node) announce() {
	if n.log != nil {
		n.log.Announce()
	}
}

// lettersWait has the letters of this node go to the other one, whoever calls.
func (n *node) lettersWait() {
	n.announce()
	if n.client != nil {
		n.client.LettersWait()
	}
}

// openLog opens what replicates.
func (n *node) openLog(ctx context.Context) (err error) {
	messages := scheduler.NewTable(n.zone)
	n.log, err = nodesync.NewLog(ctx, n.folder.todos, nodesync.Options{
		Node: n.Node.Name, Origin: int64(n.Node.Origin),
		Tables: replicated(messages),
		Facts:  messages.Facts, Fence: fencePath(n.folder.dir), Version: version(), Crash: n.out.crash,
		Known: func(owner string) (bool, error) { return n.users.Has(context.Background(), owner) },
	})
	if err != nil {
		return err
	}
	n.settings = settings.NewStore(n.folder.todos, n.log, messages.MovedTx)
	n.todos = todos.NewStore(n.folder.todos, n.log, n.zone)
	n.messages = scheduler.NewStore(n.folder.todos, n.log, messages)
	return nil
}

// fencePath is where a node keeps what its database must not forget. It is in no backup.
func fencePath(dir string) string { return filepath.Join(dir, "todos.fence") }

// replicated are the tables that both nodes have.
func replicated(messages *scheduler.Table) []*nodesync.Table {
	return []*nodesync.Table{todos.Table(), settings.Table(messages.MovedTx), messages.Table()}
}

// zone is where an owner lives: as chosen, or as the operator says of everybody.
func (n *node) zone(tx *sqlite.Tx, owner string) (string, error) {
	zone, err := settings.ZoneTx(tx, owner)
	if zone == "" {
		zone = n.Node.TZ
	}
	return zone, err
}

// openPush opens the ways to a person.
func (n *node) openPush(ctx context.Context) error {
	n.tokens = push.NewTokens(n.folder.todos, push.TokenOptions{Authority: n.authority(), Life: n.log.Incarnation, OnChange: n.announce, Log: n.logger})
	var channels []push.Route
	if c := n.Push.FCM; c.On() {
		channel, err := fcm.New(ctx, fcm.Options{
			CredentialsFile: c.CredentialsFile, ProjectID: c.ProjectID, Endpoint: c.Endpoint, Transport: n.out.fcm, Log: n.logger,
		})
		if err != nil {
			return errBadConfig.Because(err)
		}
		channels = append(channels, push.Route{Channel: channel, Targets: n.tokens.Targets})
	}
	n.chatOwners = push.NewChats(n.folder.todos, n.users.FirstAdmin)
	if c := n.Push.Telegram; c.On() {
		bot := telegram.New(telegram.Options{Token: string(c.Token), Endpoint: c.Endpoint, Transport: n.out.telegram})
		channels = append(channels, push.Route{Channel: bot, Targets: n.chats, PerAddress: true})
	}
	var err error
	n.outbox, err = push.NewOutbox(ctx, n.folder.todos, n.log, n.tokens, push.OutboxOptions{Routes: channels, Disabled: n.users.Disabled, Crash: n.out.crash, Log: n.logger})
	if err == nil {
		n.loops = append(n.loops, n.outbox.Loops()...)
	}
	return err
}

// chats are where Telegram reaches an owner.
func (n *node) chats(ctx context.Context, owner string) ([]push.Target, error) {
	if n.Push.Telegram.ChatID == 0 {
		return nil, nil
	}
	chat := strconv.FormatInt(n.Push.Telegram.ChatID, 10)
	whose, ok, err := n.chatOwners.Owner(ctx, chat)
	if err != nil || !ok || whose != owner {
		return nil, err
	}
	return []push.Target{{Address: chat}}, nil
}

// sets are what lives whole at the authority and is copied whole by the other.
func (n *node) sets() []link.Set {
	accounts := link.Set{Name: "accounts", Path: "accounts", Generation: n.users.Generation, Export: n.users.Export, Import: n.importAccounts}
	tokens := link.Set{Name: "tokens", Path: "push-tokens", Generation: n.tokens.Generation, Export: n.tokens.Export, Import: n.tokens.Import}
	return []link.Set{accounts, tokens}
}

// importAccounts takes the authority's accounts over. One that was put back is given
// those that are newer here, and what comes of it is taken over with the next poll. Of two
// accounts with one address nobody can tell whose rows are whose: that is for pairing, and
// until then all others go on.
func (n *node) importAccounts(ctx context.Context, generation string, body []byte) error {
	err := n.users.Import(ctx, generation, body)
	if !errors.Is(err, users.ErrPutBack) {
		return err
	}
	held, failed := n.users.Carry(ctx, nil)
	if failed == nil {
		failed = n.peer.Call(ctx, http.MethodPost, "accounts", json.RawMessage(held), nil)
	}
	if failed != nil && errors.Unwrap(err) != nil {
		return err // it names the addresses that keep accounts from going back
	}
	if failed != nil {
		return users.ErrPutBack.Because(failed)
	}
	n.logger.WarnContext(ctx, "the other node's accounts were older than those here, or some were missing: it has them all again", "peer", n.Peer.Name)
	return nil
}

func (n *node) hello() link.Hello {
	return link.Hello{
		Node: n.Node.Name, Origin: int64(n.Node.Origin), Incarnation: n.log.Incarnation(),
		Protocol: link.Protocol, Version: version(), Scheduler: string(n.Scheduler.Mode), Now: n.out.now().UnixMilli(), SecretAt: n.keys.Place(), Process: n.process,
	}
}

func (n *node) services() api.Services {
	s := api.Services{
		DB: n.folder.todos, Users: n.users, Settings: n.settings, Todos: n.todos, Scheduler: n.messages,
		Tokens: n.tokens, Replica: n.log, Letters: n.letters, Mute: n.reachesNobody(), Ready: n.ready, Secret: n.folder.secret, Version: version(), Crash: n.out.crash, Log: n.logger,
	}
	if n.Peer.On() && n.Node.Origin == 1 {
		n.server = link.NewServer(link.ServerOptions{
			Log: n.log, Name: n.Peer.Name, Sets: n.sets(), Letters: n.letters, Hello: n.hello, Stop: n.polling, Crash: n.out.crash, Logger: n.logger,
			Calls: append(n.pairing.Calls(), link.Taking("push-tokens", n.tokens.Receive), link.Taking("push-tokens/unregistered", n.tokens.Unregistered),
				link.Taking("accounts", func(ctx context.Context, body json.RawMessage) error { return n.users.TakeIn(ctx, body) })),
		})
		n.loops = append(n.loops, n.server.Loop())
		n.keepContact()
		s.Compare = n.server.CompareSoon
		s.Peer = &api.Peer{Name: n.Peer.Name, Match: n.letsIn, Pairing: n.pairing.Admit, Server: n.door(n.server), TurnedAway: n.server.TurnedAway}
	}
	if n.client != nil {
		s.Compare = n.client.CompareSoon
	}
	if n.contact != nil {
		s.Link = n.linkState
	}
	return s
}

// keepContact has the node keep in mind when it and its peer were last in touch.
func (n *node) keepContact() {
	n.contact = contact.New(contact.Options{
		DB: n.folder.todos, Outbox: n.outbox, Node: n.Node.Name, Peer: n.Peer.Name, Status: n.endStatus, Admin: n.users.FirstAdmin, Zone: n.zone,
	})
	n.loops = append(n.loops, n.contact.Loop(n.logger))
}

func (n *node) ready(ctx context.Context) error {
	for _, db := range []*sqlite.DB{n.folder.todos, n.folder.users} {
		if _, err := sqlite.Read(ctx, db, func(tx *sqlite.Tx) (int, error) {
			v, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM sqlite_schema`)
			return v, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// upkeep forgets what has had its time, a little in each transaction.
func (n *node) upkeep(ctx context.Context) error {
	failed := []error{n.users.PurgeExpired(ctx), n.tellOrphans(ctx)}
	if _, err := n.log.Retry(ctx, ""); err != nil {
		failed = append(failed, err)
	}
	blank := func(tx *sqlite.Tx) (bool, error) { return n.log.BlankTx(tx, !n.Peer.On() || n.parting.Parted()) }
	for _, purge := range []func(*sqlite.Tx) (bool, error){sqlite.PurgeKeysTx, push.PurgeTx, letters.PurgeTx, n.log.PurgeFactsTx, blank} {
		for more := true; more && ctx.Err() == nil; {
			err := n.folder.todos.Write(ctx, func(tx *sqlite.Tx) (err error) {
				more, err = purge(tx)
				return err
			})
			if err != nil {
				failed, more = append(failed, err), false
			}
		}
	}
	return errors.Join(failed...)
}
