package link_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sync/link"
)

func TestPollAnswersAtOnceWhatIsThereAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		cloud.add("milk")
		began := time.Now()
		p, err := link.Poll(t.Context(), cloud.log, "", nil, nil, time.Minute)
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
				done := make(chan link.Page, 1)
				began := time.Now()
				go func() {
					p, err := link.Poll(t.Context(), cloud.log, "", nil, nil, time.Minute)
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
			p, err := link.Poll(t.Context(), cloud.log, cursor, nil, nil, time.Minute)
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
			{time.Hour, time.Hour, link.MaxWait}, // proxies cut a longer one
			{time.Hour, 3 * time.Second, 3 * time.Second},
		} {
			ctx, stop := context.WithTimeout(t.Context(), c.leave)
			began := time.Now()
			p, err := link.Poll(ctx, cloud.log, "", nil, nil, c.wait)
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
		p, err := link.Poll(t.Context(), cloud.log, "garbage", nil, nil, time.Minute)
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
		sets := []link.Set{{Name: "accounts", Held: func(context.Context) (string, error) { return generation, nil }}}
		poll := func(held map[string]string, wait time.Duration) map[string]string {
			p, err := link.Poll(t.Context(), cloud.log, "", sets, held, wait)
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
