package link_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sync/link"
)

// answered is what a poll is answered with.
type answered struct {
	Rows          []json.RawMessage
	Cursor, Reset string
	Sets          map[string]string
	End, At       int64
	More          bool
}

// poll asks the far end of a line, as local does.
func poll(ctx context.Context, l *line, cursor string, held map[string]string, wait time.Duration) (a answered) {
	query := url.Values{"cursor": {cursor}, "wait": {wait.String()}}
	for name, generation := range held {
		query.Set(name, generation)
	}
	w := httptest.NewRecorder()
	l.server().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/peer/v1/changes?"+query.Encode(), nil))
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		panic(err)
	}
	return a
}

func TestPollAnswersAtOnceWhatIsThereAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		cloud.add("milk")
		began := time.Now()
		p := poll(t.Context(), newLine(cloud), "", nil, time.Minute)
		equal(t, "entries", len(p.Rows), 1)
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
				done := make(chan answered, 1)
				began := time.Now()
				go func() {
					done <- poll(t.Context(), newLine(cloud), "", nil, time.Minute)
				}()
				time.Sleep(7 * time.Second)
				equal(t, "answered", len(done), 0)
				change(cloud, local)
				p := <-done
				equal(t, "entries", len(p.Rows), 1)
				equal(t, "after", time.Since(began), 7*time.Second)
			})
		})
	}
}

// A change that falls between the look and the wait must not wait for the next one.
func TestPollMissesNoChangeThatComesWhileItLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		cursor, l := "", newLine(cloud)
		for i := range 100 {
			began := time.Now()
			go func() {
				for range i % 8 { // a little later each time
					runtime.Gosched()
				}
				cloud.add("milk")
			}()
			p := poll(t.Context(), l, cursor, nil, time.Minute)
			if time.Since(began) != 0 || len(p.Rows) != 1 {
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
			p := poll(ctx, newLine(cloud), "", nil, c.wait)
			stop()
			equal(t, "entries", len(p.Rows), 0)
			equal(t, fmt.Sprint("waited of ", c.wait), time.Since(began), c.want)
		}
	})
}

func TestPollTellsOfAResetWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		began := time.Now()
		p := poll(t.Context(), newLine(cloud), "garbage", nil, time.Minute)
		if p.Reset == "" || time.Since(began) != 0 {
			t.Error(p.Reset, time.Since(began))
		}
	})
}

func TestPollTellsOfASetWhoseGenerationDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		generation := "a/1"
		l := newLine(cloud)
		l.sets = []link.Set{{Name: "accounts", Generation: func(context.Context) (string, error) { return generation, nil }}}
		poll := func(held map[string]string, wait time.Duration) map[string]string {
			return poll(t.Context(), l, "", held, wait).Sets
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
