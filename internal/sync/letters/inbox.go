package letters

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

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

func parkTx(tx *sqlite.Tx, l Letter, cause error) error {
	body := []byte(l.Body)
	if body == nil || len(body) > MaxBody && l.check() != nil {
		body = []byte{}
	}
	code, detail := reason(cause)
	_, err := tx.Exec(`INSERT INTO letters_parked (key, owner, kind, body, code, detail, parked_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		brief(l.Key), brief(l.Owner), brief(l.Kind), body, code, detail, tx.Millis())
	return err
}

// reason is what people are told of a fault: what they would read of it, and of a
// letter that is malformed in which way.
func reason(cause error) (code, detail string) {
	f := fault.From(cause)
	if errors.Is(f, ErrMalformed) && f.Unwrap() != nil {
		return f.Code, f.Detail + " " + f.Unwrap().Error()
	}
	return f.Code, f.Detail
}

// brief makes any text fit for a column.
func brief(s string) string {
	s = s[:min(len(s), MaxName)]
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Parked is a letter that could not be applied, or not sent.
type Parked struct {
	Letter
	Code   string // of the fault
	Detail string // for people
	At     int64  // Unix ms
	n      int64
}

// Parked returns the newest that were parked in the last 30 days.
func (b *Box) Parked(ctx context.Context, limit int) ([]Parked, error) {
	return sqlite.ReadAll(ctx, b.db, scanParked, selectParked+` ORDER BY n DESC LIMIT ?`, limit)
}

const selectParked = `SELECT key, owner, kind, body, code, detail, parked_at, n FROM letters_parked`

func scanParked(r sqlite.Row) (p Parked, err error) {
	var body []byte
	err = r.Scan(&p.Key, &p.Owner, &p.Kind, &body, &p.Code, &p.Detail, &p.At, &p.n)
	p.Body = body
	return p, err
}

// reopen tries the letters of kinds that were not known when they came: this version
// may be a newer one.
func (b *Box) reopen(ctx context.Context) (failed error) {
	all, err := sqlite.ReadAll(ctx, b.db, scanParked, selectParked+` WHERE code = ? ORDER BY n`, ErrUnknownKind.Code)
	if err != nil {
		return err
	}
	for _, p := range all {
		err := b.db.Write(ctx, func(tx *sqlite.Tx) error {
			n, err := tx.Exec(`DELETE FROM letters_parked WHERE n = ?`, p.n)
			if err != nil || n == 0 {
				return err
			}
			return b.Handle(tx, p.Letter)
		})
		if lasting(err) && !errors.Is(err, ErrUnknownKind) {
			err = b.db.Write(ctx, func(tx *sqlite.Tx) error {
				code, detail := reason(err)
				_, err := tx.Exec(`UPDATE letters_parked SET code = ?, detail = ? WHERE n = ?`, code, detail, p.n)
				return err
			})
		}
		if !errors.Is(err, ErrUnknownKind) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
