package link_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	gosync "sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// watched is a line whose calls are told, each with how many rows it carried.
type watched struct {
	*line
	mu    gosync.Mutex
	calls []string
	rows  []int
	tell  func(call string, r *http.Request) // before the call is made
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(sent))
	call := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/peer/v1/")
	if w.tell != nil {
		w.tell(call, r)
	}
	res, err := w.line.RoundTrip(r)
	if err != nil {
		return res, err
	}
	got, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(got))
	var up, down struct{ Rows []json.RawMessage }
	_ = json.Unmarshal(unpacked(sent, r.Header), &up)
	_ = json.Unmarshal(unpacked(got, res.Header), &down)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(up.Rows) + len(down.Rows); n > 0 && len(w.calls) > 0 && w.calls[len(w.calls)-1] == call {
		w.rows[len(w.rows)-1] += n
	} else if n > 0 {
		w.calls, w.rows = append(w.calls, call), append(w.rows, n)
	}
	return res, nil
}

// told is which calls carried rows, and how many; those of one kind in a row are one.
func (w *watched) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for i, call := range w.calls {
		all = append(all, fmt.Sprint(call, " ", w.rows[i]))
	}
	return strings.Join(all, ", ")
}

// While a page is stored the next one is read and one more comes, and no more.
func TestNextPagesAreUnderWayWhileOneIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		cloud.many(1700, 2000) // four pages
		l := newLine(cloud)
		storing, goOn := make(chan int), make(chan bool)
		pages := 0
		c, _ := client(local, l, nil, func(point string) {
			if point == "sync.fetched" {
				pages++
				storing <- pages
				<-goOn
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Fetch(ctx) }()
		asked := 0
		for last := false; !last; {
			page := <-storing
			time.Sleep(time.Minute) // however long it takes
			synctest.Wait()
			asked += l.since("GET changes")
			equal(t, fmt.Sprint("pages asked for while page ", page, " is stored"), asked, min(page+2, 4))
			equal(t, fmt.Sprint("state while page ", page, " is stored"), c.Status().State, link.CatchingUp)
			last = page == 4
			goOn <- true
		}
		synctest.Wait()
		equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 1700)
		equal(t, "state at the end", c.Status().State, link.OK)
		stop()
		<-done
	})
}

// S:5. It dies while one page is stored and the next has come: what was stored and
// how far it has read are one.
func TestProcessThatDiesWithAPageUnderWayLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		cloud.many(1500, 2000)
		l := newLine(cloud)
		for _, dies := range []int{1, 2} {
			pages := 0
			c, _ := client(local, l, nil, func(point string) {
				if point == "sync.fetched" {
					if pages++; pages == dies {
						panic("killed")
					}
				}
			})
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			if err := c.Fetch(ctx); err == nil {
				t.Error("it lives")
			}
			stop()
			local.restart()
		}
		if n := read[int](local, `SELECT count(*) FROM todos`); n == 0 || n > 600 {
			t.Error(n, "rows after one page and two deaths")
		}
		c, _ := client(local, l, nil, nil)
		for fetchPage(t, c) {
		}
		same(t, local, cloud)
	})
}

// What a pass brings is not sent back before the pass ends.
func TestFullPassIsEchoedOnlyAfterItsEnd(t *testing.T) {
	t.Run("down", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			local, cloud := pair(t)
			cloud.many(1500, 2000)
			w := &watched{line: newLine(cloud)}
			c, _ := clientLogging(local, w)
			running(t, c)
			time.Sleep(time.Minute)
			synctest.Wait()
			equal(t, "calls", w.told(), "GET changes 1500, POST changes 1500")
			same(t, local, cloud)
		})
	})
	t.Run("up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			local, cloud := pair(t)
			local.many(1500, 2000)
			w := &watched{line: newLine(cloud)}
			c, _ := clientLogging(local, w)
			running(t, c)
			time.Sleep(time.Minute)
			synctest.Wait()
			equal(t, "calls", w.told(), "POST changes 1500, GET changes 1500")
			same(t, local, cloud)
			equal(t, "state at the cloud", w.server().Status().State, link.OK)
		})
	})
}

// The cloud does not wait for ever for a pass that was broken off, nor do people's
// accounts wait for it.
func TestPollHeldForAPassEndsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		l := newLine(cloud)
		generation := "1"
		l.sets = []link.Set{{Name: "accounts", Path: "accounts", Generation: func(context.Context) (string, error) { return generation, nil }}}
		offer(t, l, `{"from":"","to":"x","more":true,"rows":[]}`)
		cloud.add("milk")
		began := time.Now()
		p := poll(t.Context(), l, "", map[string]string{"accounts": ""}, time.Minute)
		equal(t, "a set, while the rows wait", fmt.Sprint(p.Sets, len(p.Rows), time.Since(began)), "map[accounts:1] 0 0s")
		equal(t, "a poll that does not want to wait", len(poll(t.Context(), l, "", nil, 0).Rows), 1)
		p = poll(t.Context(), l, "", nil, time.Minute)
		equal(t, "rows, when nothing follows", fmt.Sprint(len(p.Rows), time.Since(began)), "1 2s")

		offer(t, l, `{"from":"x","to":"y","more":true,"rows":[]}`)
		began = time.Now()
		time.AfterFunc(time.Second, func() { offer(t, l, `{"from":"y","to":"z","rows":[]}`) })
		p = poll(t.Context(), l, "", nil, time.Minute)
		synctest.Wait()
		equal(t, "rows, at the end of the pass", fmt.Sprint(len(p.Rows), time.Since(began)), "1 1s")
	})
}

// offer has local offer a page to the far end of a line.
func offer(t *testing.T, l *line, body string) {
	t.Helper()
	must(t, newPeer(l).Call(t.Context(), http.MethodPost, "changes", json.RawMessage(body), nil))
}

// S:11. Writes come faster than they can be read: the pass ends where the log ended
// when it began, and what is written at home does not wait for more.
func TestPassEndsThoughTheLogGrowsAsFastAsItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		cloud.many(800, 2000) // two pages
		w := &watched{line: newLine(cloud)}
		w.tell = func(call string, _ *http.Request) {
			if call == "GET changes" {
				cloud.many(450, 2000) // each time, another page
			}
		}
		c, _ := clientLogging(local, w)
		must(t, c.Greet(t.Context()))
		mine := local.add("of local")
		states := ""
		for range 5 {
			equal(t, "more", fetchPage(t, c), true)
			states += c.Status().State + " "
			_, err := c.OfferPage(t.Context())
			must(t, err)
		}
		equal(t, "states", states, "catching_up catching_up ok catching_up catching_up ")
		equal(t, "of local, at the cloud", cloud.content(mine), "of local")
	})
}

// limited is a line with a proxy before the cloud that takes no call beyond a size.
func limited(l *line, size int) http.RoundTripper {
	return answers(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		if len(unpacked(b, r.Header)) > size {
			return answer(413, "text/html", strings.NewReader("<h1>Request Entity Too Large")), nil
		}
		return l.RoundTrip(r)
	})
}

func TestOfferThatIsTooLargeForAProxyCrossesInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		local.many(1000, 100)
		l := newLine(cloud)
		c, said := clientLogging(local, limited(l, 20_000))
		must(t, c.Offer(t.Context()))
		equal(t, "rows", read[int](cloud, `SELECT count(*) FROM todos`), 1000)
		equal(t, "state", c.Status().State, link.OK)
		equal(t, "calls with rows", l.since("POST changes") < 40, true)
		equal(t, "set aside", len(aside(t, local)), 0)
		equal(t, "said", said.String(), "")
	})
}

// An entry that crosses in no size is set aside where it was written; the rest go.
func TestEntryTooLargeForAProxyIsSetAsideByItsWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		local.many(10, 100)
		large := local.add(strings.Repeat("x", 50_000))
		local.many(10, 100)
		c, _ := clientLogging(local, limited(newLine(cloud), 20_000))
		running(t, c)
		time.Sleep(2 * time.Minute)
		equal(t, "rows", read[int](cloud, `SELECT count(*) FROM todos`), 20)
		equal(t, "the large one", cloud.content(large), "")
		if q := aside(t, local); len(q) != 1 || q[0].Kind != sync.Unencodable || q[0].Ref != large || !strings.Contains(q[0].Reason, "size") {
			t.Errorf("%+v", q)
		}
		equal(t, "state", c.Status().State+" "+c.Status().Code, "attention quarantine")
		local.edit(large, "content", "shorter")
		synctest.Wait()
		equal(t, "once it is shorter", cloud.content(large), "shorter")
		time.Sleep(2 * time.Hour)
		equal(t, "state when it was looked at again", c.Status().State, link.OK)
	})
}

func aside(t *testing.T, n *node) []sync.Quarantined {
	t.Helper()
	q, err := n.log.Quarantine(t.Context(), 100)
	must(t, err)
	return q
}

// The peer's own limit is kept, in entries.
func TestPageHasAsManyEntriesAsItsReaderWants(t *testing.T) {
	_, cloud := pair(t)
	cloud.many(30, 0)
	l := newLine(cloud)
	for limit, want := range map[string]int{"7": 7, "0": 1, "-5": 1, "junk": 30, "": 30, "99999999": 30} {
		var a answered
		must(t, newPeer(l).Call(t.Context(), http.MethodGet, "changes?limit="+limit, nil, &a))
		equal(t, "entries for a limit of "+limit, len(a.Rows), want)
		equal(t, "more", a.More, want < 30)
		equal(t, "end", a.End, 30)
	}
}

// S:44. The first push meets 503, and nothing is written after it.
func TestPushThatFailedIsMadeAgainWithoutANewWrite(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		l.answers(changesAnswered(503, "application/problem+json", `{"code":"busy"}`))
		r := local.add("milk")
		synctest.Wait()
		l.answers(nil)
		time.Sleep(loop.Longest)
		synctest.Wait()
		equal(t, "at the cloud", cloud.content(r), "milk")
	})
}
