package sqlite

import (
	"bytes"
	"time"

	"tandem/internal/fault"
)

// KeysKept is how long a request's key answers with the first answer.
const KeysKept = 7 * 24 * time.Hour

// ErrKeyReused refuses a key that came before with another body.
var ErrKeyReused = fault.New(fault.Invalid, "idempotency_key_reused", "This Idempotency-Key was used with another body. Use a new key for a new request.")

// Request is what an idempotency key is unique within, and what it stands for.
type Request struct {
	Owner string
	Route string // method and pattern, such as "POST /v1/todos"
	Key   string
	Body  []byte // a keyed hash of the canonical body
}

// OnceTx runs fn unless the request has been answered within KeysKept; then it
// returns that answer and true. The answer commits with the effect of fn: a crash
// leaves both or neither. An fn that fails leaves no trace, so that a request
// refused today may be repeated tomorrow.
func OnceTx(tx *Tx, r Request, fn func() ([]byte, error)) ([]byte, bool, error) {
	type kept struct{ answer, body []byte }
	scan := func(row Row) (k kept, err error) { return k, row.Scan(&k.answer, &k.body) }
	old, found, err := One(tx, scan, `
		SELECT answer, body FROM idempotency
		WHERE owner = ? AND route = ? AND key = ? AND at > ?`, r.Owner, r.Route, r.Key, tx.Millis()-KeysKept.Milliseconds())
	switch {
	case err != nil:
		return nil, false, err
	case found && !bytes.Equal(old.body, r.Body):
		return nil, false, ErrKeyReused
	case found:
		return old.answer, true, nil
	}
	answer, err := fn()
	if err != nil {
		return nil, false, err
	}
	_, err = tx.Exec(`
		INSERT INTO idempotency (owner, route, key, body, answer, at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (owner, route, key) DO UPDATE SET
			body = excluded.body, answer = excluded.answer, at = excluded.at`,
		r.Owner, r.Route, r.Key, r.Body, answer, tx.Millis())
	return answer, false, err
}

// PurgeKeysTx forgets keys older than KeysKept, a bounded number at a time so that
// no writer waits long, and reports whether there may be more.
func PurgeKeysTx(tx *Tx) (bool, error) {
	const some = 500
	n, err := tx.Exec(`
		DELETE FROM idempotency WHERE rowid IN (SELECT rowid FROM idempotency WHERE at <= ? LIMIT ?)`,
		tx.Millis()-KeysKept.Milliseconds(), some)
	return n == some, err
}

// MoveKeysTx makes the requests of one owner another's, for each pair in moved.
func MoveKeysTx(tx *Tx, moved map[string]string) error {
	for from, to := range moved {
		if _, err := tx.Exec(`UPDATE OR REPLACE idempotency SET owner = ? WHERE owner = ?`, to, from); err != nil {
			return err
		}
	}
	return nil
}
