package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fault"
	"tandem/internal/loop"
	"tandem/internal/sqlite"
	"tandem/internal/sync/letters"
	"tandem/internal/sync/link"
)

// post is a node's letters, and what those of the other have done here.
type post struct {
	*letters.Box
	n       *node
	done    []string
	refuse  error
	changed func()
}

func (n *node) post() *post {
	p := &post{n: n, changed: func() {}}
	p.Box = letters.NewBox(n.db, letters.Options{
		OnChange: func() { p.changed() },
		Handle: func(_ *sqlite.Tx, l letters.Letter) error {
			if p.refuse != nil && l.Owner == "ben" {
				return p.refuse
			}
			p.done = append(p.done, l.Key)
			return nil
		},
	})
	return p
}

func (p *post) send(key, owner string) {
	p.n.t.Helper()
	p.n.write(func(tx *sqlite.Tx) error {
		return p.SendTx(tx, letters.Letter{Key: key, Owner: owner, Kind: "message", Body: json.RawMessage(`{"text":"` + key + `"}`)})
	})
}

func (p *post) acted() string { return strings.Join(p.done, " ") }

// corresponding runs a test in a bubble with two nodes that exchange letters.
func corresponding(t *testing.T, test func(t *testing.T, local, cloud *post, l *line, c *link.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, c := newLine(nil), (*link.Client)(nil)
		local, cloud := pair(t)
		home, away := local.post(), cloud.post()
		l.cloud, l.letters = cloud, away.Box
		away.changed = cloud.log.Announce
		c = link.NewClient(local.log, newPeer(l), link.ClientOptions{
			Letters: home.Box, Crash: func(string) {}, Logger: slog.New(slog.DiscardHandler),
			Hello: func() link.Hello { return link.Hello{Node: "local", Now: time.Now().UnixMilli()} },
		})
		home.changed = c.LettersWait
		test(t, home, away, l, c)
	})
}

func TestLettersCrossBothWaysAtOnce(t *testing.T) {
	corresponding(t, func(t *testing.T, local, cloud *post, l *line, c *link.Client) {
		running(t, c)
		time.Sleep(time.Second)
		began := time.Now()
		for i := range 250 {
			cloud.send(fmt.Sprint("down", i), "ann")
		}
		local.send("up", "ann")
		synctest.Wait()
		equal(t, "after", time.Since(began), 0)
		equal(t, "at the cloud", cloud.acted(), "up")
		equal(t, "at local", len(local.done), 250)
		for i, key := range local.done {
			if want := fmt.Sprint("down", i); key != want {
				t.Fatal(key, "acted where", want, "was next")
			}
		}
		for _, p := range []*post{local, cloud} {
			waiting, err := p.Next(t.Context())
			must(t, err)
			equal(t, "waiting", waiting, "")
		}
		l.since("")
		time.Sleep(time.Hour)
		if n := l.since("GET letters"); n > 6 { // the poll tells of those that wait
			t.Error(n, "calls for letters in a quiet hour")
		}
		for range 3 { // whenever the letters were asked for last
			time.Sleep(3 * time.Minute)
			began = time.Now()
			cloud.send(fmt.Sprint("late ", began), "ann")
			synctest.Wait()
			equal(t, "after", time.Since(began), 0)
			equal(t, "the last at local", local.done[len(local.done)-1], fmt.Sprint("late ", began))
		}
		local.send("late up", "ann")
		synctest.Wait()
		equal(t, "at the cloud then", cloud.acted(), "up late up")
	})
}

// S:47. The answer is lost, the line is cut, the process dies: each letter acts once.
func TestLetterActsOnceWhateverIsLost(t *testing.T) {
	for lose := range 6 {
		t.Run(fmt.Sprint(lose), func(t *testing.T) {
			corresponding(t, func(t *testing.T, local, cloud *post, l *line, c *link.Client) {
				must(t, c.Greet(t.Context()))
				local.send("up", "ann")
				cloud.send("down", "ann")
				for i := range lose { // this one, and those before it
					l.lose = 1 + i
					for range 1 + i {
						_ = c.Exchange(t.Context())
					}
					l.lose = 0
				}
				must(t, c.Exchange(t.Context()))
				must(t, c.Exchange(t.Context()))
				equal(t, "at local", local.acted(), "down")
				equal(t, "at the cloud", cloud.acted(), "up")
			})
		})
	}
}

// A letter that cannot be taken yet comes again by time, and meanwhile neither ends
// each poll nor keeps the letters of others away.
func TestLetterThatCannotBeTakenYetWaitsWithoutHaste(t *testing.T) {
	corresponding(t, func(t *testing.T, local, cloud *post, l *line, c *link.Client) {
		running(t, c)
		time.Sleep(time.Second)
		local.refuse = errors.New("disk full")
		cloud.send("a", "ben")
		cloud.send("b", "ann")
		time.Sleep(time.Minute)
		equal(t, "of others", local.acted(), "b")
		equal(t, "state", c.Status().State, link.Attention)
		l.since("")
		time.Sleep(time.Hour)
		if n := l.since("GET changes"); n > 200 {
			t.Error(n, "polls in an hour")
		}
		local.refuse = nil
		time.Sleep(loop.Longest)
		synctest.Wait()
		equal(t, "once it can", local.acted(), "b a")
		time.Sleep(time.Minute)
		equal(t, "state then", c.Status().State, link.OK)
	})
}

// The reader's file is another one: what the old one had taken comes again.
func TestLettersComeAgainToAReaderOfAnotherIncarnation(t *testing.T) {
	corresponding(t, func(t *testing.T, local, cloud *post, l *line, c *link.Client) {
		must(t, c.Greet(t.Context()))
		local.send("up", "ann")
		must(t, c.Exchange(t.Context()))
		equal(t, "at the cloud", cloud.acted(), "up")
		fresh := newNode(t, "cloud", 1)
		fresh.exec(`UPDATE sync_state SET incarnation = 'another'`)
		fresh.restart()
		again := fresh.post()
		l.cloud, l.letters = fresh, again.Box
		must(t, c.Exchange(t.Context()))
		equal(t, "at the new file", again.acted(), "up")
	})
}

func TestWaitingLetterEndsAPoll(t *testing.T) {
	corresponding(t, func(t *testing.T, local, cloud *post, l *line, c *link.Client) {
		began := time.Now()
		time.AfterFunc(7*time.Second, func() { cloud.send("a", "ann") })
		p := poll(context.Background(), l, "", map[string]string{"letters": ""}, time.Minute)
		equal(t, "news", fmt.Sprint(p.Sets, time.Since(began)), "map[letters:a] 7s")
		equal(t, "to one who has heard", fmt.Sprint(poll(context.Background(), l, "", map[string]string{"letters": "a"}, time.Second).Sets), "map[]")
		equal(t, "to one who does not ask", fmt.Sprint(poll(context.Background(), l, "", nil, time.Second).Sets), "map[]")
	})
}

// A letter of which nothing comes is acked with the reason, and both nodes show it.
func TestALetterThatIsParkedIsShownByBothNodes(t *testing.T) {
	corresponding(t, func(t *testing.T, local, cloud *post, l *line, c *link.Client) {
		for name, run := range map[string]struct {
			refuse error
			code   string
			asks   bool // for somebody's attention
		}{
			"known by no version": {letters.ErrUnknownKind, "letter_of_unknown_kind", true},
			"too late":            {fault.New(fault.Conflict, "run_over", "That run is over."), "run_over", false},
		} {
			must(t, c.Greet(t.Context()))
			local.refuse, cloud.refuse = run.refuse, run.refuse
			cloud.send("down "+name, "ben")
			local.send("up "+name, "ben")
			must(t, c.Exchange(t.Context()))
			must(t, c.Greet(t.Context()))
			must(t, c.Greet(t.Context()))
			if line := `letter="down ` + name + `" kind=message code=` + run.code; strings.Count(l.said.String(), line) != 1 {
				t.Errorf("the sender's log lacks %s:\n%s", line, l.said.String())
			}
			for end, status := range map[string]link.Status{"local": c.Status(), "cloud": l.server().Status()} {
				here, there := "down "+name, "up "+name
				if end == "cloud" {
					here, there = there, here
				}
				equal(t, end+": here", fmt.Sprint(status.Parked[0].Key, " ", status.Parked[0].Code), here+" "+run.code)
				equal(t, end+": there", fmt.Sprint(status.ParkedThere[0].Key, " ", status.ParkedThere[0].Code), there+" "+run.code)
				if run.asks {
					equal(t, end+": state", status.State+" "+status.Code, "attention letters_parked")
				}
			}
			for _, p := range []*post{local, cloud} {
				p.n.exec(`DELETE FROM letters_parked WHERE code = 'letter_of_unknown_kind'`)
			}
			must(t, c.Greet(t.Context()))
			must(t, c.Greet(t.Context()))
			equal(t, "state, once it is tried again", c.Status().State+l.server().Status().State, "okok")
		}
	})
}
