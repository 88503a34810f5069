package push

import (
	"context"

	"tandem/internal/sqlite"
)

// Chats knows whose a chat of the configuration is.
type Chats struct {
	db         *sqlite.DB
	firstAdmin func(context.Context) (string, bool, error)
}

// NewChats returns the store of one node.
func NewChats(db *sqlite.DB, firstAdmin func(context.Context) (string, bool, error)) *Chats {
	return &Chats{db, firstAdmin}
}

// Owner returns whose a chat is, and whether it is anybody's yet. It becomes the first
// admin's when it is first asked for, and stays theirs whoever is the first one later:
// what is said to one person must not reach another.
func (c *Chats) Owner(ctx context.Context, chat string) (owner string, found bool, err error) {
	owner, found, err = sqlite.ReadOne(ctx, c.db, sqlite.Value[string], `SELECT owner FROM push_chats WHERE chat = ?`, chat)
	if err != nil || found {
		return owner, found, err
	}
	admin, found, err := c.firstAdmin(ctx)
	if err != nil || !found {
		return "", false, err
	}
	err = c.db.Write(ctx, func(tx *sqlite.Tx) error {
		if _, err := tx.Exec(`INSERT INTO push_chats (chat, owner) VALUES (?, ?) ON CONFLICT DO NOTHING`, chat, admin); err != nil {
			return err
		}
		owner, _, err = sqlite.One(tx, sqlite.Value[string], `SELECT owner FROM push_chats WHERE chat = ?`, chat)
		return err
	})
	return owner, err == nil, err
}
