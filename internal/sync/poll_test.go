package sync_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

func TestPollAnswersAtOnceWhatIsThereAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		cloud.add("milk")
		began := time.Now()
		p, err := cloud.log.Poll(t.Context(), "", nil, nil, time.Minute)
		must(t, err)
		equal(t, "entries", len(p.Entries), 1)
		equal(t, "after", time.Since(began), 0)
	})
}

func TestPollEndsWithAChangeWhoeverMakesIt(t *testing.T) {
	for name, change := range map[string]func(cloud, local *node){
		"a row":              func(cloud, _ *node) { cloud.add("milk") },
		"a fact":             func(cloud, _ *node) { cloud.fact("fired", "f", nil) },
		"a row of the peer":  func(cloud, local *node) { local.add("milk"); cloud.pull(local) },
		"a fact of the peer": func(cloud, local *node) { local.fact("fired", "f", nil); cloud.pull(local) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local, cloud := pair(t)
				done := make(chan sync.Page, 1)
				began := time.Now()
				go func() {
					p, err := cloud.log.Poll(t.Context(), "", nil, nil, time.Minute)
					if err != nil {
						t.Error(err)
					}
					done <- p
				}()
				time.Sleep(7 * time.Second)
				equal(t, "answered", len(done), 0)
				change(cloud, local)
				p := <-done
				equal(t, "entries", len(p.Entries), 1)
				equal(t, "after", time.Since(began), 7*time.Second)
			})
		})
	}
}

// A change that falls between the look and the wait must not wait for the next one.
func TestPollMissesNoChangeThatComesWhileItLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		cursor := ""
		for i := range 100 {
			began := time.Now()
			go func() {
				for range i % 8 { // a little later each time
					runtime.Gosched()
				}
				cloud.add("milk")
			}()
			p, err := cloud.log.Poll(t.Context(), cursor, nil, nil, time.Minute)
			must(t, err)
			if time.Since(began) != 0 || len(p.Entries) != 1 {
				t.Fatalf("change %d was told after %v", i, time.Since(began))
			}
			cursor = p.Cursor
		}
	})
}

func TestPollEndsEmptyWhenItsTimeIsUpOrItsCallerHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		for _, c := range []struct{ wait, leave, want time.Duration }{
			{0, time.Hour, 0},
			{5 * time.Second, time.Hour, 5 * time.Second},
			{time.Hour, time.Hour, sync.MaxWait}, // proxies cut a longer one
			{time.Hour, 3 * time.Second, 3 * time.Second},
		} {
			ctx, stop := context.WithTimeout(t.Context(), c.leave)
			began := time.Now()
			p, err := cloud.log.Poll(ctx, "", nil, nil, c.wait)
			stop()
			must(t, err)
			equal(t, "entries", len(p.Entries), 0)
			equal(t, fmt.Sprint("waited of ", c.wait), time.Since(began), c.want)
		}
	})
}

func TestPollTellsOfAResetWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		began := time.Now()
		p, err := cloud.log.Poll(t.Context(), "garbage", nil, nil, time.Minute)
		must(t, err)
		if p.Reset == "" || time.Since(began) != 0 {
			t.Error(p.Reset, time.Since(began))
		}
	})
}

func TestPollTellsOfASetWhoseGenerationDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		generation := "a/1"
		sets := []sync.Set{{Name: "accounts", Held: func(context.Context) (string, error) { return generation, nil }}}
		poll := func(held map[string]string, wait time.Duration) map[string]string {
			p, err := cloud.log.Poll(t.Context(), "", sets, held, wait)
			must(t, err)
			return p.Sets
		}
		began := time.Now()
		equal(t, "to one who holds none", fmt.Sprint(poll(map[string]string{"accounts": ""}, time.Minute)), "map[accounts:a/1]")
		equal(t, "to one who holds another", fmt.Sprint(poll(map[string]string{"accounts": "z/9"}, time.Minute)), "map[accounts:a/1]")
		equal(t, "without waiting", time.Since(began), 0)
		equal(t, "to one who did not ask", len(poll(nil, time.Second)), 0)
		equal(t, "to one who holds it", len(poll(map[string]string{"accounts": "a/1"}, time.Second)), 0)
		go func() {
			time.Sleep(5 * time.Second)
			generation = "a/2"
			cloud.log.Announce()
		}()
		began = time.Now()
		equal(t, "when it changes", fmt.Sprint(poll(map[string]string{"accounts": "a/1"}, time.Minute)), "map[accounts:a/2]")
		equal(t, "after", time.Since(began), 5*time.Second)
	})
}

func TestEveryCommitThatAppendsIsAnnounced(t *testing.T) {
	local, cloud := pair(t)
	told := 0
	local.log.OnChange(func() { told++ })
	count := func(what string, want bool, do func()) {
		before, changed := told, local.log.Changed()
		do()
		closed := isClosed(changed)
		if closed != want || told > before != want {
			t.Errorf("%s: announced %v, told %d times", what, closed, told-before)
		}
	}
	count("a row", true, func() { local.add("milk") })
	count("a write that fails", false, func() {
		_ = local.db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := local.addTx(tx, "undone")
			return errors.Join(err, errors.New("refused"))
		})
	})
	count("an empty round", false, func() { local.pull(cloud) })
	cloud.pull(local)
	count("an echo", false, func() { local.pull(cloud) })
	cloud.add("bread")
	count("a row of the peer", true, func() { local.pull(cloud) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
