package link_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fault"
	"tandem/internal/loop"
	"tandem/internal/sync/link"
)

// S:52. Whichever node is older, both say so, by name, for as long as it lasts; both
// work on; nothing crosses; and nobody has to do anything once it is upgraded.
func TestOtherProtocolPausesAtBothEndsAndNamesTheNodeToUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		cloud link.Range
	}{
		"the cloud is newer": {link.Range{Min: 2, Max: 3}},
		"the cloud is older": {link.Range{Min: -2, Max: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			older := "local"
			if c.cloud.Max < 1 {
				older = "cloud"
			}
			linked(t, func(t *testing.T, local, cloud *node, l *line, client *link.Client) {
				l.greets.Lock()
				l.hello.Protocol = c.cloud
				l.greets.Unlock()
				time.Sleep(30 * time.Second) // it comes back as another version
				up, down := local.add("of local"), cloud.add("of cloud")
				for range 5 {
					time.Sleep(10 * time.Minute)
					for end, s := range map[string]link.Status{"local": client.Status(), "cloud": l.server().Status()} {
						if s.State != link.Paused || s.Code != "peer_version" || !strings.Contains(s.Detail, "on "+older+": upgrade it") {
							t.Errorf("%s says %s %s %q", end, s.State, s.Code, s.Detail)
						}
					}
				}
				equal(t, "of local, at the cloud", cloud.content(up), "")
				equal(t, "of the cloud, at local", local.content(down), "")
				l.greets.Lock()
				l.hello.Protocol = link.Protocol
				l.greets.Unlock()
				time.Sleep(loop.Longest + time.Second)
				synctest.Wait()
				same(t, local, cloud)
				equal(t, "states then", client.Status().State+" "+l.server().Status().State, "ok ok")
			})
		})
	}
}

// A protocol to come may have other shapes. It is told apart from a stranger.
func TestGreetingOfAnotherProtocolIsReadAsFarAsItGoes(t *testing.T) {
	for body, want := range map[string]*fault.Error{
		`{"node":"cloud","origin":1,"protocol":2,"now":1}`:                            link.ErrPeerVersion,
		`{"node":"cloud","origin":1,"protocol":{"min":2,"max":2},"now":"2026-01-01"}`: link.ErrPeerVersion,
		`{"node":"cloud","origin":1,"protocol":"two","highest":[]}`:                   link.ErrPeerVersion,
		`{"node":"cloud","origin":1,"protocol":{"min":1,"max":7},"new":{"a":[1]}}`:    nil,
		`{"node":"cloud","origin":1,"protocol":1}`:                                    nil,
		`{"node":"cloud","origin":1,"protocol":{"min":1,"max":1},"now":"2026-01-01"}`: link.ErrPeerStranger,
		`{"node":7,"protocol":2}`:                                                     link.ErrPeerStranger,
		`{"protocol":2}`:                                                              link.ErrPeerStranger,
		`{"node":"cloud"`:                                                             link.ErrPeerStranger,
		`{"node":"local","origin":1,"protocol":1}`:                                    link.ErrPeerSelf,
		`{"node":"cloud","origin":0,"protocol":1}`:                                    link.ErrPeerSelf,
		`{"node":"shed","origin":1,"protocol":1}`:                                     link.ErrPeerName,
	} {
		local, cloud := pair(t)
		l := newLine(cloud)
		l.answers(func(path string) *http.Response { return answer(200, "application/json", strings.NewReader(body)) })
		c, _ := client(local, l, nil, nil)
		if err := c.Greet(t.Context()); want == nil && err != nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// S:29. A copy of the file runs as the other node: no row moves, and what to do is
// said at both ends.
func TestCopyOfThisNodesDataIsRefusedAtBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		local.add("of local")
		cloud.add("of cloud")
		l := newLine(cloud)
		c, _ := client(local, l, nil, nil)
		cloud.exec(`UPDATE sync_state SET incarnation = ?`, local.log.Incarnation())
		cloud.restart()
		running(t, c)
		time.Sleep(10 * time.Minute)
		for end, s := range map[string]link.Status{"local": c.Status(), "cloud": l.server().Status()} {
			if s.State != link.Attention || s.Code != "peer_self" || !strings.Contains(s.Detail, "tandem adopt") {
				t.Errorf("%s says %s %s %q", end, s.State, s.Code, s.Detail)
			}
		}
		equal(t, "calls beside greetings", l.since("GET changes")+l.since("POST changes")+l.since("GET digest"), 0)
		equal(t, "entries moved", l.moved, 0)
	})
}

// Whoever was refused and calls nonetheless moves nothing either.
func TestCallsAfterARefusedGreetingAreRefused(t *testing.T) {
	_, cloud := pair(t)
	cloud.add("milk")
	l := newLine(cloud)
	s := l.server()
	call := func(method, path, body string) string {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, "/peer/v1/"+path, strings.NewReader(body)))
		var p struct{ Code string }
		_ = json.Unmarshal(w.Body.Bytes(), &p)
		return fmt.Sprint(w.Code, " ", p.Code)
	}
	equal(t, "before any greeting", call("GET", "changes", ""), "200 ")
	equal(t, "a greeting", call("POST", "hello", `{"node":"local","origin":0,"protocol":{"min":2,"max":2}}`), "200 ")
	for _, c := range []string{"GET changes", "POST changes", "GET digest", "GET rows"} {
		method, path, _ := strings.Cut(c, " ")
		equal(t, c, call(method, path, `{"from":"","to":"","rows":[]}`), "409 peer_version")
	}
	equal(t, "a greeting", call("POST", "hello", `{"node":"cloud","origin":0,"protocol":1}`), "200 ")
	equal(t, "GET changes", call("GET", "changes", ""), "409 peer_self")
	equal(t, "a greeting", call("POST", "hello", `{"node":"local","origin":0,"protocol":1}`), "200 ")
	equal(t, "after a good one", call("GET", "changes", ""), "200 ")
	equal(t, "nowhere", call("GET", "nowhere", ""), "404 no_such_route")
	equal(t, "another method", call("PUT", "changes", ""), "405 method_not_allowed")
}

// A file that was lost does not remember the ids it gave out; the other node does.
func TestIDsBeginAboveThoseThatThePeerHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		c, _ := client(local, l, nil, nil)
		for range 3 {
			local.add("x")
			cloud.add("x")
		}
		rest(t, c)
		local.exec(`DELETE FROM todos`)
		cloud.exec(`DELETE FROM todos WHERE origin = 1`)
		local.restart()
		cloud.restart()
		c, _ = client(local, l, nil, nil)
		cloud.exec(`INSERT INTO todos SELECT * FROM todos WHERE 0`)
		must(t, c.Greet(t.Context()))
		equal(t, "at local", local.add("new").String(), "0-4")
		local.exec(`UPDATE todos SET origin = 1, id = 9`)
		must(t, c.Greet(t.Context()))
		equal(t, "at the cloud", cloud.add("new").String(), "1-10")
	})
}

// Both nodes know what the other could not take; a greeting stays small.
func TestGreetingTellsOfAHundredEntriesInQuarantineAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		c, _ := client(local, l, nil, nil)
		var bad []string
		for i := range 130 {
			bad = append(bad, fmt.Sprintf(`{"table":"todos","origin":0,"id":%d,"uid":"%032x","owner":"ann","updated_at":5,"updated_by":"local","due_at":"soon"}`, i+1, i+1))
		}
		offer(t, l, `{"from":"","to":"x","rows":[`+strings.Join(bad, ",")+`]}`)
		must(t, c.Greet(t.Context()))
		s := c.Status()
		equal(t, "told", len(s.Aside), 100)
		equal(t, "state", s.State+" "+s.Code, "attention quarantine")
		equal(t, "of the table", s.Aside[0].Table, "todos")
		equal(t, "at the cloud", l.server().Status().State, link.Attention)
	})
}
