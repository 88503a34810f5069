package push

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// errBadTokens is met by its code; its cause says what was wrong, and no value.
var errBadTokens = fault.New(fault.Malformed, "bad_push_tokens", "What the other node sent of push tokens cannot be used; those held here stay.")

// tokenSet is the whole of what crosses.
type tokenSet struct {
	Tokens []Registered `json:"tokens"`
	Life   string       `json:"life,omitempty"` // of the authority's database: another one may have forgotten what the last one held
}

// Generation names the state of the set that is here; empty where none has come, or where
// it must be asked for again. At the authority it is a hash of the content: no
// restart or restore can give one name to two contents.
func (t *Tokens) Generation(ctx context.Context) (string, error) {
	if t.o.Authority {
		generation, _, err := t.Export(ctx)
		return generation, err
	}
	t.asked.Store(t.confirmed.Load())
	return sqlite.Read(ctx, t.db, func(tx *sqlite.Tx) (string, error) {
		generation, _, err := sqlite.One(tx, sqlite.Value[string], `SELECT generation FROM push_tokens_held`)
		return generation, err
	})
}

// Export returns the whole set as JSON, tokens included, and the generation that
// names it. It is the authority's to give.
func (t *Tokens) Export(ctx context.Context) (generation string, body []byte, err error) {
	if err := t.own(); err != nil {
		return "", nil, err
	}
	set, err := sqlite.Read(ctx, t.db, func(tx *sqlite.Tx) (s tokenSet, err error) {
		s.Life = t.o.Life()
		s.Tokens, err = sqlite.All(tx, scanRegistered, `SELECT `+registeredColumns+` FROM push_tokens ORDER BY device_id`)
		return s, err
	})
	if err != nil {
		return "", nil, err
	}
	if set.Tokens == nil {
		set.Tokens = []Registered{} // an empty list, which null is not
	}
	body, err = json.Marshal(set)
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16]), body, err
}

// Import makes the set that came from the authority the one held here, in one
// commit. What the authority does not know yet stays: a registration made here is
// kept, and one that was forgotten or found dead here does not come back. Where the
// authority has begun another life, what the set lacks is what it may have lost: that
// stays too, and goes to the authority once more. A body that is not a whole set is
// bad_push_tokens and changes nothing.
func (t *Tokens) Import(ctx context.Context, generation string, body []byte) error {
	if t.o.Authority {
		return fault.New(fault.Conflict, "push_tokens_live_here", "Push tokens live at this node; it takes no set from another.")
	}
	set, err := parseTokens(body)
	if err != nil || generation == "" || len(generation) > 64 {
		return errBadTokens.Because(errors.Join(err, fmt.Errorf("generation of %d bytes", len(generation))))
	}
	return t.db.Write(ctx, func(tx *sqlite.Tx) error {
		// An export from before the authority confirmed something may lack it. The
		// confirmation cleared what is held, so the next poll asks again.
		if t.asked.Load() != t.confirmed.Load() {
			return nil
		}
		if err := t.keepLostTx(tx, set); err != nil {
			return err
		}
		if err := importTx(tx, set.Tokens); err != nil {
			return err
		}
		_, err := tx.Exec(`
			INSERT INTO push_tokens_held (one, generation, life)
			VALUES (1, ?, nullif(?, ''))
			ON CONFLICT (one) DO UPDATE SET generation = excluded.generation, life = excluded.life`, generation, set.Life)
		return err
	})
}

// keepLostTx has what is held here, and is not in a set of another life of the
// authority, wait to be told to it. What it had forgotten itself it refuses then.
func (t *Tokens) keepLostTx(tx *sqlite.Tx, set tokenSet) error {
	held, known, err := sqlite.One(tx, sqlite.Value[*string], `SELECT life FROM push_tokens_held`)
	if err != nil || !known || held == nil || set.Life == "" || *held == set.Life {
		return err
	}
	there := make(map[sync.UID]bool, len(set.Tokens))
	for _, r := range set.Tokens {
		there[r.Registration] = true
	}
	rows, err := sqlite.All(tx, scanRegistered, `SELECT `+registeredColumns+` FROM push_tokens WHERE pending_at IS NULL`)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if there[r.Registration] {
			continue
		}
		if _, err := tx.Exec(`UPDATE push_tokens SET pending_at = ? WHERE registration = ?`, tx.Millis(), r.Registration[:]); err != nil {
			return err
		}
		tx.AfterCommit(t.changed)
	}
	return nil
}

// importTx turns the rows that are not pending into the set. A pending row that is
// in it has arrived, though the answer that said so was lost.
func importTx(tx *sqlite.Tx, tokens []Registered) error {
	for _, r := range tokens {
		if _, err := tx.Exec(`UPDATE push_tokens SET pending_at = NULL WHERE registration = ?`, r.Registration[:]); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(`DELETE FROM push_tokens WHERE pending_at IS NULL`); err != nil {
		return err
	}
	for _, r := range tokens {
		if _, err := tx.Exec(`
			INSERT INTO push_tokens (`+registeredColumns+`)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
			WHERE NOT EXISTS (SELECT 1 FROM push_unregistered WHERE registration = ?5)
			  AND NOT EXISTS (SELECT 1 FROM push_forgotten WHERE owner IN (?4, '') AND device_id = ?3 AND forgotten_at >= ?7)
			ON CONFLICT DO NOTHING`, r.args()...); err != nil { // a conflict is with a pending row, which stays
			return err
		}
	}
	return nil
}

// parseTokens reads a set and checks all of it.
func parseTokens(body []byte) (set tokenSet, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&set); err != nil {
		return tokenSet{}, errors.New("not the JSON of a set") // the library's error may quote a token
	}
	if _, err := dec.Token(); err != io.EOF {
		return tokenSet{}, errors.New("more than one value")
	}
	if set.Tokens == nil {
		return tokenSet{}, errors.New("no list of tokens")
	}
	if len(set.Life) > 64 {
		return tokenSet{}, errors.New("a life of more than 64 bytes")
	}
	seen := map[string]bool{}
	for i, r := range set.Tokens {
		keys := []string{"token " + r.Token, "device " + r.DeviceID, "registration " + r.Registration.String()}
		if !r.sound() {
			return tokenSet{}, fmt.Errorf("entry %d is no registration", i)
		}
		for _, k := range keys {
			if seen[k] {
				return tokenSet{}, fmt.Errorf("entry %d is there twice", i)
			}
			seen[k] = true
		}
	}
	return set, nil
}
