package letters

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// ErrUnknownKind is what Handle returns for a letter of a kind that this version
// does not know. It is parked, and tried again when the node has been started anew.
var ErrUnknownKind = fault.New(fault.Invalid, "letter_of_unknown_kind", "The other node is newer than this one and asks for something that only a newer version can do.")

// ErrPutBack is what Receive returns where this file has lost letters: their sender is
// to offer them again.
var ErrPutBack = errors.New("this file was put back to before letters that it acked")

// Receive takes letters from the other node, in their order, and returns the keys to
// ack: of those that acted now or before, and of those that were parked.
//
// After names the letter that this node acked last. Where it is not known here none of
// these is taken: who has one letter has all that were acked before it was sent, so that
// the last one speaks for all of them.
//
// Each has a transaction, in which its key is noted and Handle called: a crash
// leaves both or neither. Where Handle returns a fault that another try would meet
// again (malformed, invalid, not found, conflict, stale, too large), the letter is
// parked and the next one goes on. Any other error stops the later letters of its
// owner, and of nobody else; they are not acked, and so come again. Receive returns
// these errors, each once: wait a while before the next call.
func (b *Box) Receive(ctx context.Context, after string, letters []Letter) (ack []string, err error) {
	if known, err := b.Has(ctx, after); err != nil || !known {
		return nil, cmp.Or(err, ErrPutBack)
	}
	if !b.reopened.Load() {
		if err = b.reopen(ctx); err == nil {
			b.reopened.Store(true)
		}
	}
	stopped := map[string]bool{}
	for _, l := range letters {
		if l.Key == "" {
			err = errors.Join(err, ErrMalformed.Because(errors.New("a letter without a key, which cannot be acked")))
			continue
		}
		if stopped[l.Owner] {
			continue
		}
		failed := b.take(ctx, l)
		switch {
		case failed == nil:
			ack = append(ack, l.Key)
		case ctx.Err() != nil:
			return ack, ctx.Err()
		default:
			stopped[l.Owner] = true
			err = errors.Join(err, fmt.Errorf("letter %.200q: %w", l.Key, failed))
		}
	}
	return ack, err
}

// take has a letter act, or parks it, unless that was done before.
func (b *Box) take(ctx context.Context, l Letter) error {
	cause := l.check()
	if cause == nil {
		cause = b.db.Write(ctx, func(tx *sqlite.Tx) error {
			isNew, err := noteTx(tx, l.Key)
			if err != nil || !isNew {
				return err
			}
			return b.Handle(tx, l)
		})
	}
	if !lasting(cause) {
		return cause
	}
	return b.db.Write(ctx, func(tx *sqlite.Tx) error {
		isNew, err := noteTx(tx, l.Key)
		if err != nil || !isNew {
			return err
		}
		return parkTx(tx, l, cause)
	})
}

// noteTx notes that a letter was taken, and reports whether it was not before.
func noteTx(tx *sqlite.Tx, key string) (bool, error) {
	n, err := tx.Exec(`INSERT INTO letters_taken (key) VALUES (unhex(?)) ON CONFLICT (key) DO NOTHING`, short(key))
	return n > 0, err
}

// short names a letter by its key in 32 digits.
func short(key string) string {
	hash := sha256.Sum256([]byte(key))
	return hex.EncodeToString(hash[:16])
}

// Has reports whether the letter that an after names was taken here. An empty one names
// none, and is known.
func (b *Box) Has(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return true, nil
	}
	_, found, err := sqlite.ReadOne(ctx, b.db, sqlite.Value[int], `SELECT 1 FROM letters_taken WHERE key = unhex(?)`, name)
	return found, err
}

// lasting reports whether an error would be met again by each later try.
func lasting(err error) bool {
	if err == nil {
		return false
	}
	switch fault.From(err).Kind {
	case fault.Malformed, fault.Invalid, fault.NotFound, fault.Conflict, fault.Stale, fault.TooLarge:
		return true
	}
	return false
}
