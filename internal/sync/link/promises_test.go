package link_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// What the other node can take at once is kept in offers too.
func TestOfferHasAsManyEntriesAsThePeerTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		greeting, err := json.Marshal(link.Hello{Node: "cloud", Origin: 1, Protocol: link.Protocol, PageLimit: 7, Now: time.Now().UnixMilli()})
		must(t, err)
		l.answers(func(path string) *http.Response {
			if path == "hello" {
				return answer(200, "application/json", bytes.NewReader(greeting))
			}
			return nil
		})
		var sizes []int
		c := clientOver(local, answers(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/changes") {
				sent, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(sent))
				var offer struct{ Rows []json.RawMessage }
				must(t, json.Unmarshal(unpacked(sent, r.Header), &offer))
				sizes = append(sizes, len(offer.Rows))
			}
			return l.RoundTrip(r)
		}))
		local.many(30, 0)
		must(t, c.Offer(t.Context()))
		equal(t, "entries in each offer, after the question how far the peer has read", fmt.Sprint(sizes), "[0 7 7 7 7 2]")
		same(t, local, cloud)
	})
}

// The time that a greeting takes is no difference between the clocks: it is halved, since
// nobody knows which way was the slow one.
func TestASlowLineIsNoWrongClock(t *testing.T) {
	for name, c := range map[string]struct {
		there, back time.Duration
		most        time.Duration
		clock       string
	}{
		"as slow one way as the other": {7 * time.Second, 7 * time.Second, 0, link.Green},
		"slow on the way back":         {0, 14 * time.Second, 7 * time.Second, link.Green},
		"slow on the way there":        {14 * time.Second, 0, 7 * time.Second, link.Green},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local, cloud := pair(t)
				l := newLine(cloud)
				cl := clientOver(local, answers(func(r *http.Request) (*http.Response, error) {
					time.Sleep(c.there)
					res, err := l.RoundTrip(r)
					time.Sleep(c.back)
					return res, err
				}))
				must(t, cl.Greet(t.Context()))
				s := cl.Status()
				if s.Skew.Abs() != c.most || s.Clock != c.clock {
					t.Errorf("clocks that are alike are told as %v apart, %s", s.Skew, s.Clock)
				}
			})
		})
	}
}

// A log that the peer reads from its start is compared with the peer's once it has been
// read, whichever of the two it is.
func TestThisNodesLogThatIsReadFromItsStartIsComparedThenAndTold(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		local.many(20, 0)
		time.Sleep(time.Hour)
		synctest.Wait()
		before := c.Status()
		equal(t, "resets until then", before.Reset, "")
		local.exec(`DELETE FROM sync_tokens`) // as if the file had been put back
		cloud.exec(`DELETE FROM todos WHERE id < 5`)
		began := time.Now()
		local.add("bread")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		s := c.Status()
		equal(t, "why", s.Reset, "cursor not issued by this log")
		if at := time.UnixMilli(s.ResetAt); at.Before(began) || at.After(began.Add(time.Minute)) {
			t.Error("the reset was at", at, "and the write at", began)
		}
		if s.Compared.At <= before.Compared.At {
			t.Error("nothing was compared after the reset")
		}
		equal(t, "rows at the cloud", read[int](cloud, `SELECT count(*) FROM todos`), 21)
		same(t, local, cloud)
	})
}

// Every 20 seconds, so that neither node takes the other for silent.
func TestGreetingsAreMadeThreeTimesAMinute(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		time.Sleep(time.Minute)
		l.since("")
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := l.since("POST hello"); n < 179 || n > 181 {
			t.Errorf("%d greetings in an hour, want 180", n)
		}
	})
}

// S:42. Why a row stays behind is read at both nodes, in the same words.
func TestTheReasonOfABadRowCrosses(t *testing.T) {
	bad := map[string]string{
		"no UTF-8":        `CAST(x'ff' AS TEXT)`,
		"a NUL":           `'a' || char(0) || 'b'`,
		"more than a row": fmt.Sprintf(`'%s'`, strings.Repeat("x", 300<<10)),
	}
	for _, where := range []string{"cloud", "local"} {
		t.Run(where, func(t *testing.T) {
			linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
				sick, sound := cloud, local
				if where == "local" {
					sick, sound = local, cloud
				}
				for _, content := range bad {
					sick.write(func(tx *sqlite.Tx) error {
						h, err := sick.addTx(tx, "")
						if err == nil {
							_, err = tx.Exec(`UPDATE todos SET content = ` + content + ` WHERE id = ` + fmt.Sprint(h.ID)) // by hand
						}
						return err
					})
				}
				sick.many(50, 0)
				time.Sleep(time.Minute)
				synctest.Wait()
				equal(t, "good rows", read[int](sound, `SELECT count(*) FROM todos`), 50)
				told := map[string]link.Status{"local": l.server().Status(), "cloud": c.Status()}[where].Aside
				equal(t, "told of", reasons(told), reasons(aside(t, sick)))
				if len(told) != len(bad) || strings.Contains(reasons(told), `""`) {
					t.Errorf("the sound node reads %s", reasons(told))
				}
			})
		})
	}
}

// reasons are what people read of each entry that is set aside, in order.
func reasons(list []sync.Quarantined) string {
	var all []string
	for _, q := range list {
		all = append(all, fmt.Sprintf("%s %s %q", q.UID, q.Kind, q.Reason))
	}
	return strings.Join(all, "\n")
}
