package link_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// proxy stands before the cloud, and answers polls itself where it has an answer.
type proxy struct {
	*line
	answer atomic.Value // func(polled string, real func() string) string
	polls  atomic.Int64
}

func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(10 * time.Millisecond)
	f, _ := p.answer.Load().(func(string, func() string) string)
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/changes") {
		return p.line.RoundTrip(r)
	}
	p.polls.Add(1)
	if f == nil {
		return p.line.RoundTrip(r)
	}
	real := func() string { // the log's first page
		first := r.Clone(r.Context())
		first.URL.RawQuery = ""
		res, err := p.line.RoundTrip(first)
		if err != nil {
			return err.Error()
		}
		b, _ := io.ReadAll(res.Body)
		return string(unpacked(b, res.Header))
	}
	return answer(200, "application/json", strings.NewReader(f(r.URL.Query().Get("cursor"), real))), nil
}

// A cloud that answers polls at once with nothing new, or a proxy that does, is asked
// seldom, and somebody is told what to do; once polls are held again, all is as before.
func TestPollsThatAreAnsweredAtOnceWithNothingAreMadeSeldom(t *testing.T) {
	first := ""
	for name, bad := range map[string]struct {
		code string
		does func(cursor string, real func() string) string
	}{
		"empty": {"peer_does_not_wait", func(cursor string, _ func() string) string {
			return fmt.Sprintf(`{"rows":[],"cursor":%q,"end":0,"at":0}`, cursor)
		}},
		"empty, and there is more": {"peer_does_not_wait", func(cursor string, _ func() string) string {
			return fmt.Sprintf(`{"rows":[],"cursor":%q,"end":9,"at":0,"more":true}`, cursor)
		}},
		"empty, and more behind other cursors": {"peer_does_not_wait", func(cursor string, _ func() string) string {
			return fmt.Sprintf(`{"rows":[],"cursor":%q,"end":9,"at":0,"more":true}`, cursor[:min(len(cursor), 100)]+"x")
		}},
		"always the same page": {"peer_does_not_wait", func(_ string, real func() string) string {
			if first == "" {
				first = real()
			}
			return first
		}},
		"a set that is never had": {"peer_does_not_wait", func(cursor string, _ func() string) string {
			return fmt.Sprintf(`{"rows":[],"cursor":%q,"end":0,"at":0,"sets":{"accounts":"b/2"}}`, cursor)
		}},
		"a log that begins anew": {"peer_begins_anew", func(cursor string, _ func() string) string {
			return fmt.Sprintf(`{"rows":[],"cursor":%q,"reset":"unknown cursor","end":0,"at":0}`, cursor)
		}},
		"a log that begins anew, with rows": {"peer_begins_anew", func(_ string, real func() string) string {
			return strings.Replace(real(), `"end":`, `"reset":"unknown cursor","end":`, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local, cloud := pair(t)
				cloud.add("from before")
				p := &proxy{line: newLine(cloud)}
				export := func(context.Context) (string, []byte, error) { return "a/1", []byte(`[]`), nil }
				p.sets = []link.Set{{Name: "accounts", Path: "accounts", Generation: func(context.Context) (string, error) { return "a/1", nil }, Export: export}}
				mine := []link.Set{{Name: "accounts", Path: "accounts", Generation: func(context.Context) (string, error) { return "a/1", nil },
					Import: func(context.Context, string, []byte) error { return nil }}}
				c, said := clientOn(local, p, mine, nil)
				running(t, c)
				time.Sleep(time.Second)
				equal(t, "before", c.Status().State, "ok")
				first = ""
				p.answer.Store(bad.does)
				time.Sleep(2 * time.Second)
				cloud.log.Announce() // what is held is from before
				up := local.add("of local")
				time.Sleep(time.Minute)
				p.polls.Store(0)
				for range 100 {
					time.Sleep(6 * time.Second)
					if s := c.Status(); s.State != link.Attention || s.Code != bad.code || !strings.Contains(s.Detail, "proxy") {
						t.Fatal(s.State, s.Code, s.Detail)
					}
				}
				if n := p.polls.Load(); n < 10 || n > 120 {
					t.Error(n, "polls in ten minutes")
				}
				if lines := strings.Count(said.String(), "\n"); lines > 60 {
					t.Error(lines, "lines in the log")
				}
				equal(t, "what is written here", cloud.content(up), "of local")

				down := cloud.add("of cloud")
				p.answer.Store((func(string, func() string) string)(nil))
				time.Sleep(loop.Longest)
				synctest.Wait()
				equal(t, "state then", c.Status().State+c.Status().Code, "ok")
				equal(t, "what was written there", local.content(down), "of cloud")
				p.polls.Store(0)
				next := cloud.add("next")
				time.Sleep(100 * time.Millisecond)
				equal(t, "at once", local.content(next), "next")
			})
		})
	}
}

// lively is a cloud that has something to say, of one kind or all of them.
type lively struct {
	rows, letters, sets bool
	resetAt             int // the step at which its log begins anew; 0: never
}

// Whoever has something to say at each poll is asked again at once.
func TestPollsThatBringSomethingAreMadeAtOnce(t *testing.T) {
	for name, has := range map[string]lively{
		"rows": {rows: true}, "letters": {letters: true}, "sets": {sets: true},
		"all of them, and a reset": {rows: true, letters: true, sets: true, resetAt: 100},
		"a reset alone":            {resetAt: 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local, cloud := pair(t)
				home, away := local.post(), cloud.post()
				l := newLine(cloud)
				l.letters = away.Box
				away.changed = cloud.log.Announce
				var there, here atomic.Int64
				generation := func(of *atomic.Int64) func(context.Context) (string, error) {
					return func(context.Context) (string, error) { return fmt.Sprint(of.Load()), nil }
				}
				l.sets = []link.Set{{Name: "accounts", Path: "accounts", Generation: generation(&there),
					Export: func(context.Context) (string, []byte, error) { return fmt.Sprint(there.Load()), []byte(`[]`), nil }}}
				c := link.NewClient(local.log, newPeer(l), link.ClientOptions{
					Letters: home.Box, Crash: func(string) {}, Logger: slog.New(slog.DiscardHandler),
					Hello: func() link.Hello { return link.Hello{Node: "local", Now: time.Now().UnixMilli()} },
					Sets: []link.Set{{Name: "accounts", Path: "accounts", Generation: generation(&here),
						Import: func(_ context.Context, generation string, _ []byte) error {
							n, err := strconv.ParseInt(generation, 10, 64)
							here.Store(n)
							return err
						}}},
				})
				home.changed = c.LettersWait
				cloud.add("from before")
				running(t, c)
				time.Sleep(time.Second)
				for i := range 200 {
					if has.rows {
						cloud.add("x")
					}
					if has.letters {
						away.send(fmt.Sprint(i), "ann")
					}
					if has.sets {
						there.Add(1)
						cloud.log.Announce()
					}
					if has.resetAt == i+1 {
						synctest.Wait() // or the page under way has a token after the others are gone
						cloud.exec(`DELETE FROM sync_tokens`)
						cloud.log.Announce()
					}
					time.Sleep(5 * time.Millisecond)
					synctest.Wait()
					if has.rows && local.content(sync.Ref{Origin: 1, ID: int64(i + 2)}) != "x" || has.letters && len(home.done) != i+1 || here.Load() != there.Load() {
						t.Fatalf("of step %d not all is there: %d letters, set %d", i, len(home.done), here.Load())
					}
					if s := c.Status(); s.State != link.OK {
						t.Fatal(i, s.State, s.Code)
					}
				}
				if has.resetAt > 0 && c.Status().Reset == "" {
					t.Error("there was no reset")
				}
			})
		})
	}
}
