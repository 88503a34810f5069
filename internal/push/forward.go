package push

import (
	"context"
	"fmt"
	"net/http"

	"tandem/internal/loop"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// Caller reaches the authority. A link.Peer does.
type Caller interface {
	Call(ctx context.Context, method, path string, in, out any) error
}

// forwardBatch keeps one call well below a body of 1 MiB.
const forwardBatch = 100

// Forwarded is what changed at the node that copies: the body of POST push-tokens.
type Forwarded struct {
	Registrations []Registered `json:"registrations,omitempty"`
	Forgotten     []Forgotten  `json:"forgotten,omitempty"`
}

// Forgotten is a device that is to ring no more: it voids the owner's registrations
// of it up to At, or everybody's.
type Forgotten struct {
	Owner    string `json:"owner,omitempty"` // empty: everybody, as the device was the owner's to forget
	DeviceID string `json:"device_id"`
	At       int64  `json:"at"` // Unix ms
}

// Lapsed is a registration that the push service gave up; the body of POST
// push-tokens/unregistered is a list of them.
type Lapsed struct {
	TokenSHA256  string   `json:"sha256"` // hexadecimal
	Registration sync.UID `json:"registration"`
}

// ForwardLoop returns what tells the authority of changes made here, woken by each
// of them. It is made before the node runs, at the node that copies.
func (t *Tokens) ForwardLoop(authority Caller) *loop.Loop {
	t.forward = loop.New("push-tokens", loop.Longest, t.o.Log, func(ctx context.Context) error { return t.Forward(ctx, authority) })
	return t.forward
}

// Forward tells the authority of all that changed here. Each change stays in the
// file until it was confirmed, and is told again after a crash; told twice, it is
// done once.
func (t *Tokens) Forward(ctx context.Context, authority Caller) error {
	for {
		f, lapsed, err := t.waiting(ctx)
		if err != nil || len(f.Registrations)+len(f.Forgotten)+len(lapsed) == 0 {
			return err
		}
		if len(f.Registrations)+len(f.Forgotten) > 0 {
			if err := authority.Call(ctx, http.MethodPost, "push-tokens", f, nil); err != nil {
				return err
			}
		}
		// After the registrations: one of them may have died since.
		if len(lapsed) > 0 {
			if err := authority.Call(ctx, http.MethodPost, "push-tokens/unregistered", lapsed, nil); err != nil {
				return err
			}
		}
		if err := t.confirm(ctx, f, lapsed); err != nil {
			return err
		}
	}
}

func (t *Tokens) waiting(ctx context.Context) (f Forwarded, lapsed []Lapsed, err error) {
	_, err = sqlite.Read(ctx, t.db, func(tx *sqlite.Tx) (_ struct{}, err error) {
		if f.Registrations, err = sqlite.All(tx, scanRegistered, `
			SELECT `+registeredColumns+` FROM push_tokens WHERE pending_at IS NOT NULL ORDER BY pending_at LIMIT ?`, forwardBatch); err != nil {
			return
		}
		if f.Forgotten, err = sqlite.All(tx, func(r sqlite.Row) (v Forgotten, err error) {
			return v, r.Scan(&v.Owner, &v.DeviceID, &v.At)
		}, `SELECT owner, device_id, forgotten_at FROM push_forgotten ORDER BY owner, device_id LIMIT ?`, forwardBatch); err != nil {
			return
		}
		lapsed, err = sqlite.All(tx, func(r sqlite.Row) (v Lapsed, err error) {
			return v, r.Scan(&v.Registration, &v.TokenSHA256)
		}, `SELECT registration, token_sha256 FROM push_unregistered ORDER BY registration LIMIT ?`, forwardBatch)
		return
	})
	return f, lapsed, err
}

// confirm takes down what the authority has. What changed again meanwhile stays.
func (t *Tokens) confirm(ctx context.Context, f Forwarded, lapsed []Lapsed) error {
	return t.db.Write(ctx, func(tx *sqlite.Tx) error {
		t.confirmed.Add(1) // within the transaction, so that no import slips in before
		for _, r := range f.Registrations {
			if _, err := tx.Exec(`UPDATE push_tokens SET pending_at = NULL WHERE registration = ?`, r.Registration[:]); err != nil {
				return err
			}
		}
		for _, g := range f.Forgotten {
			if _, err := tx.Exec(`DELETE FROM push_forgotten WHERE owner = ? AND device_id = ? AND forgotten_at = ?`, g.Owner, g.DeviceID, g.At); err != nil {
				return err
			}
		}
		for _, d := range lapsed {
			if _, err := tx.Exec(`DELETE FROM push_unregistered WHERE registration = ?`, d.Registration[:]); err != nil {
				return err
			}
		}
		return ForgetGenerationTx(tx) // the authority may have kept a newer one instead
	})
}

// Receive applies what the other node forwarded, all of it or, with bad_push_tokens,
// nothing. Of two registrations of one device the younger stays, also against one
// that was made here.
func (t *Tokens) Receive(ctx context.Context, f Forwarded) error {
	if err := t.own(); err != nil {
		return err
	}
	for i, r := range f.Registrations {
		if !r.sound() {
			return errBadTokens.Because(fmt.Errorf("registration %d", i))
		}
	}
	for i, g := range f.Forgotten {
		if !visible(g.DeviceID, 128) || g.At < 1 {
			return errBadTokens.Because(fmt.Errorf("forgotten %d", i))
		}
	}
	return t.db.Write(ctx, func(tx *sqlite.Tx) error {
		changed := false
		for _, g := range f.Forgotten {
			went, err := forgetTx(tx, g)
			if err != nil {
				return err
			}
			changed = changed || went
		}
		for _, r := range f.Registrations {
			came, err := receiveTx(tx, r)
			if err != nil {
				return err
			}
			changed = changed || came
		}
		if changed {
			tx.AfterCommit(t.changed)
		}
		return pruneTx(tx)
	})
}

// receiveTx applies a registration, and reports whether that changed anything. One
// that is void by now still ended what was older.
func receiveTx(tx *sqlite.Tx, r Registered) (bool, error) {
	_, older, err := sqlite.One(tx, sqlite.Value[int], `
		SELECT 1 FROM push_tokens WHERE (token = ? OR device_id = ?) AND (updated_at, registration) >= (?, ?)`,
		r.Token, r.DeviceID, r.UpdatedAt, r.Registration[:])
	if err != nil || older {
		return false, err
	}
	_, void, err := sqlite.One(tx, sqlite.Value[int], `
		SELECT 1 FROM push_forgotten WHERE owner IN (?, '') AND device_id = ? AND forgotten_at >= ?
		UNION ALL
		SELECT 1 FROM push_unregistered WHERE registration = ?`,
		r.Owner, r.DeviceID, r.UpdatedAt, r.Registration[:])
	if err != nil {
		return false, err
	}
	if void {
		return forgetTx(tx, Forgotten{DeviceID: r.DeviceID, At: r.UpdatedAt})
	}
	return true, replaceTx(tx, r, nil)
}

// Unregistered forgets registrations that the other node found dead. A newer one of
// the same device stays.
func (t *Tokens) Unregistered(ctx context.Context, lapsed []Lapsed) error {
	if err := t.own(); err != nil {
		return err
	}
	return t.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, d := range lapsed {
			if err := t.lapseTx(tx, d); err != nil {
				return err
			}
		}
		return pruneTx(tx)
	})
}
