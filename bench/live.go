package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	among     = 200                   // writes a second
	lookEvery = 50 * time.Microsecond // between two looks at a file
)

// monotonic is the machine's clock that never steps, in ns: the one clock that
// processes share, Node's hrtime among them.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it cannot fail for this clock
	return t.Nano()
}

// sightings are when the write of each number was first seen at the other side.
type sightings struct {
	mu sync.Mutex
	at map[int]int64
}

func (s *sightings) add(number int, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.at[number]; !known {
		s.at[number] = at
	}
}

// since returns how many ms after its start each write was seen.
func (s *sightings) since(starts map[int]int64) ([]float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var took []float64
	for number, start := range starts {
		at, seen := s.at[number]
		if !seen {
			return nil, fmt.Errorf("write %d of %d was never seen", number, len(starts))
		}
		took = append(took, float64(at-start)/1e6)
	}
	return took, nil
}

// live makes writes with pauses between them, then a stream of them, and keeps how
// long it took from before each request until the other side had it.
func (b *bench) live(ctx context.Context, who string, alone, stream work, s *sightings, write func(number int) error) error {
	const warm = 50
	answered := &sightings{at: map[int]int64{}}
	writing := func(number int) error {
		err := write(number)
		answered.add(number, monotonic())
		return err
	}
	if _, err := s.streamed(ctx, 0, warm, among, write); err != nil {
		return err
	}
	lone, err := s.paused(ctx, warm, time.Duration(b.seconds)*time.Second, writing)
	if err != nil {
		return err
	}
	many, err := s.streamed(ctx, warm+len(lone), b.seconds*among, among, writing)
	if err != nil {
		return err
	}
	for w, starts := range map[work]map[int]int64{alone: lone, stream: many} {
		took, err := s.since(starts)
		if err != nil {
			return err
		}
		b.figures.add(who, w, median, quantile(took, 0.5))
		b.figures.add(who, w, slow, quantile(took, 0.99))
		if took, err = answered.since(starts); err != nil {
			return err
		}
		fmt.Fprintf(b.progress, "    %s: answered after %.1f ms (p50)\n", w, quantile(took, 0.5))
	}
	return nil
}

// paused makes one write after the other, with 30 to 90 ms of silence between them,
// and returns when each began.
func (s *sightings) paused(ctx context.Context, first int, last time.Duration, write func(int) error) (map[int]int64, error) {
	starts := map[int]int64{}
	pauses := rand.New(rand.NewPCG(uint64(first), 0))
	for end := time.Now().Add(last); time.Now().Before(end) && ctx.Err() == nil; {
		number := first + len(starts)
		starts[number] = monotonic()
		if err := write(number); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(30+pauses.IntN(60)) * time.Millisecond)
	}
	return starts, s.all(ctx, starts)
}

// streamed makes so many writes, each begun at its time whether or not the one
// before has ended, as people do, and returns when each began.
func (s *sightings) streamed(ctx context.Context, first, n, perSecond int, write func(int) error) (map[int]int64, error) {
	starts := map[int]int64{}
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	begin := time.Now()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		all.Go(func() {
			start := monotonic()
			err := write(first + i)
			mu.Lock()
			defer mu.Unlock()
			starts[first+i] = start
			failed = errors.Join(failed, err)
		})
	}
	all.Wait()
	if failed != nil {
		return nil, failed
	}
	return starts, s.all(ctx, starts)
}

// all waits until each write has been seen.
func (s *sightings) all(ctx context.Context, starts map[int]int64) error {
	return within(ctx, 5*time.Second, 10*time.Millisecond, func() error {
		_, err := s.since(starts)
		return err
	})
}

// watching looks at a node's todos as fast as it can without taking a core, and
// notes the number at the end of each new text, until ctx ends. It returns by how
// many ns each sighting may be wrong: from before the look that did not have it to
// after the one that had.
func (n *node) watching(ctx context.Context, s *sightings) ([]float64, error) {
	runtime.LockOSThread() // the runtime's own timers are too coarse
	defer runtime.UnlockOSThread()
	w, err := n.look(context.Background())
	if err != nil {
		return nil, err
	}
	defer w.close()
	last, err := w.highest(context.Background())
	if err != nil {
		return nil, err
	}
	news, err := w.PrepareContext(context.Background(), `SELECT rowid, content FROM todos WHERE rowid > ? ORDER BY rowid`)
	if err != nil {
		return nil, err
	}
	defer news.Close()
	var gaps []float64
	for before := monotonic(); ctx.Err() == nil; {
		begun := monotonic()
		now, err := s.noteAll(news, last)
		if err != nil {
			return nil, err
		}
		if now > last {
			gaps = append(gaps, float64(monotonic()-before))
		}
		last, before = now, begun
		pause := syscall.NsecToTimespec(lookEvery.Nanoseconds())
		_ = syscall.Nanosleep(&pause, nil)
	}
	if len(gaps) == 0 {
		return nil, errors.New("nothing came")
	}
	return gaps, nil
}

// noteAll notes the todos behind the last that was seen, and returns which is the
// last now.
func (s *sightings) noteAll(news *sql.Stmt, last int64) (int64, error) {
	rows, err := news.Query(last)
	if err != nil {
		return last, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&last, &text); err != nil {
			return last, err
		}
		at := monotonic()
		number, err := strconv.Atoi(text[strings.LastIndexByte(text, ' ')+1:])
		if err != nil {
			return last, err
		}
		s.add(number, at)
	}
	return last, rows.Err()
}

func (b *bench) liveDown(ctx context.Context) error {
	return b.livePair(ctx, liveAlone, liveAmong, func(p *pair, cloud, _ session) (session, *node) { return cloud, p.home })
}

func (b *bench) liveUp(ctx context.Context) error {
	return b.livePair(ctx, liveUpAlone, liveUpAmong, func(p *pair, _, home session) (session, *node) { return home, p.cloud })
}

// livePair writes at one node of a fresh pair and watches the other's file.
func (b *bench) livePair(ctx context.Context, alone, stream work, ends func(p *pair, cloud, home session) (session, *node)) (err error) {
	p, err := b.newPair("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	cloud, home, err := p.both(ctx)
	if err != nil {
		return err
	}
	from, to := ends(p, cloud, home)
	s := &sightings{at: map[int]int64{}}
	watching, enough := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	var doubt []float64
	var blind error
	watcher.Go(func() { doubt, blind = to.watching(watching, s) })
	err = b.live(ctx, ours, alone, stream, s, func(number int) error {
		_, err := from.add(sentence(number))
		return err
	})
	enough()
	watcher.Wait()
	if err := errors.Join(err, blind); err != nil {
		return err
	}
	fmt.Fprintf(b.progress, "    sightings are late by less than %.2f ms (p50), %.2f ms (p99)\n", quantile(doubt, 0.5)/1e6, quantile(doubt, 0.99)/1e6)
	return nil
}
