package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
)

const (
	patience   = 30 * time.Second // how long a Write waits for its turn
	maxBatch   = 128              // functions that share a commit
	maxBytes   = 1 << 20          // of arguments that share a commit
	idleAfter  = 5 * time.Second  // without a write, the log is folded back into the file
	foldAgain  = 30 * time.Second // after a reader kept it from being
	walWarning = 64 << 20         // a log still this large then is pinned by a reader
)

// ErrClosed is returned by a Write that came after Close.
var ErrClosed = errors.New("sqlite: closed")

// writer is the one goroutine that writes to a file. It runs the waiting
// functions one after the other, a savepoint each, and makes them durable by one
// commit: under load a commit's fsync is shared, alone nobody waits for company.
type writer struct {
	conn  *conn
	path  string
	now   func() time.Time
	ids   io.Reader
	rand  io.Reader
	log   *slog.Logger
	queue chan *request
	quit  chan struct{}
	gone  chan struct{}
	once  sync.Once
}

// request is a function waiting for its turn. Whoever moves state from waiting
// decides: the writer takes it, or its caller gives up.
type request struct {
	ctx   context.Context
	fn    func(*Tx) error
	state atomic.Int32
	done  chan error
}

const (
	waiting int32 = iota
	taken
	abandoned
)

func newWriter(ctx context.Context, pool *sql.DB, o Options) (*writer, error) {
	synchronous := "2" // FULL
	if o.Volatile {
		synchronous = "0"
	}
	c, err := newConn(ctx, pool, map[string]string{
		"journal_mode": "wal", "synchronous": synchronous, "foreign_keys": "1", "busy_timeout": fmt.Sprint(busyTimeout.Milliseconds()),
	})
	if err != nil {
		return nil, err
	}
	w := &writer{
		conn: c, path: o.Path, now: o.Now, ids: ulid.Monotonic(o.Rand, 0), rand: o.Rand, log: o.Log,
		queue: make(chan *request, maxBatch), quit: make(chan struct{}), gone: make(chan struct{}),
	}
	go w.loop()
	return w, nil
}

func (w *writer) write(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{ctx: ctx, fn: fn, done: make(chan error, 1)}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case w.queue <- r:
	case <-w.quit:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return w.noTurn()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		return <-r.done
	case <-timer.C:
		if r.state.CompareAndSwap(waiting, abandoned) {
			return w.noTurn()
		}
		return <-r.done
	case <-w.gone:
		select {
		case err := <-r.done:
			return err
		default:
			return ErrClosed
		}
	}
}

func (w *writer) noTurn() error {
	return fmt.Errorf("%s: no turn to write in %v: is this a Write within a Write?", w.path, patience)
}

func (w *writer) stop() {
	w.once.Do(func() { close(w.quit) })
	<-w.gone
}

// loop commits what waits, and folds the log back into the file when nothing has
// come for a while. After quit it serves what is already in the queue.
func (w *writer) loop() {
	defer close(w.gone)
	idle := time.NewTimer(idleAfter)
	for {
		select {
		case r := <-w.queue:
			w.batch(r)
			idle.Reset(idleAfter)
		case <-idle.C:
			if !w.checkpoint() {
				idle.Reset(foldAgain)
			}
		case <-w.quit:
			idle.Stop()
			for {
				select {
				case r := <-w.queue:
					w.batch(r)
				default:
					_ = w.conn.Close()
					return
				}
			}
		}
	}
}

// batch is one commit: first and whatever waits behind it.
func (w *writer) batch(first *request) {
	var done []*request
	var after []func()
	var fatal error
	bytes := 0
	for r := first; r != nil; r = w.next(len(done), bytes) {
		if !r.state.CompareAndSwap(waiting, taken) {
			continue
		}
		tx, err := w.step(r, len(done) == 0)
		if fatal = tx.fatal; fatal != nil {
			done = append(done, r)
			break
		}
		if err != nil {
			r.done <- err
			continue
		}
		done, after, bytes = append(done, r), append(after, tx.after...), bytes+tx.bytes
	}
	w.finish(done, after, fatal)
}

// next returns the request to join this commit, or nil when it is time to commit.
// An empty queue gets a few chances to fill: callers that were just answered are
// often about to ask again.
func (w *writer) next(count, bytes int) *request {
	if count >= maxBatch || bytes >= maxBytes {
		return nil
	}
	for spins := 0; ; spins++ {
		select {
		case r := <-w.queue:
			return r
		default:
			if spins == 3 {
				return nil
			}
			runtime.Gosched()
		}
	}
}

// step runs one function. The first of a batch needs no savepoint: rolling it
// back rolls back nothing else.
func (w *writer) step(r *request, first bool) (*Tx, error) {
	begin, undo, keep := `SAVEPOINT one`, `ROLLBACK TO one`, `RELEASE one`
	if first {
		begin, undo, keep = `BEGIN IMMEDIATE`, `ROLLBACK`, ``
	}
	tx := &Tx{Now: w.now().UTC().Truncate(time.Millisecond), conn: w.conn, ids: w.ids, rand: w.rand}
	if err := w.conn.run(begin); err != nil {
		if !first {
			tx.fatal = err
		}
		return tx, err
	}
	err := call(r.fn, tx)
	if tx.fatal != nil {
		return tx, tx.fatal
	}
	if err != nil {
		if e := w.conn.run(undo); e != nil {
			tx.fatal = errors.Join(err, e)
		} else if !first {
			tx.fatal = w.conn.run(keep)
		}
		return tx, err
	}
	if keep != "" {
		tx.fatal = w.conn.run(keep)
	}
	return tx, tx.fatal
}

func call(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	for _, f := range tx.last {
		if err := f(tx); err != nil {
			return err
		}
	}
	return nil
}

// finish commits and answers. When the transaction is lost, so is the work of
// all who shared it, and all are told.
func (w *writer) finish(done []*request, after []func(), fatal error) {
	if len(done) == 0 {
		return // the last function to fail rolled the transaction back
	}
	if fatal == nil {
		fatal = w.conn.run(`COMMIT`)
	}
	if fatal != nil {
		_ = w.conn.run(`ROLLBACK`) // fails where SQLite has done it already
		for _, r := range done {
			r.done <- fatal
		}
		return
	}
	for _, f := range after {
		f()
	}
	for _, r := range done {
		r.done <- nil
	}
}

// checkpoint empties the log, and reports whether it did. A log that stays large is
// pinned by a reader that does not end, and would grow for ever.
func (w *writer) checkpoint() bool {
	busy, err := w.fold()
	if w.log == nil {
		return err == nil && !busy
	}
	if err != nil {
		w.log.Warn("checkpoint failed", "file", w.path, "error", err)
	}
	if fi, err := os.Stat(w.path + "-wal"); err == nil && fi.Size() > walWarning {
		w.log.Warn("write-ahead log stays large", "file", w.path, "bytes", fi.Size())
	}
	return err == nil && !busy
}

// fold asks for the checkpoint without waiting for readers: a Write that came
// meanwhile would wait with it. The pragmas are not prepared ahead, since some act
// when they are compiled.
func (w *writer) fold() (busy bool, err error) {
	set := func(timeout time.Duration) error {
		_, err := w.conn.ExecContext(context.Background(), fmt.Sprintf(`PRAGMA busy_timeout = %d`, timeout.Milliseconds()))
		return err
	}
	if err := set(0); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, set(busyTimeout)) }()
	var pages, folded int
	err = w.conn.QueryRowContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &folded)
	return busy, classify(err)
}
