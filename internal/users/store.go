// Package users keeps the accounts, and who is logged in. One node is the authority
// for accounts; the other holds a copy of the whole directory, so that a login works
// on either while the link is cut. Sessions belong to the node that gave them out.
package users

import (
	"context"
	"log/slog"
	"sync/atomic"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// Options say which part this node plays.
type Options struct {
	Authority    bool   // accounts are changed here and nowhere else
	AuthorityURL string // where they are changed instead, for people to read
	Hasher       *Hasher
	Log          *slog.Logger

	// OnChange, when set, runs after each commit that gave the directory another
	// generation. It runs on the writer: it wakes others and returns.
	OnChange func()
}

// Store is the accounts and sessions of one node.
type Store struct {
	db       *sqlite.DB
	o        Options
	cache    *cache
	disabled atomic.Pointer[[]string]
	unjoined atomic.Bool
	clashing atomic.Pointer[[]string] // on the authority
}

// NewStore opens the accounts in db. On the authority each start begins another
// incarnation of the directory: what a restored file then says differs from all that
// the lost one had said, though it may count to the same number. So its file must be
// open for writing.
func NewStore(ctx context.Context, db *sqlite.DB, o Options) (*Store, error) {
	s := &Store{db: db, o: o, cache: newCache()}
	if o.Authority {
		err := db.Write(ctx, func(tx *sqlite.Tx) error {
			return holdTx(tx, generation{incarnation: tx.NewID()}, true)
		})
		if err != nil {
			return nil, err
		}
	}
	ids, err := sqlite.Read(ctx, db, disabledTx)
	if err != nil {
		return nil, err
	}
	s.disabled.Store(&ids)
	unjoined, err := sqlite.Read(ctx, db, unjoinedTx)
	s.unjoined.Store(unjoined && !o.Authority)
	return s, err
}

// Find returns the account of an address as people type it; user_not_found where
// there is none.
func (s *Store) Find(ctx context.Context, typed string) (Account, error) {
	email, _ := normalEmail(typed)
	a, found, err := s.find(ctx, `SELECT `+accountColumns+` FROM users WHERE email = ?`, email)
	if err == nil && !found {
		err = errNoUser
	}
	return a, err
}

// FirstAdmin returns the oldest account that is an admin, banned or not.
func (s *Store) FirstAdmin(ctx context.Context) (id string, found bool, err error) {
	a, found, err := s.find(ctx, `
		SELECT `+accountColumns+`
		FROM users
		WHERE role = 'admin'
		ORDER BY created_at, id
		LIMIT 1`)
	return a.ID, found, err
}

func (s *Store) find(ctx context.Context, query string, args ...any) (account Account, found bool, err error) {
	account, err = sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) (a Account, err error) {
		a, found, err = sqlite.One(tx, scanAccount, query, args...)
		return a, err
	})
	return account, found, err
}

// Disabled returns the ids of the accounts that are banned, sorted, as of the last
// commit. It reads memory only. The slice is shared: not to be changed.
func (s *Store) Disabled() []string { return *s.disabled.Load() }

func disabledTx(tx *sqlite.Tx) ([]string, error) {
	return sqlite.All(tx, sqlite.Value[string], `
		SELECT id
		FROM users
		WHERE disabled_at IS NOT NULL
		ORDER BY id`)
}

// own refuses a change to accounts where they live elsewhere.
func (s *Store) own() error {
	if s.o.Authority {
		return nil
	}
	return fault.New(fault.Conflict, "accounts_live_elsewhere", "Accounts are kept by the other node. Do this at %s.", s.o.AuthorityURL)
}

// changedTx makes the accounts' change known: at once in this node's memory, and to
// the peer by the generation g.
func (s *Store) changedTx(tx *sqlite.Tx, g generation) error {
	if err := holdTx(tx, g, s.o.Authority); err != nil {
		return err
	}
	ids, err := disabledTx(tx)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() {
		s.disabled.Store(&ids)
		s.unjoined.Store(false) // on either part: they are the authority's now
		s.cache.clear()
		if s.o.OnChange != nil {
			s.o.OnChange()
		}
	})
	return nil
}
