package lease

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
)

// work is a table of the tests' own.
const work = `
	CREATE TABLE IF NOT EXISTS work (
	  id          TEXT PRIMARY KEY,
	  due_at      INTEGER,
	  result      TEXT,
	  lease_token BLOB,
	  lease_epoch INTEGER NOT NULL DEFAULT 0,
	  lease_until INTEGER NOT NULL DEFAULT 0
	) STRICT`

var table = New("work", "id", "due_at <= ?1", "due_at")

// holder is a process with the file open. Each draws its own tokens.
type holder struct {
	t  *testing.T
	db *sqlite.DB
}

func newHolder(t *testing.T, path string, seed byte) holder {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{
		Path: path, Schema: sqlite.Todos, Now: time.Now, Rand: rand.NewChaCha8([32]byte{seed}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h := holder{t, db}
	h.must(func(tx *sqlite.Tx) error { _, err := tx.Exec(work); return err })
	return h
}

func alone(t *testing.T) holder {
	return newHolder(t, filepath.Join(t.TempDir(), "work.db"), 1)
}

func (h holder) write(fn func(*sqlite.Tx) error) error { return h.db.Write(h.t.Context(), fn) }

func (h holder) must(fn func(*sqlite.Tx) error) {
	h.t.Helper()
	if err := h.write(fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h holder) add(id string, dueIn time.Duration) {
	h.t.Helper()
	h.must(func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`INSERT INTO work (id, due_at) VALUES (?, ?)`, id, tx.Now.Add(dueIn).UnixMilli())
		return err
	})
}

func (h holder) claim(limit int) (leases []Lease) {
	h.t.Helper()
	h.must(func(tx *sqlite.Tx) (err error) {
		leases, err = table.ClaimTx(tx, limit, time.Minute)
		return err
	})
	return leases
}

func (h holder) finish(l Lease, result string) error {
	return h.write(func(tx *sqlite.Tx) error { return table.FinishTx(tx, l, `result = ?, due_at = NULL`, result) })
}

func (h holder) result(id string) string {
	h.t.Helper()
	v, err := sqlite.Read(h.t.Context(), h.db, func(tx *sqlite.Tx) (string, error) {
		v, _, err := sqlite.One(tx, sqlite.Value[string], `SELECT coalesce(result, '') FROM work WHERE id = ?`, id)
		return v, err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOfTwoHoldersOnOneFileOneClaims(t *testing.T) { // A18
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "work.db")
		a, b := newHolder(t, path, 1), newHolder(t, path, 2)
		for i := range 5 {
			a.add(strconv.Itoa(i), 0)
		}
		had := map[string]int{}
		for _, l := range append(a.claim(3), b.claim(10)...) {
			had[l.Key]++
		}
		equal(t, len(had), 5)
		for id, n := range had {
			if n != 1 {
				t.Errorf("%s was claimed %d times", id, n)
			}
		}
		equal(t, len(a.claim(10)), 0)
	})
}

func TestExpiryOpensTheClaimAndTheLateHolderIsRefused(t *testing.T) { // A07, A09
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "work.db")
		a, b := newHolder(t, path, 1), newHolder(t, path, 2)
		a.add("job", 0)
		old := a.claim(1)[0]
		time.Sleep(time.Minute - time.Millisecond)
		equal(t, len(b.claim(1)), 0)
		time.Sleep(time.Millisecond)
		next := b.claim(1)[0]
		equal(t, next.Epoch, old.Epoch+1)

		err := a.write(func(tx *sqlite.Tx) error {
			if _, err := tx.Exec(`INSERT INTO work (id) VALUES ('side effect')`); err != nil {
				return err
			}
			return table.FinishTx(tx, old, `result = 'stale'`)
		})
		equal(t, errors.Is(err, ErrLost), true)
		if err := b.finish(next, "good"); err != nil {
			t.Fatal(err)
		}
		equal(t, errors.Is(a.finish(old, "stale"), ErrLost), true)
		equal(t, b.result("job"), "good")
		rows, err := sqlite.Read(t.Context(), b.db, func(tx *sqlite.Tx) (int, error) {
			n, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM work`)
			return n, err
		})
		equal(t, err, nil)
		equal(t, rows, 1) // the refusal undid the rest of its transaction
	})
}

func TestAnExpiredLeaseIsNoLeaseThoughNobodyElseClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := alone(t)
		h.add("job", 0)
		l := h.claim(1)[0]
		time.Sleep(time.Minute)
		for name, fn := range map[string]func(*sqlite.Tx) error{
			"set":     func(tx *sqlite.Tx) error { return table.SetTx(tx, l, `result = 'x'`) },
			"renew":   func(tx *sqlite.Tx) error { return table.RenewTx(tx, l, time.Hour) },
			"finish":  func(tx *sqlite.Tx) error { return table.FinishTx(tx, l, `result = 'x'`) },
			"release": func(tx *sqlite.Tx) error { return table.ReleaseTx(tx, l) },
		} {
			if err := h.write(fn); !errors.Is(err, ErrLost) {
				t.Errorf("%s: %v", name, err)
			}
		}
		equal(t, h.result("job"), "")
	})
}

func TestARenewalCarriesLongWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := alone(t)
		h.add("job", 0)
		l := h.claim(1)[0]
		for range 5 {
			time.Sleep(50 * time.Second)
			h.must(func(tx *sqlite.Tx) error { return table.RenewTx(tx, l, time.Minute) })
		}
		equal(t, len(h.claim(1)), 0)
		h.must(func(tx *sqlite.Tx) error { return table.SetTx(tx, l, `result = 'half'`) })
		equal(t, len(h.claim(1)), 0)
		equal(t, h.finish(l, "whole"), nil)
		equal(t, h.result("job"), "whole")
	})
}

func TestReleasedWorkIsClaimableAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := alone(t)
		h.add("job", 0)
		l := h.claim(1)[0]
		h.must(func(tx *sqlite.Tx) error { return table.ReleaseTx(tx, l) })
		again := h.claim(1)
		equal(t, len(again), 1)
		equal(t, again[0].Epoch, l.Epoch+1)
		equal(t, errors.Is(h.finish(l, "stale"), ErrLost), true)
	})
}

// A restored file counts to an epoch a second time; the token tells the two apart.
func TestTwoHoldersOfOneEpochAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "work.db")
		a, b := newHolder(t, path, 1), newHolder(t, path, 2)
		a.add("job", 0)
		before := a.claim(1)[0]
		a.must(func(tx *sqlite.Tx) error {
			_, err := tx.Exec(`UPDATE work SET lease_token = NULL, lease_epoch = 0, lease_until = 0`)
			return err
		})
		after := b.claim(1)[0]
		equal(t, after.Epoch, before.Epoch)
		equal(t, errors.Is(a.finish(before, "stale"), ErrLost), true)
		equal(t, b.finish(after, "good"), nil)
	})
}

func TestOrphansAreClaimableAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "work.db")
		dead := newHolder(t, path, 1)
		dead.add("held", 0)
		dead.add("free", time.Hour)
		l := dead.claim(5)[0]
		next := newHolder(t, path, 2)
		equal(t, len(next.claim(5)), 0)
		var n int64
		next.must(func(tx *sqlite.Tx) (err error) { n, err = table.OrphansTx(tx); return err })
		equal(t, n, 1)
		equal(t, len(next.claim(5)), 1)
		equal(t, errors.Is(dead.finish(l, "stale"), ErrLost), true)
	})
}

func TestOnlyWhatTheTableOpensIsClaimedTheFirstFirst(t *testing.T) { // A46
	synctest.Test(t, func(t *testing.T) {
		h := alone(t)
		due := func() bool {
			v, err := sqlite.Read(t.Context(), h.db, table.DueTx)
			equal(t, err, nil)
			return v
		}
		h.add("third", time.Hour)
		equal(t, due(), false)
		h.add("second", -time.Second)
		h.add("first", -time.Minute)
		equal(t, due(), true)
		equal(t, h.claim(1)[0].Key, "first")
		equal(t, h.claim(1)[0].Key, "second")
		equal(t, due(), false)
		equal(t, len(h.claim(1)), 0)
		time.Sleep(time.Hour)
		equal(t, due(), true)
		equal(t, len(h.claim(5)), 3) // two by expiry
	})
}
