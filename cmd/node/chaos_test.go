package main

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// chaos is what happens to two nodes and the line between them, one thing after
// another.
type chaos struct {
	*storm
	line    *faultLine
	r       *rand.Rand
	crashes []int          // of todoCrashes, those to come
	did     map[string]int // how often
}

func TestNothingIsLostInAStorm(t *testing.T) { // S:5, S:6, S:9, S:45
	t.Parallel()
	w, l := chaotic(t)
	w.cloud.start()
	w.home.start()
	c := &chaos{storm: newStorm(w), line: l, did: map[string]int{}}
	c.r = c.random(0)
	c.keep(10)
	eventually(t, w.settle)
	c.rage(2, c.trouble)
	t.Logf("what happened: %v", c.did)
	c.calm(90 * time.Second)
}

// trouble makes one trouble after another, and ends with none.
func (c *chaos) trouble(ctx context.Context) {
	over := time.Now().Add(*stormFor)
	for time.Now().Before(over) {
		if len(c.crashes) == 0 {
			c.crashes = c.r.Perm(len(todoCrashes))
		}
		switch c.r.IntN(6) {
		case 0:
			c.cut()
		case 1:
			c.part(ctx)
		case 2:
			c.stalled()
		case 3:
			c.kill()
		default:
			c.crash()
		}
		c.line.become(fate{})
		time.Sleep(c.between(0, 300*time.Millisecond))
	}
}

func (c *chaos) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.r.Int64N(int64(most-least)))
}

// cut has each connection break off somewhere, and be slow until then.
func (c *chaos) cut() {
	c.did["cut"]++
	f := fate{}
	f.after[c.r.IntN(2)] = int64(100 + c.r.IntN(8000))
	if slow := c.between(0, 60*time.Millisecond); c.r.IntN(2) == 0 {
		f.delay = func() time.Duration { return slow }
	}
	c.line.become(f)
	time.Sleep(c.between(300*time.Millisecond, 1500*time.Millisecond))
}

// part has the nodes be apart, and a todo edited at both.
func (c *chaos) part(ctx context.Context) {
	c.did["parted"]++
	c.line.become(fate{refuses: true})
	c.collide(ctx)
	time.Sleep(c.between(100*time.Millisecond, time.Second))
}

func (c *chaos) stalled() {
	c.did["stalled"]++
	c.line.stall()
	time.Sleep(c.between(200*time.Millisecond, time.Second))
	if c.r.IntN(2) == 0 {
		c.line.forget()
		time.Sleep(c.between(100*time.Millisecond, 500*time.Millisecond))
		return
	}
	c.line.resume()
}

// kill ends a node anywhere.
func (c *chaos) kill() {
	p := c.nodes()[c.r.IntN(2)]
	c.did["killed"]++
	_ = p.kill()
	time.Sleep(c.between(0, 300*time.Millisecond))
	p.start()
}

// crash ends a node at a point on the way of a todo.
func (c *chaos) crash() {
	at := todoCrashes[c.crashes[0]]
	c.crashes = c.crashes[1:]
	p := c.node(at.dies)
	_ = p.kill()
	p.launch("CRASH_AT=" + at.point)
	what := at.dies + " died at " + at.point
	if !p.diesWithin(3 * time.Second) {
		what = at.dies + " did not come to " + at.point
	}
	c.did[what]++
	p.start()
}

// diesWithin reports whether the process has ended by itself by then. It has ended in
// any case.
func (p *process) diesWithin(limit time.Duration) bool {
	c := p.process
	p.process = nil
	killed := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
	_ = c.Wait() // says that it was killed
	return killed.Stop()
}
