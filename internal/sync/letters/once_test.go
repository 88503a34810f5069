package letters_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tandem/internal/sync/letters"
)

// post is two nodes and what is under way between them: calls and acks that arrive
// late, twice, in any order or never.
type post struct {
	rt       *rapid.T
	nodes    [2]*node
	sent     [2]int // letters sent by each node so far
	calls    [2][]call
	acks     [2][]ack
	backups  [2][][]byte
	restored [2]bool
	months   bool // long enough to forget what was acked
}

type ack struct {
	of   call
	keys []string
	lost bool
}

func (p *post) pick() int { return rapid.IntRange(0, 1).Draw(p.rt, "node") }

func (p *post) send(*rapid.T) {
	i := p.pick()
	p.sent[i]++
	owner := rapid.SampledFrom([]string{"ann", "ben"}).Draw(p.rt, "owner")
	p.nodes[i].send(letter(fmt.Sprintf("%s/%d/%d", owner, i, p.sent[i]), owner))
}

// offer has a node write down what it would say in a call.
func (p *post) offer(*rapid.T) {
	i := p.pick()
	p.calls[i] = append(p.calls[i], p.nodes[i].offered())
}

// arrive has a call come to the other node, for the first time or again.
func (p *post) arrive(*rapid.T) {
	i := p.pick()
	if len(p.calls[i]) == 0 {
		return
	}
	to := p.nodes[1-i]
	c := rapid.SampledFrom(p.calls[i]).Draw(p.rt, "call")
	if len(c.letters) > 0 && rapid.IntRange(0, 2).Draw(p.rt, "trouble") == 0 {
		l := rapid.SampledFrom(c.letters).Draw(p.rt, "letter")
		to.refuse[l.Key] = errBusy
	}
	keys, err := to.box.Receive(context.Background(), c.after, c.letters)
	clear(to.refuse)
	p.acks[i] = append(p.acks[i], ack{c, keys, errors.Is(err, letters.ErrPutBack)})
}

func (p *post) acked(*rapid.T) {
	i := p.pick()
	if len(p.acks[i]) == 0 {
		return
	}
	a := rapid.SampledFrom(p.acks[i]).Draw(p.rt, "ack")
	if a.lost {
		must(p.nodes[i].t, p.nodes[i].box.OfferAgain(context.Background(), a.of.after))
	}
	p.nodes[i].acked(a.of, a.keys...)
}

func (p *post) backup(*rapid.T) {
	i := p.pick()
	p.backups[i] = append(p.backups[i], p.nodes[i].backup())
}

// restore puts a node back. What it sent since the backup is gone with it.
func (p *post) restore(*rapid.T) {
	i := p.pick()
	if len(p.backups[i]) == 0 {
		return
	}
	p.nodes[i].restore(rapid.SampledFrom(p.backups[i]).Draw(p.rt, "backup"))
	p.restored[i] = true
}

func (p *post) pass(*rapid.T) {
	if !p.months {
		return
	}
	time.Sleep(rapid.SampledFrom([]time.Duration{time.Second, 24 * time.Hour, 29 * 24 * time.Hour}).Draw(p.rt, "time"))
	p.nodes[0].purge()
	p.nodes[1].purge()
}

// rest lets all that is left cross.
func (p *post) rest() {
	for range 4 {
		cross(p.nodes[0], p.nodes[1])
		cross(p.nodes[1], p.nodes[0])
	}
}

func (p *post) check() {
	for i, n := range p.nodes {
		done := strings.Fields(n.done())
		once := slices.Compact(slices.Sorted(slices.Values(done)))
		if len(once) != len(done) {
			p.rt.Fatalf("acted more than once: %v", done)
		}
		if p.nodes[1-i].waits() {
			p.rt.Fatal("a letter still waits")
		}
		if !p.restored[1-i] && !p.months && len(done) != p.sent[1-i] {
			p.rt.Fatalf("%d letters were sent, %d acted: %v", p.sent[1-i], len(done), done)
		}
		if p.restored[0] || p.restored[1] {
			continue // a call from before may have come between
		}
		last := map[string]int{}
		for _, key := range done {
			var number int
			owner, rest, _ := strings.Cut(key, "/")
			_, _ = fmt.Sscanf(rest[2:], "%d", &number)
			if number < last[owner] {
				p.rt.Fatalf("out of the order of its owner: %v", done)
			}
			last[owner] = number
		}
	}
}

func newPost(t *testing.T, rt *rapid.T) *post {
	return &post{rt: rt, nodes: [2]*node{newNode(t), newNode(t)}}
}

// Each letter acts once, and those of an owner in their order, whatever is lost,
// doubled, late or refused for a while.
func TestEachLetterActsOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPost(t, rt)
		rt.Repeat(map[string]func(*rapid.T){
			"send": p.send, "send more": p.send, "offer": p.offer, "arrive": p.arrive, "arrive too": p.arrive,
			"acked":   p.acked,
			"restart": func(*rapid.T) { p.nodes[p.pick()].restart() },
		})
		p.rest()
		p.check()
	})
}

// The same with files that are put back, and with months between: no letter acts twice
// in what a node still knows, and none is lost that its sender still has.
func TestNoLetterActsTwiceOrIsLostWhateverIsPutBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPost(t, rt)
			p.months = rapid.Bool().Draw(rt, "months")
			rt.Repeat(map[string]func(*rapid.T){
				"send": p.send, "offer": p.offer, "arrive": p.arrive, "acked": p.acked,
				"backup": p.backup, "restore": p.restore, "pass": p.pass,
			})
			p.rest()
			p.check()
		})
	})
}
