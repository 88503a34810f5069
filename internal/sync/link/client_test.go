package link_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

func TestRowsAndFactsCrossBothWaysAtOnce(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		began := time.Now()
		up := local.add("of local")
		local.fact("fired", "f1", "x")
		down := cloud.add("of cloud")
		synctest.Wait()
		equal(t, "at the cloud", cloud.content(up), "of local")
		equal(t, "at local", local.content(down), "of cloud")
		equal(t, "after", time.Since(began), 0)
		cloud.edit(up, "content", "edited there")
		synctest.Wait()
		equal(t, "an edit", local.content(up), "edited there")
		same(t, local, cloud)
		status := c.Status()
		equal(t, "status", status.State+status.Peer+status.Version, "okcloudv9")
	})
}

func TestManyRowsCrossInPages(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		local.many(2500, 0)
		cloud.many(2500, 0)
		synctest.Wait()
		same(t, local, cloud)
		equal(t, "rows", read[int](cloud, `SELECT count(*) FROM todos`), 5000)
		time.Sleep(time.Second)
		if l.moved > 3*5000 { // S:12
			t.Error(l.moved, "entries moved")
		}
	})
}

// S:6, S:48.
func TestIdleLinkMovesNothingAndCallsSeldom(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		local.edit(local.add("<a>"), "content", "<b>")
		time.Sleep(time.Minute)
		before, tokens := l.moved, read[int](cloud, `SELECT count(*) FROM sync_tokens`)
		l.since("")
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "entries that moved", l.moved, before)
		equal(t, "new tokens", read[int](cloud, `SELECT count(*) FROM sync_tokens`), tokens)
		l.mu.Lock()
		calls := len(l.calls)
		l.mu.Unlock()
		if polls := l.since("GET changes"); polls < 70 || polls > 74 || calls > 260 {
			t.Error(polls, "polls of", calls, "calls")
		}
	})
}

// S:44. The far end is found again by time and not by the next write.
func TestLinkThatHealsIsUsedWithin30SecondsWithoutNewWrites(t *testing.T) {
	for outage := 3 * time.Second; outage < 20*time.Minute; outage = outage*2 + 4321*time.Millisecond {
		t.Run(outage.String(), func(t *testing.T) {
			linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
				l.cut()
				up, down := local.add("of local"), cloud.add("of cloud")
				time.Sleep(outage)
				equal(t, "state", c.Status().State+" "+c.Status().Code, "offline peer_away")
				l.heal()
				time.Sleep(loop.Longest)
				synctest.Wait()
				equal(t, "at the cloud", cloud.content(up), "of local")
				equal(t, "at local", local.content(down), "of cloud")
				same(t, local, cloud)
				equal(t, "state then", c.Status().State, "ok")
			})
		})
	}
}

// S:45. Packets are dropped, and no one is told.
func TestLinkThatFellSilentIsUsedAgainWithin75Seconds(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		l.fallSilent()
		up, down := local.add("of local"), cloud.add("of cloud")
		time.Sleep(30 * time.Second)
		l.heal()
		time.Sleep(44 * time.Second) // calls from before hang on; the heartbeat tells that they will for ever
		synctest.Wait()
		l.mu.Lock()
		equal(t, "times that idle connections were given up", l.dropped, 1)
		l.mu.Unlock()
		equal(t, "at the cloud", cloud.content(up), "of local")
		equal(t, "at local", local.content(down), "of cloud")
		equal(t, "state", c.Status().State, "ok")
	})
}

// What is called as the line heals goes on, although the heartbeat finds that there was
// an outage: to break it off would have the peer do its work twice.
func TestCallThatBeginsWithTheHeartbeatIsNotBrokenOff(t *testing.T) {
	for range 10 { // the loops greet at once: in about every second one the offer is answered before the heartbeat
		synctest.Test(t, func(t *testing.T) {
			local, cloud := pair(t)
			up, l, offered := local.add("of local"), newLine(cloud), 0
			c, _ := client(local, l, nil, func(point string) {
				if point == "sync.offered" {
					offered++
				}
			})
			l.cut()
			running(t, c)
			time.Sleep(time.Second / 2) // all have failed, and are tried again after one second
			var greetings atomic.Int64
			l.answers(func(path string) *http.Response {
				if path == "hello" {
					time.Sleep(time.Duration(greetings.Add(1)) * time.Second / 10)
				}
				return nil
			})
			l.crash = func(string) { time.Sleep(time.Second) } // between what the peer does and its answer
			l.heal()
			time.Sleep(loop.Longest)
			l.answers(nil)
			time.Sleep(loop.Longest) // for what is being answered still
			equal(t, "at the cloud", cloud.content(up), "of local")
			equal(t, "offers that were answered", offered, 1)
		})
	}
}

// S:47. The peer did what it was asked, and its answer was lost.
func TestAnswerThatWasLostRepeatsNothing(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		for i := range 10 {
			l.mu.Lock()
			l.lose = 1 + i%3
			l.mu.Unlock()
			local.add(fmt.Sprint("l", i))
			cloud.add(fmt.Sprint("c", i))
			time.Sleep(40 * time.Second)
		}
		synctest.Wait()
		same(t, local, cloud)
		equal(t, "rows", read[int](cloud, `SELECT count(*) FROM todos`), 20)
		seq := read[int](cloud, `SELECT max(seq) FROM todos`)
		time.Sleep(time.Hour)
		equal(t, "the last place in the log an hour later", read[int](cloud, `SELECT max(seq) FROM todos`), seq)
	})
}

// S:5. The process dies at each point of a page's way, and starts again.
func TestProcessThatDiesWithAPageLosesAndDoublesNothing(t *testing.T) {
	for _, point := range []string{"sync.fetched", "sync.stored", "sync.offering", "sync.offered"} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local, cloud := pair(t)
				up, down := local.add("of local"), cloud.add("of cloud")
				l := newLine(cloud)
				c, _ := client(local, l, nil, func(p string) {
					if p == point {
						panic("killed")
					}
				})
				both := func(c *link.Client) (died bool) {
					defer func() { died = recover() != nil }()
					must(t, c.Offer(t.Context()))
					fetchPage(t, c)
					return false
				}
				equal(t, "died", both(c), true)
				local.restart()
				c, _ = client(local, l, nil, nil)
				for range 3 {
					equal(t, "died again", both(c), false)
				}
				equal(t, "at the cloud", cloud.content(up), "of local")
				equal(t, "at local", local.content(down), "of cloud")
				same(t, local, cloud)
				equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 2)
				before := l.moved
				both(c)
				equal(t, "entries that move then", l.moved, before)
			})
		})
	}
}

// The peer's knowledge of how far it has read decides, also after it lost some.
func TestOfferFollowsThePeersOwnPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		c, _ := client(local, l, nil, nil)
		local.add("a")
		must(t, c.Offer(t.Context()))
		fresh := newNode(t, "cloud", 1) // the cloud's file is a new one
		l.cloud = fresh
		local.add("b")
		err := c.Offer(t.Context())
		for range 2 {
			err = c.Offer(t.Context())
		}
		must(t, err)
		local.pull(fresh)
		same(t, local, fresh)
		equal(t, "rows", read[int](fresh, `SELECT count(*) FROM todos`), 2)
	})
}

func TestOfferWhoseAnswerWasLostGoesOnFromWhereThePeerIs(t *testing.T) {
	local, cloud := pair(t)
	l := newLine(cloud)
	c, _ := client(local, l, nil, nil)
	local.add("a")
	must(t, c.Offer(t.Context()))
	local.add("b")
	l.lose = 1
	if err := c.Offer(t.Context()); !errors.Is(err, link.ErrPeerAway) {
		t.Error(err)
	}
	local.add("c")
	must(t, c.Offer(t.Context()))
	equal(t, "entries that moved", l.moved, 3)
}

func TestPeerThatDoesNotTakeTheCursorIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		l.answers(changesAnswered(200, "application/json", `{"cursor":"another node's"}`))
		c, _ := client(local, l, nil, nil)
		local.add("a")
		if err := c.Offer(t.Context()); !errors.Is(err, link.ErrPeerFailed) {
			t.Error(err)
		}
	})
}

// S:29. A node that cannot be the peer is told nothing and believed nothing.
func TestNodeThatCannotBeThePeerIsRefusedAndMovesNoRows(t *testing.T) {
	right := link.Hello{Node: "cloud", Origin: 1, Protocol: link.Protocol}
	for name, c := range map[string]struct {
		hello link.Hello
		want  string
	}{
		"a copy of this node":       {link.Hello{Node: "local", Origin: 0, Protocol: link.Protocol}, "peer_self"},
		"one of this node's name":   {link.Hello{Node: "local", Origin: 1, Protocol: link.Protocol}, "peer_self"},
		"one of this node's origin": {link.Hello{Node: "cloud", Origin: 0, Protocol: link.Protocol}, "peer_self"},
		"one of another name":       {link.Hello{Node: "other", Origin: 1, Protocol: link.Protocol}, "peer_name"},
		"one of a newer protocol":   {link.Hello{Node: "cloud", Origin: 1, Protocol: link.Range{Min: 2, Max: 2}}, "peer_version"},
		"one of an older protocol":  {link.Hello{Node: "cloud", Origin: 1, Protocol: link.Range{Max: 0, Min: -1}}, "peer_version"},
		"one that says nothing":     {link.Hello{}, "peer_stranger"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local, cloud := pair(t)
				local.add("of local")
				cloud.add("of cloud")
				l := newLine(cloud)
				l.hello = c.hello
				cl, _ := client(local, l, nil, nil)
				running(t, cl)
				for range 10 {
					time.Sleep(time.Minute)
					want := "attention " + c.want
					if c.want == "peer_version" {
						want = "paused peer_version"
					}
					equal(t, "state", cl.Status().State+" "+cl.Status().Code, want) // S:52: it lasts
				}
				equal(t, "calls for rows", l.since("GET changes")+l.since("POST changes"), 0)
				equal(t, "rows at local", read[int](local, `SELECT count(*) FROM todos`), 1)
				equal(t, "rows at the cloud", read[int](cloud, `SELECT count(*) FROM todos`), 1)
				l.greets.Lock()
				l.hello = right
				l.greets.Unlock()
				time.Sleep(loop.Longest)
				synctest.Wait()
				same(t, local, cloud)
				equal(t, "state once it is right", cl.Status().State, "ok")
			})
		})
	}
}

func TestEachNodeSeesThatTheOtherIsNotItsPeer(t *testing.T) {
	me := link.Hello{Node: "local", Origin: 0, Protocol: link.Protocol}
	peer := link.Hello{Node: "cloud", Origin: 1, Protocol: link.Protocol}
	must(t, peer.Check(me, "cloud"))
	must(t, me.Check(peer, "local"))
	for _, c := range []struct {
		h, me link.Hello
		name  string
		want  error
	}{
		{me, me, "local", link.ErrPeerSelf},
		{peer, me, "other", link.ErrPeerName},
		{link.Hello{Node: "cloud", Peer: "locol", Origin: 1, Protocol: link.Protocol}, me, "cloud", link.ErrPeerName},
		{link.Hello{Node: "cloud", Peer: "local", Origin: 1, Protocol: link.Protocol}, me, "cloud", nil},
		{link.Hello{Node: "cloud", Origin: 1, Protocol: link.Range{Min: 2, Max: 2}}, me, "cloud", link.ErrPeerVersion},
	} {
		if err := c.h.Check(c.me, c.name); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.h, err)
		}
	}
}

// JSON of another service must not pass for an empty page: it would take the cursor
// away, and with it all that was read.
func TestAnswerThatIsNoPageLeavesTheCursor(t *testing.T) {
	for _, body := range []string{`{}`, `null`, `{"status":"ok"}`, `{"rows":[],"cursor":""}`, `{"rows":null}`, string(crowd(sync.PageRows + 1))} {
		t.Run(body[:min(len(body), 30)], func(t *testing.T) {
			linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
				cloud.add("milk")
				synctest.Wait()
				before, err := local.log.Cursor(t.Context(), "cloud")
				must(t, err)
				l.answers(changesAnswered(200, "application/json", body))
				if _, err := c.FetchPage(t.Context(), 0); !errors.Is(err, link.ErrPeerStranger) {
					t.Error(err)
				}
				after, err := local.log.Cursor(t.Context(), "cloud")
				must(t, err)
				equal(t, "cursor", after, before)
				l.answers(nil)
			})
		})
	}
}

// S:66. What greets and yet takes nothing is not well.
func TestFailureOfOneLineIsToldUntilThatLineWorks(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		l.answers(changesAnswered(429, "text/html", "too many"))
		local.add("milk")
		cloud.add("bread")
		time.Sleep(time.Minute)
		for range 60 {
			time.Sleep(7 * time.Second)
			equal(t, "state", c.Status().State+" "+c.Status().Code, "attention peer_stranger")
		}
		l.answers(nil)
		time.Sleep(loop.Longest)
		synctest.Wait()
		equal(t, "state then", c.Status().State, "ok")
		same(t, local, cloud)
	})
}

// S:57. A row that cannot be sent is set aside where it is, and the rest goes on.
func TestRowThatCannotBeSentKeepsNoOtherAway(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		r := cloud.add("milk")
		synctest.Wait()
		cloud.exec(`UPDATE todos SET owner = '', seq = seq + 1000 WHERE id = ?`, r.ID) // a bug, or a hand
		bread := cloud.add("bread")
		synctest.Wait()
		equal(t, "the other", local.content(bread), "bread")
		q, err := cloud.log.Quarantine(t.Context(), 10)
		must(t, err)
		equal(t, "set aside", len(q), 1)
		cloud.exec(`UPDATE todos SET owner = 'ann', content = 'oat milk', updated_at = updated_at + 1`)
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "once it is mended", local.content(r), "oat milk")
		q, err = cloud.log.Quarantine(t.Context(), 10)
		must(t, err)
		equal(t, "set aside then", len(q), 0)
	})
}

// S:42. One bad row stays behind, at whichever node it lies, and both show it.
func TestBadRowKeepsNoOtherAwayAndIsShownOnBothNodes(t *testing.T) {
	for _, where := range []string{"cloud", "local"} {
		t.Run(where, func(t *testing.T) {
			linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
				sick, sound := cloud, local
				if where == "local" {
					sick, sound = local, cloud
				}
				sick.write(func(tx *sqlite.Tx) error {
					h, err := sick.addTx(tx, "")
					if err == nil {
						_, err = tx.Exec(`UPDATE todos SET content = CAST(x'ff' AS TEXT) WHERE id = ?`, h.ID) // by hand
					}
					return err
				})
				sick.many(50, 0)
				synctest.Wait()
				equal(t, "good rows, at once", read[int](sound, `SELECT count(*) FROM todos`), 50)
				time.Sleep(time.Minute)
				for end, status := range map[string]link.Status{"local": c.Status(), "cloud": l.server().Status()} {
					here := status.Quarantine[sync.Unencodable] + len(status.Aside)
					if status.Code != "quarantine" || status.State != link.Attention || here != 1 || !strings.Contains(status.Detail, "1 entries") {
						t.Errorf("%s shows %s %q %d", end, status.State, status.Detail, here)
					}
				}
			})
		})
	}
}

func TestClockOfThePeerIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		cloud.skew = 5 * time.Minute
		c, _ := client(local, newLine(cloud), nil, nil)
		must(t, c.Greet(t.Context()))
		equal(t, "skew", c.Status().Skew, 5*time.Minute)
	})
}
