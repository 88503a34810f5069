package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"tandem/bench/far"
)

// far100 is the way between two continents, on a bad day.
var far100 = far.Line{Delay: 50 * time.Millisecond, Loss: 0.01, Seed: 1}

const cutFor = 2 * time.Second

// crossing is a first sync over a long line.
type crossing struct {
	took  time.Duration
	bytes int64 // given to the line, both directions
}

func (b *bench) farAway(ctx context.Context) error {
	whole, err := b.cross(ctx, false)
	if err != nil {
		return err
	}
	cut, err := b.cross(ctx, true)
	if err != nil {
		return err
	}
	b.figures.add(ours, farAway, secs, whole.took.Seconds())
	b.figures.add(ours, farAway, onLine, float64(whole.bytes)/1e6)
	b.figures.add(ours, farCut, secs, cut.took.Seconds())
	b.figures.add(ours, farCut, asOnce, float64(cut.bytes)/float64(whole.bytes))
	return nil
}

// cross is a first sync of home from the cloud over far100. With cut the line fails
// when half of the rows are there.
func (b *bench) cross(ctx context.Context, cut bool) (c crossing, err error) {
	from, err := b.stocked(ctx, many)
	if err != nil {
		return c, err
	}
	p, err := b.newPair(from)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	proxy, err := far.Listen(far100, p.cloud.at.addr)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	if err := p.lead(proxy.Addr()); err != nil {
		return c, err
	}
	if err := p.cloud.run(ctx); err != nil {
		return c, err
	}
	spawned := time.Now()
	if err := p.home.run(ctx); err != nil {
		return c, err
	}
	var done atomic.Bool
	at, err := p.home.holds(ctx, many, enough, func(have int64) {
		if cut && have >= many/2 && done.CompareAndSwap(false, true) {
			proxy.Cut(cutFor)
		}
	})
	if err == nil && cut && !done.Load() {
		err = errors.New("all rows came at once, and nothing was cut")
	}
	return crossing{at.Sub(spawned), proxy.Bytes()}, err
}
