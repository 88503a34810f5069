package sqlite_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

var request = sqlite.Request{Owner: "ann", Route: "POST /v1/todos", Key: "k1", Body: []byte("hash of a body")}

// ask makes a request whose effect is one row, and says what was answered.
func ask(t *testing.T, db *sqlite.DB, r sqlite.Request, effect string) (string, error) {
	t.Helper()
	var said string
	err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		a, again, err := sqlite.OnceTx(tx, r, func() ([]byte, error) {
			return []byte("made " + effect), put(effect, "")(tx)
		})
		said = fmt.Sprintf("%s again=%v", a, again)
		return err
	})
	return said, err
}

func asks(t *testing.T, db *sqlite.DB, r sqlite.Request, effect, want string) {
	t.Helper()
	said, err := ask(t, db, r, effect)
	must(t, err)
	equal(t, "answer", said, want)
}

func TestRequestUnderAKeyIsDoneOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		asks(t, db, request, "a", "made a again=false")
		for range 3 {
			time.Sleep(24 * time.Hour)
			asks(t, db, request, "b", "made a again=true")
		}
		equal(t, "what is there", keys(t, db), "a")
	})
}

func TestKeyCountsForItsOwnerAndItsRouteOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		asks(t, db, request, "a", "made a again=false")
		for effect, other := range map[string]sqlite.Request{
			"b": {Owner: "bob", Route: request.Route, Key: request.Key, Body: request.Body},
			"c": {Owner: request.Owner, Route: "POST /v1/messages", Key: request.Key, Body: request.Body},
			"d": {Owner: request.Owner, Route: request.Route, Key: "k2", Body: request.Body},
		} {
			asks(t, db, other, effect, "made "+effect+" again=false")
		}
		equal(t, "what is there", keys(t, db), "a b c d")
	})
}

func TestKeyWithAnotherBodyIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		asks(t, db, request, "a", "made a again=false")
		other := request
		other.Body = []byte("hash of another")
		if _, err := ask(t, db, other, "b"); !errors.Is(err, sqlite.ErrKeyReused) || !fault.Of(err, fault.Invalid) {
			t.Fatal(err)
		}
		asks(t, db, request, "c", "made a again=true")
		equal(t, "what is there", keys(t, db), "a")
	})
}

func TestRequestThatFailedLeavesNoAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, _, err := sqlite.OnceTx(tx, request, func() ([]byte, error) {
				return []byte("made"), errors.Join(put("a", "")(tx), errRefused)
			})
			return err
		})
		if !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
		equal(t, "what is there", keys(t, db), "")
		asks(t, db, request, "b", "made b again=false")
	})
}

// The answer and the effect are one commit: an answer that stands for nothing would
// hide the loss for a week.
func TestAnswerIsLostWithItsEffect(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, _, err := sqlite.OnceTx(tx, request, func() ([]byte, error) { return []byte("made"), put("a", "")(tx) })
			return errors.Join(err, errRefused) // something after it failed
		})
		if !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
		asks(t, db, request, "a", "made a again=false")
	})
}

func TestKeyIsForgottenAfterAWeek(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		asks(t, db, request, "a", "made a again=false")
		time.Sleep(sqlite.KeysKept - time.Millisecond)
		asks(t, db, request, "b", "made a again=true")
		time.Sleep(time.Millisecond)
		asks(t, db, request, "c", "made c again=false")
		asks(t, db, request, "d", "made c again=true")
		time.Sleep(sqlite.KeysKept - time.Millisecond) // counted from the newer answer
		asks(t, db, request, "e", "made c again=true")
		equal(t, "what is there", keys(t, db), "a c")
	})
}

func TestPurgeForgetsOldKeysSomeAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		store := func(prefix string, n int) {
			must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
				for i := range n {
					r := request
					r.Key = fmt.Sprint(prefix, i)
					if _, _, err := sqlite.OnceTx(tx, r, func() ([]byte, error) { return []byte{}, nil }); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		store("old", 1100)
		time.Sleep(sqlite.KeysKept)
		store("new", 3)
		rounds, more := 0, true
		for more {
			before := query[int](t, db, `SELECT count(*) FROM idempotency`)
			must(t, db.Write(t.Context(), func(tx *sqlite.Tx) (err error) { more, err = sqlite.PurgeKeysTx(tx); return err }))
			if gone := before - query[int](t, db, `SELECT count(*) FROM idempotency`); gone > 500 {
				t.Fatal("one round forgot", gone)
			}
			rounds++
		}
		equal(t, "rounds", rounds, 3)
		equal(t, "keys left", query[int](t, db, `SELECT count(*) FROM idempotency`), 3)
	})
}
