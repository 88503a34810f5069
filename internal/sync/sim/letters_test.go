package sim

import (
	"encoding/json"
	"errors"
	"fmt"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync/letters"
)

// posted is a letter that was sent, however often.
type posted struct {
	from *node
	kind string
}

// post has a node send a letter; now and then one that it sent before.
func (w *world) post() {
	n, key := w.pick(), fmt.Sprint("letter", w.rand.IntN(12))
	if l, ok := w.posted[key]; ok {
		n = l.from
	} else {
		w.posted[key] = posted{n, oneOf(w, "message", "message", "answer", "nonsense")}
	}
	l := letters.Letter{Key: key, Owner: oneOf(w, "ann", "bob"), Kind: w.posted[key].kind, Body: json.RawMessage(`{"say":"` + key + `"}`)}
	n.write(func(tx *sqlite.Tx) error { return n.box.SendTx(tx, l) })
	w.tell("%s sends the %s %s", n, l.Kind, key)
}

var errNonsense = fault.New(fault.Invalid, "nonsense", "Nobody can do that.")

// act is what a letter does at its reader, once: it may fail now and be taken later,
// or not be taken at all.
func (n *node) act(tx *sqlite.Tx, l letters.Letter) error {
	if n.w.fault(n.w.odds.lose) {
		return errors.New("not now")
	}
	if l.Kind == "nonsense" {
		return errNonsense
	}
	_, err := tx.Exec(`INSERT INTO sim_acts (key) VALUES (?)`, l.Key)
	return err
}

// exchange has the letters cross both ways.
func (w *world) exchange() { _ = w.exchangeNow() }

func (w *world) exchangeNow() error {
	w.tell("%s exchanges letters", w.nodes[0])
	err := w.nodes[0].client.Exchange(ctx)
	w.note(err)
	return err
}

// checkLetters is invariant 13: each letter that its sender still has has acted once
// in the file of its reader, or was parked there; none has acted twice.
func (w *world) checkLetters() {
	for _, n := range w.nodes {
		acts := map[string]int{}
		for _, key := range all(n, sqlite.Value[string], `SELECT key FROM sim_acts UNION ALL SELECT key FROM letters_parked`) {
			if acts[key]++; acts[key] > 1 {
				w.fail("invariant 13: %s has acted twice at %s", key, n)
			}
		}
		for _, key := range all(n.peer(), sqlite.Value[string], `SELECT key FROM letters_sent`) {
			if acts[key] == 0 && w.posted[key].from == n.peer() {
				w.fail("invariant 13: %s has not acted at %s", key, n)
			}
		}
	}
}
