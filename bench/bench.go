package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// rows that are there before anything is read.
const seeded = 500

// bench measures contenders in turn, as good as alone on the machine.
type bench struct {
	seconds    int
	root       string // folders of the servers, removed at the end
	contenders map[string]contender
	pouch      *pouch         // nil: not measured
	stocks     map[int]string // folders of pairs whose cloud has so many todos
	away       string         // folder of a pair whose home has them and whose cloud has none
	figures    *figures
	progress   io.Writer
}

// part is one of the works that -only picks from, with a side for each who does it.
type part struct {
	name  string
	works []work
	sides []side
}

// side is how one contender is measured.
type side struct {
	who     string
	measure func(*bench, context.Context) error
}

var parts = []part{
	{"creates", []work{create16}, each(creating(create16, 16))},
	{"creates", []work{create64}, each(creating(create64, 64))},
	{"list", []work{listPlain, listCounted}, each((*bench).lists)},
	{"view", []work{viewOne}, each((*bench).views)},
	{"start", []work{startEmpty, startAgain}, each((*bench).starts)},
	{"memory", []work{idle, loaded}, each((*bench).memory)},
	{"sync", []work{firstFetch}, []side{{ours, (*bench).firstFetch}, {pouchName, (*bench).pouchPull}}},
	{"sync", []work{firstOffer}, []side{{ours, (*bench).firstOffer}}},
	{"sync", []work{growth}, []side{{ours, (*bench).growth}}},
	{"far", []work{farAway, farCut}, []side{{ours, (*bench).farAway}}},
	{"live", []work{liveAlone, liveAmong}, []side{{ours, (*bench).liveDown}, {pouchName, (*bench).pouchLive}}},
	{"live", []work{liveUpAlone, liveUpAmong}, []side{{ours, (*bench).liveUp}}},
	{"log", []work{logSize}, []side{{ours, (*bench).logSize}}},
}

// each has the two servers measured alike.
func each(measure func(*bench, context.Context, contender) error) []side {
	var both []side
	for _, who := range []string{ours, pocketbaseName} {
		both = append(both, side{who, func(b *bench, ctx context.Context) error { return measure(b, ctx, b.contenders[who]) }})
	}
	return both
}

// takesPart is whether a contender was built.
func (b *bench) takesPart(who string) bool {
	_, built := b.contenders[who]
	return built || who == pouchName && b.pouch != nil
}

// round measures each part for each contender, one after the other. What goes
// wrong is kept for the report, and the next part is tried.
func (b *bench) round(ctx context.Context, parts []part) error {
	for _, p := range parts {
		for _, s := range p.sides {
			if !b.takesPart(s.who) {
				continue
			}
			fmt.Fprintf(b.progress, "  %s: %s\n", p.name, s.who)
			err := s.measure(b, ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil {
				continue
			}
			fmt.Fprintf(b.progress, "  %s: %s: %v\n", p.name, s.who, err)
			for _, w := range p.works {
				b.figures.fail(s.who, w, err)
			}
		}
	}
	return nil
}

// creating fills a fresh folder.
func creating(w work, connections int) func(*bench, context.Context, contender) error {
	return func(b *bench, ctx context.Context, c contender) error {
		return b.fresh(ctx, c, func(s session) error {
			out, err := b.creates(s, connections).run(ctx, s.base(), s.dir)
			if err == nil {
				b.figures.addOutcome(c.name, w, out)
			}
			return err
		})
	}
}

// lists asks for each distinct path once, and lets it count for each line that
// names it.
func (b *bench) lists(ctx context.Context, c contender) error {
	return b.fresh(ctx, c, func(s session) error {
		if _, err := s.seed(); err != nil {
			return err
		}
		known := map[string]outcome{}
		for _, w := range []work{listPlain, listCounted} {
			path := c.lists[w]
			out, ok := known[path]
			if !ok {
				if err := s.page(path); err != nil {
					return err
				}
				var err error
				if out, err = b.reads(s, path).run(ctx, s.base(), s.dir); err != nil {
					return err
				}
				known[path] = out
			}
			b.figures.addOutcome(c.name, w, out)
		}
		return nil
	})
}

// views reads all seeded rows in turn, one a request.
func (b *bench) views(ctx context.Context, c contender) error {
	return b.fresh(ctx, c, func(s session) error {
		ids, err := s.seed()
		if err != nil {
			return err
		}
		paths := make([]string, len(ids))
		for i, id := range ids {
			if err := s.see(id); err != nil {
				return err
			}
			paths[i] = c.view(id)
		}
		out, err := b.reads(s, paths...).run(ctx, s.base(), s.dir)
		if err == nil {
			b.figures.addOutcome(c.name, viewOne, out)
		}
		return err
	})
}

// starts takes five of each, for one is over in a blink: five on folders that
// do not exist, five on one with an account and todos that was stopped cleanly.
func (b *bench) starts(ctx context.Context, c contender) error {
	const times = 5
	for range times {
		at, err := c.settle(b.root)
		if err != nil {
			return err
		}
		if err := b.startOnce(ctx, c, at, startEmpty); err != nil {
			return err
		}
	}
	at, err := b.prepared(ctx, c)
	if err != nil {
		return err
	}
	err = b.with(ctx, c, at, func(s *server) error {
		in, err := s.logIn()
		if err != nil {
			return err
		}
		_, err = in.seed()
		return err
	})
	if err != nil {
		return err
	}
	for range times {
		if err := b.startOnce(ctx, c, at, startAgain); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) startOnce(ctx context.Context, c contender, at site, w work) error {
	s, err := c.start(ctx, at)
	if err != nil {
		return err
	}
	b.figures.add(c.name, w, millis, s.took.Seconds()*1000)
	return s.stop()
}

// memory looks at a server five seconds after it is ready, before anybody logs
// in, and again after creates at 64 and lists at 16 connections: the peak holds
// the login's password hash too.
func (b *bench) memory(ctx context.Context, c contender) error {
	at, err := b.prepared(ctx, c)
	if err != nil {
		return err
	}
	defer os.RemoveAll(at.dir)
	return b.with(ctx, c, at, func(s *server) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
		}
		before, err := readMemory(s.cmd.Process.Pid)
		if err != nil {
			return err
		}
		in, err := s.logIn()
		if err != nil {
			return err
		}
		for _, l := range []load{b.creates(in, 64), b.reads(in, c.lists[listPlain])} {
			if _, err := l.run(ctx, s.base(), s.dir); err != nil {
				return err
			}
		}
		after, err := readMemory(s.cmd.Process.Pid)
		if err != nil {
			return err
		}
		b.figures.add(c.name, idle, mebi, before.resident)
		b.figures.add(c.name, loaded, mebi, after.peak)
		return nil
	})
}

func (b *bench) creates(s session, connections int) load {
	return load{script: "create", token: s.token, paths: []string{s.create}, connections: connections, seconds: b.seconds}
}

func (b *bench) reads(s session, paths ...string) load {
	return load{script: "read", token: s.token, paths: paths, connections: 16, seconds: b.seconds}
}

// prepared is a fresh folder with an account and no server. What the one
// before left in the page cache is written first, so that nobody pays for it.
func (b *bench) prepared(ctx context.Context, c contender) (site, error) {
	at, err := c.settle(b.root)
	if err != nil {
		return site{}, err
	}
	err = c.enrol(ctx, at)
	syscall.Sync()
	return at, err
}

// with runs do beside a server on the folder, which is stopped whatever happens.
func (b *bench) with(ctx context.Context, c contender, at site, do func(*server) error) error {
	s, err := c.start(ctx, at)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.stop())
}

// fresh is with on a new folder, logged in, after one todo was made rightly.
// The folder goes afterwards: a fast server fills hundreds of MiB.
func (b *bench) fresh(ctx context.Context, c contender, do func(session) error) error {
	at, err := b.prepared(ctx, c)
	if err != nil {
		return err
	}
	defer os.RemoveAll(at.dir)
	return b.with(ctx, c, at, func(s *server) error {
		in, err := s.logIn()
		if err != nil {
			return err
		}
		if _, err := in.add("a first todo, to see that it is taken"); err != nil {
			return err
		}
		return do(in)
	})
}

// seed adds the rows that reads need, and returns their ids.
func (s session) seed() ([]string, error) {
	ids := make([]string, seeded)
	for i := range ids {
		id, err := s.add(fmt.Sprintf("todo %d of the seed: return the ladder to the neighbours", i))
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}
