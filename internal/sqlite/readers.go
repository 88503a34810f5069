package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// readLimit bounds one Read, so that none pins the write-ahead log for long.
const readLimit = 10 * time.Second

// readers are connections that only read. They are made as they are needed, up
// to a bound, and kept.
type readers struct {
	pool *sql.DB
	idle chan *conn
	room chan struct{} // one token for each connection not yet made
	gone chan struct{} // closed by close
	once sync.Once
}

func newReaders(pool *sql.DB) *readers {
	n := max(4, 2*runtime.NumCPU())
	r := &readers{pool: pool, idle: make(chan *conn, n), room: make(chan struct{}, n), gone: make(chan struct{})}
	for range n {
		r.room <- struct{}{}
	}
	return r
}

// take returns a connection that nobody else uses until it is given back. One that
// is there is better than a new one.
func (r *readers) take(ctx context.Context) (*conn, error) {
	select {
	case <-r.gone:
		return nil, ErrClosed
	case c := <-r.idle:
		return c, nil
	default:
	}
	select {
	case c := <-r.idle:
		return c, nil
	case <-r.room:
		return r.open()
	case <-r.gone:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *readers) open() (*conn, error) {
	c, err := newConn(context.Background(), r.pool, map[string]string{"query_only": "1", "busy_timeout": fmt.Sprint(busyTimeout.Milliseconds())})
	if err != nil {
		r.room <- struct{}{}
		return nil, classify(err)
	}
	return c, nil
}

func (r *readers) give(c *conn) { r.idle <- c }

// close lets the reads under way end, and begins no other. Again is fine.
func (r *readers) close() error {
	var errs []error
	r.once.Do(func() {
		close(r.gone)
		for range cap(r.idle) {
			select {
			case c := <-r.idle:
				errs = append(errs, c.Close())
			case <-r.room:
			}
		}
	})
	return errors.Join(errs...)
}

// read runs fn on a connection of its own. Each statement sees one moment; all of
// them see the same one within snapshot.
func (r *readers) read(ctx context.Context, now time.Time, fn func(*Tx) error) error {
	c, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(c)
	return fn(&Tx{Now: now.UTC().Truncate(time.Millisecond), conn: c, ctx: ctx, until: time.Now().Add(readLimit)})
}

// snapshot runs fn in a transaction.
func (tx *Tx) snapshot(fn func(*Tx) error) error {
	if err := tx.conn.run(`BEGIN`); err != nil {
		return err
	}
	defer tx.conn.run(`ROLLBACK`) // nothing was written; it only ends the snapshot
	return fn(tx)
}
