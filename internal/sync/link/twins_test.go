package link_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sync/link"
)

// as returns a client of one process of local.
func as(local *node, l *line, p link.Process) *link.Client {
	local.process = p
	c, _ := client(local, l, nil, nil)
	return c
}

// greets has a process of local's greet the cloud, and returns what both then say.
func greets(t *testing.T, l *line, process string) (told, cloud string) {
	t.Helper()
	local := newNode(t, "local", 0)
	c := as(local, l, link.Process{ID: process, Host: "host-of-" + process})
	_ = c.Greet(t.Context())
	s := l.server().Status()
	return c.Status().Code, s.State + " " + s.Code
}

func TestProcessThatFollowsAnotherIsNoTwin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		l := newLine(cloud)
		// A restart, another, one whose greeting comes late, a restart back to back.
		for i, process := range strings.Fields("a a b b a b b c d e f g h i j k l m n o o") {
			told, said := greets(t, l, process)
			equal(t, fmt.Sprint("greeting ", i, " of ", process), told+said, "ok ")
			time.Sleep(20 * time.Second)
		}
	})
}

// S:29. The folder of a node that runs is copied, and the copy runs too.
func TestTwoProcessesUnderOneNameAreToldAtAllThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cloud := pair(t)
		l := newLine(cloud)
		for range 2 {
			greets(t, l, "a")
			greets(t, l, "b")
			time.Sleep(20 * time.Second)
		}
		for _, process := range []string{"a", "b", "a"} {
			told, said := greets(t, l, process)
			equal(t, "told "+process, told, "peer_twin")
			equal(t, "said by the cloud", said, "attention peer_twin")
		}
		detail := l.server().Status().Detail
		for _, host := range []string{"host-of-a", "host-of-b", "local"} {
			if !strings.Contains(detail, host) {
				t.Errorf("%q does not name %s", detail, host)
			}
		}
		call := func() error { return newPeer(l).Call(t.Context(), http.MethodGet, "changes", nil, nil) }
		if err := call(); err == nil || !strings.Contains(err.Error(), "peer_twin") {
			t.Errorf("a call of either: %v", err)
		}
		// One is stopped: the other goes on by itself.
		for told := "peer_twin"; told != ""; told, _ = greets(t, l, "b") {
			time.Sleep(20 * time.Second)
		}
		must(t, call())
	})
}

// The other way round: two clouds answer at one address.
func TestTwoProcessesThatAnswerUnderOneNameAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		c := as(local, l, link.Process{ID: "local"})
		for i := range 6 {
			l.greets.Lock()
			l.hello.Process = link.Process{ID: fmt.Sprint(i % 2), Host: fmt.Sprint("host-of-", i%2)}
			l.greets.Unlock()
			_ = c.Greet(t.Context())
			time.Sleep(20 * time.Second)
		}
		s := c.Status()
		if s.State != link.Attention || s.Code != "peer_twin" || !strings.Contains(s.Detail, "Two processes run as cloud") {
			t.Errorf("it says %s %s %q", s.State, s.Code, s.Detail)
		}
	})
}

// S:29. What two processes that run beside each other do, and that the one that is left
// goes on without anybody's help.
func TestTwinsMoveNothingUntilOneIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		copied := newNode(t, "local", 0)
		l := newLine(cloud)
		running(t, as(local, l, link.Process{ID: "a"}))
		stop := started(as(copied, l, link.Process{ID: "b"}))
		time.Sleep(2 * time.Minute)
		up, down := local.add("of local"), cloud.add("of cloud")
		l.since("")
		time.Sleep(10 * time.Minute)
		equal(t, "at the cloud", cloud.content(up), "")
		equal(t, "at local", local.content(down), "")
		if n := l.since("GET changes"); n > 0 {
			t.Error(n, "polls")
		}
		stop()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		equal(t, "at the cloud then", cloud.content(up), "of local")
		equal(t, "at local then", local.content(down), "of cloud")
		equal(t, "state", l.server().Status().State, link.OK)
	})
}
