package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// many is how many rows a first sync has.
const many = 100_000

// enough bounds what is over in seconds.
const enough = 3 * time.Minute

// firstSync is one first sync from the one node to the other.
type firstSync struct {
	took           time.Duration // from the spawn of home until the reader held all rows
	cpu            time.Duration // of both processes
	reader, writer memory
}

// sync starts the cloud, then home, and waits until the one who reads holds n todos.
// The clock runs from the spawn of home: its start, the greeting and the accounts
// are in the figure.
func (b *bench) sync(ctx context.Context, p *pair, reads, read *node, n int) (f firstSync, err error) {
	if err := p.cloud.run(ctx); err != nil {
		return f, err
	}
	spawned := time.Now()
	if err := p.home.run(ctx); err != nil {
		return f, err
	}
	at, err := reads.holds(ctx, int64(n), enough, func(int64) {})
	if err != nil {
		return f, err
	}
	f.took = at.Sub(spawned)
	var failed error
	f.reader, err = readMemory(reads.s.cmd.Process.Pid)
	f.writer, failed = readMemory(read.s.cmd.Process.Pid)
	err = errors.Join(err, failed)
	for _, n := range []*node{reads, read} {
		took, failed := readCPU(n.s.cmd.Process.Pid)
		f.cpu, err = f.cpu+took, errors.Join(err, failed)
	}
	fmt.Fprintf(b.progress, "    %d rows in %.2f s, with %.2f s of CPU\n", n, f.took.Seconds(), f.cpu.Seconds())
	return f, err
}

// fetch is a first sync of n rows that the cloud has.
func (b *bench) fetch(ctx context.Context, n int) (f firstSync, err error) {
	from, err := b.stocked(ctx, n)
	if err != nil {
		return f, err
	}
	p, err := b.newPair(from)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	return b.sync(ctx, p, p.home, p.cloud, n)
}

func (b *bench) firstFetch(ctx context.Context) error {
	f, err := b.fetch(ctx, many)
	if err == nil {
		b.figures.addSync(ours, firstFetch, many, f)
	}
	return err
}

func (b *bench) firstOffer(ctx context.Context) (err error) {
	from, err := b.abroad(ctx, many)
	if err != nil {
		return err
	}
	p, err := b.newPair(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	f, err := b.sync(ctx, p, p.cloud, p.home, many)
	if err == nil {
		b.figures.addSync(ours, firstOffer, many, f)
	}
	return err
}

// growth is what four times as many rows cost in memory: nothing, where pages are
// what is held.
func (b *bench) growth(ctx context.Context) error {
	small, err := b.fetch(ctx, many/2)
	if err != nil {
		return err
	}
	large, err := b.fetch(ctx, many*2)
	if err != nil {
		return err
	}
	b.figures.add(ours, growth, readerPeak, large.reader.peak-small.reader.peak)
	b.figures.add(ours, growth, writerPeak, large.writer.peak-small.writer.peak)
	return nil
}

func (f *figures) addSync(who string, w work, n int, s firstSync) {
	f.add(who, w, rowRate, float64(n)/s.took.Seconds())
	f.add(who, w, cpu, float64(s.cpu.Microseconds())/float64(n))
	f.add(who, w, readerPeak, s.reader.peak)
	f.add(who, w, writerPeak, s.writer.peak)
}

// pouchPull is firstFetch of the rival: express-pouchdb, filled before, and a pull
// into an empty database. Its clock begins when both processes stand.
func (b *bench) pouchPull(ctx context.Context) error {
	stock, err := b.pouch.stocked(ctx, b, many)
	if err != nil {
		return err
	}
	return b.pouch.with(ctx, stock, func(s *server) error {
		dir, err := os.MkdirTemp(b.root, "pull-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		before, err := readCPU(s.cmd.Process.Pid)
		if err != nil {
			return err
		}
		f, err := b.pouch.pull(ctx, s.base()+"/todos", dir, many)
		if err != nil {
			return err
		}
		after, err := readCPU(s.cmd.Process.Pid)
		if err != nil {
			return err
		}
		f.cpu += after - before
		if f.writer, err = readMemory(s.cmd.Process.Pid); err != nil {
			return err
		}
		b.figures.addSync(pouchName, firstFetch, many, f)
		return nil
	})
}
