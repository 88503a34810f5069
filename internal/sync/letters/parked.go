package letters

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// Parked is a letter that could not be applied, or not sent, as people are told of it.
// It does not hold what the letter says.
type Parked struct {
	Key    string `json:"key"`
	Owner  string `json:"owner"`
	Kind   string `json:"kind"`
	Code   string `json:"code"`   // of the fault
	Detail string `json:"detail"` // for people
	At     int64  `json:"at"`     // Unix ms
}

// Waits reports whether the letter is tried again, by a newer version.
func (p Parked) Waits() bool { return p.Code == ErrUnknownKind.Code }

// Mend says what a person may do about it; node is what to call the one that parked it.
func (p Parked) Mend(node string) string {
	switch p.Code {
	case ErrUnknownKind.Code:
		return "Upgrade " + node + ": the letter is tried again when it has been started anew."
	case ErrMalformed.Code:
		return "It is not tried again. Let both nodes run the same version, and say what it said anew."
	}
	return "It is not tried again. What it was for can be done anew on either node."
}

// Parked returns the newest that were parked in the last 30 days.
func (b *Box) Parked(ctx context.Context, limit int) ([]Parked, error) {
	return sqlite.ReadAll(ctx, b.db, scanParked, selectParked+` ORDER BY n DESC LIMIT ?`, limit)
}

// CountParked returns how many there are.
func (b *Box) CountParked(ctx context.Context) (int, error) {
	n, _, err := sqlite.ReadOne(ctx, b.db, sqlite.Value[int], `SELECT count(*) FROM letters_parked`)
	return n, err
}

// ParkedAmong returns those of the letters of these keys that were parked: an ack says
// why nothing came of a letter.
func (b *Box) ParkedAmong(ctx context.Context, keys []string) ([]Parked, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	return sqlite.ReadAll(ctx, b.db, scanParked, selectParked+` WHERE key IN (SELECT value FROM json_each(?)) ORDER BY n`, string(list))
}

const selectParked = `SELECT key, owner, kind, code, detail, parked_at FROM letters_parked`

func scanParked(r sqlite.Row) (p Parked, err error) {
	return p, r.Scan(&p.Key, &p.Owner, &p.Kind, &p.Code, &p.Detail, &p.At)
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

// reopen tries the letters of kinds that were not known when they came: this version
// may be a newer one.
func (b *Box) reopen(ctx context.Context) (failed error) {
	type kept struct {
		Letter
		n int64
	}
	all, err := sqlite.ReadAll(ctx, b.db, func(r sqlite.Row) (k kept, err error) {
		var body []byte
		err = r.Scan(&k.n, &k.Key, &k.Owner, &k.Kind, &body)
		k.Body = body
		return k, err
	}, `SELECT n, key, owner, kind, body FROM letters_parked WHERE code = ? ORDER BY n`, ErrUnknownKind.Code)
	if err != nil {
		return err
	}
	for _, k := range all {
		err := b.db.Write(ctx, func(tx *sqlite.Tx) error {
			n, err := tx.Exec(`DELETE FROM letters_parked WHERE n = ?`, k.n)
			if err != nil || n == 0 {
				return err
			}
			return b.Handle(tx, k.Letter)
		})
		if lasting(err) && !errors.Is(err, ErrUnknownKind) {
			err = b.db.Write(ctx, func(tx *sqlite.Tx) error {
				code, detail := reason(err)
				_, err := tx.Exec(`UPDATE letters_parked SET code = ?, detail = ? WHERE n = ?`, code, detail, k.n)
				return err
			})
		}
		if !errors.Is(err, ErrUnknownKind) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
