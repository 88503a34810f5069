package push

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
)

// What waited in a file that came from a backup may have been sent since: nobody is
// rung by it, and the operator reads of it.
func TestARestoredFileRingsNobodyForWhatWaitedInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.enqueue(ring("told", "ada"))
		w.deliver()
		w.fcm.will(fail(Retry, "503"))
		w.telegram.will(fail(Retry, "503"))
		w.enqueue(ring("tried", "ada"))
		w.deliver()
		w.enqueue(ring("midway", "ada"))
		w.dies("push.sending")
		w.enqueue(ring("untouched", "ada"))
		w.fcm.will(take)
		w.telegram.will(take)
		sent := len(w.fcm.to()) + len(w.telegram.to())
		for n, want := range []int{3, 0} { // done twice, it is done once
			w.write(func(tx *sqlite.Tx) error {
				parked, err := StartOverTx(tx)
				equal(t, parked, want)
				return err
			})
			if n == 0 {
				w.start()
			}
		}
		time.Sleep(time.Hour)
		w.deliver()
		equal(t, len(w.fcm.to())+len(w.telegram.to()), sent)
		equal(t, w.of("told").State, Accepted)
		for _, fire := range []string{"tried", "midway", "untouched"} {
			equal(t, w.of(fire).State, Unknown)
			equal(t, w.of(fire).Reason, restored)
			story := w.story(fire)
			equal(t, story[len(story)-1][:len("unknown:")], "unknown:")
		}
		dead, err := w.outbox.Dead(t.Context())
		must(t, err)
		equal(t, len(dead), 3)
	})
}

func TestParkingIsUndoneWithItsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.enqueue(ring("waits", "ada"))
		killed := errors.New("killed")
		err := w.db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := StartOverTx(tx)
			return errors.Join(err, killed)
		})
		equal(t, errors.Is(err, killed), true)
		w.deliver()
		equal(t, w.of("waits").State, Accepted)
	})
}

// Who was somebody at home alone is the cloud's account in a pair: their phones ring
// for it, what waits is theirs, and the cloud hears of every phone.
func TestDevicesAndNoticesGoOverToTheAccountOfThePair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("ada", "a")
		w.phone("bob", "b")
		w.write(func(tx *sqlite.Tx) error {
			_, err := w.tokens.ForgetTx(tx, "ada", "gone")
			return err
		})
		w.enqueue(ring("waits", "ada"))
		w.tokens = NewTokens(w.db, TokenOptions{Log: quiet()}) // no longer the only node
		for range 2 {
			w.write(func(tx *sqlite.Tx) error { return w.tokens.JoinTx(tx, map[string]string{"ada": "ada at the cloud"}) })
			f, _, err := w.tokens.waiting(t.Context())
			must(t, err)
			equal(t, len(f.Registrations), 2)
			equal(t, f.Registrations[0].Owner, "ada at the cloud")
			equal(t, f.Registrations[1].Owner, "bob")
			equal(t, len(f.Forgotten), 1)
			equal(t, f.Forgotten[0].Owner, "ada at the cloud")
		}
		must(t, w.tokens.Import(t.Context(), "a set without them", []byte(`{"tokens":[]}`)))
		targets, err := w.tokens.Targets(t.Context(), "ada at the cloud")
		must(t, err)
		equal(t, len(targets), 1)
		w.start()
		w.deliver()
		equal(t, w.of("waits").State, Accepted)
		equal(t, w.fcm.to()[0], "a")
	})
}
