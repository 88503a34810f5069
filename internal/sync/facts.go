package sync

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"tandem/internal/sqlite"
)

// FactsTable is the name under which facts travel.
const FactsTable = "facts"

// maxBody is larger than a row: a fact may tell of one.
const maxBody = maxText + 8<<10

// Fact is something that happened. It is told once, by the node that saw it, and
// never changed; what a person sees of a fire is the fold of its facts.
type Fact struct {
	UID     UID             `json:"uid"`
	Seq     int64           `json:"-"`
	Kind    string          `json:"kind"`
	Subject string          `json:"subject"`
	Owner   string          `json:"owner"`
	Node    string          `json:"node"`
	At      int64           `json:"at"`
	Body    json.RawMessage `json:"body"`
}

const factColumns = `uid, seq, kind, subject, owner, node, at, body`

func scanFact(r sqlite.Row) (f Fact, err error) {
	var body string
	err = r.Scan(&f.UID, &f.Seq, &f.Kind, &f.Subject, &f.Owner, &f.Node, &f.At, &body)
	f.Body = json.RawMessage(body)
	return f, err
}

// FactTx tells a fact of this node, in the transaction of what happened, and
// reports whether it was new. Key sets it apart from others of its kind and
// subject, such as the number of an attempt.
func (l *Log) FactTx(tx *sqlite.Tx, kind, subject, owner, key string, body any) (bool, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return false, fmt.Errorf("fact %s: %w", kind, err)
	}
	f := Fact{
		UID: KeyedUID(kind, subject, l.node, key), Kind: kind, Subject: subject, Owner: owner,
		Node: l.node, At: clock(tx), Body: canonical(b),
	}
	if err := f.check(); err != nil { // the peer would refuse it, and all that comes after it
		return false, fmt.Errorf("fact %s: %w", kind, err)
	}
	return l.addFact(tx, f)
}

// addFact stores a fact unless it is here. Two facts of one uid that differ come
// from one event told twice; one of them stays, on both nodes the same.
func (l *Log) addFact(tx *sqlite.Tx, f Fact) (bool, error) {
	mine, known, err := sqlite.One(tx, scanFact, `SELECT `+factColumns+` FROM facts WHERE uid = ?`, f.UID[:])
	if err != nil {
		return false, err
	}
	if known && !f.outlasts(mine) {
		return false, nil
	}
	_, err = tx.Exec(`
		INSERT INTO facts (`+factColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (uid) DO UPDATE SET seq = excluded.seq, kind = excluded.kind, subject = excluded.subject,
			owner = excluded.owner, node = excluded.node, at = excluded.at, body = excluded.body`,
		f.UID[:], l.seqTx(tx), f.Kind, f.Subject, f.Owner, f.Node, f.At, string(f.Body))
	return err == nil && !known, err
}

// outlasts reports whether f stays where the other one is: the later, so that one told
// under a clock of last year is not let go as too old, then the one of the larger hash.
func (f Fact) outlasts(other Fact) bool {
	if f.At != other.At {
		return f.At > other.At
	}
	x, y := f.hash(), other.hash()
	return bytes.Compare(x[:], y[:]) > 0
}

func (f Fact) hash() [sha256.Size]byte {
	b, err := json.Marshal(f)
	if err != nil {
		panic("sync: a fact did not marshal: " + err.Error())
	}
	return sha256.Sum256(b)
}

func (f Fact) check() error {
	switch {
	case f.UID == UID{}, f.Kind == "", f.Node == "", f.At < 1, len(f.Body) == 0:
		return errors.New("not a fact")
	case f.At > lastStamp:
		return errTooLate
	case !plain(f.Kind), !plain(f.Subject), !plain(f.Owner), !plain(f.Node), !utf8.Valid(f.Body), !json.Valid(f.Body):
		return errors.New("not plain text")
	case weight(f.Body) > maxBody:
		return fmt.Errorf("%d bytes; at most %d", weight(f.Body), maxBody)
	}
	return nil
}

// FactsTx returns what is known of a subject, oldest first.
func FactsTx(tx *sqlite.Tx, subject string) ([]Fact, error) {
	return sqlite.All(tx, scanFact, `SELECT `+factColumns+` FROM facts WHERE subject = ? ORDER BY at, uid`, subject)
}
