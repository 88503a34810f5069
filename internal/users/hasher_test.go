package users

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alexedwards/argon2id"

	"tandem/internal/fault"
)

func TestPasswordsAreHashedAtTheStandardCost(t *testing.T) { // E10
	h := NewHasher(Cost{}) // a cost forgotten is not a cost of nothing
	hash, err := h.Hash(t.Context(), password)
	ok(t, err)
	const want = "$argon2id$v=19$m=19456,t=2,p=1$"
	if !strings.HasPrefix(hash, want) || !strings.HasPrefix(h.decoy, want) {
		t.Errorf("got %s and %s", hash, h.decoy)
	}
	for typed, want := range map[string]bool{password: true, password + " ": false, "": false} {
		got, err := h.Matches(t.Context(), typed, hash)
		ok(t, err)
		equal(t, typed, got, want)
	}
}

func TestAccentsMatchHoweverTheyWereTyped(t *testing.T) {
	h := NewHasher(cheap)
	hash, err := h.Hash(t.Context(), "caf\u00e9 au lait")
	ok(t, err)
	same, err := h.Matches(t.Context(), "cafe\u0301 au lait", hash)
	ok(t, err)
	equal(t, "decomposed", same, true)
}

func TestTheDecoyIsNoWordAndNoTwoAreAlike(t *testing.T) { // R:G4
	a, b := NewHasher(cheap), NewHasher(cheap)
	if a.decoy == b.decoy {
		t.Error("two hashers share a decoy")
	}
	p, salt, key, err := argon2id.DecodeHash(a.decoy)
	ok(t, err)
	equal(t, "salt", len(salt), 16)
	equal(t, "key", len(key), 32)
	equal(t, "cost", *p, *a.params)
}

func TestOnePasswordIsHashedAtATimeAndFewWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher(cheap)
		var working, most, finished atomic.Int32
		h.check = func(string, string) (bool, error) {
			most.Store(max(most.Load(), working.Add(1)))
			time.Sleep(20 * time.Millisecond)
			working.Add(-1)
			return true, nil
		}
		for range 1 + maxQueued {
			go func() {
				if _, err := h.Matches(t.Context(), "", ""); err == nil {
					finished.Add(1)
				}
			}()
		}
		synctest.Wait()

		_, err := h.Matches(t.Context(), "", "")
		if e := refused(t, err, fault.TooMany, "busy_passwords"); e.RetryAfter != time.Second {
			t.Errorf("retry after %v", e.RetryAfter)
		}
		_, err = h.Hash(t.Context(), password)
		refused(t, err, fault.TooMany, "busy_passwords")

		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "finished", finished.Load(), 1+maxQueued)
		equal(t, "at once", most.Load(), 1)
		if _, err := h.Matches(t.Context(), "", ""); err != nil {
			t.Errorf("the queue did not empty: %v", err)
		}
	})
}

func TestWhoeverGivesUpWaitingMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher(cheap)
		release := make(chan struct{})
		var hashed atomic.Int32
		h.check = func(string, string) (bool, error) { hashed.Add(1); <-release; return true, nil }
		go h.Matches(t.Context(), "", "")
		synctest.Wait()

		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, maxQueued)
		for range maxQueued {
			go func() {
				_, err := h.Matches(ctx, "", "")
				gaveUp <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range maxQueued {
			if err := <-gaveUp; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		for range maxQueued {
			go h.Matches(t.Context(), "", "")
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		equal(t, "hashed", hashed.Load(), 1+maxQueued)
	})
}

func BenchmarkHash(b *testing.B) {
	h := NewHasher(Standard)
	for b.Loop() {
		if _, err := h.Hash(b.Context(), password); err != nil {
			b.Fatal(err)
		}
	}
}
