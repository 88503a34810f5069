package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver, named in sql.Open
)

// watch is a handle on a node's todos from outside, for reading only. What it sees
// is committed, and as the node writes with synchronous=FULL, on the disk.
type watch struct {
	pool *sql.DB
	*sql.Conn
}

// look opens the todos of a node, whose file must be there with its schema.
func (n *node) look(ctx context.Context) (*watch, error) {
	if _, err := os.Stat(n.todos()); err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", fileURL(n.todos(), "mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)"))
	if err != nil {
		return nil, err
	}
	c, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	w := &watch{pool, c}
	if _, err := w.highest(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// todos is the file with the replicated tables.
func (n *node) todos() string { return filepath.Join(n.at.data(), "todos.db") }

// fileURL names a file of SQLite's with its settings.
func fileURL(path, settings string) string {
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: settings}).String()
}

func (w *watch) close() error { return errors.Join(w.Conn.Close(), w.pool.Close()) }

func (w *watch) number(ctx context.Context, query string) (int64, error) {
	var n int64
	return n, w.QueryRowContext(ctx, query).Scan(&n)
}

// highest is as many todos as there ever were, at the cost of one look-up.
func (w *watch) highest(ctx context.Context) (int64, error) {
	return w.number(ctx, `SELECT coalesce(max(rowid), 0) FROM todos`)
}

// size is how large the file is with what its log has of it, in bytes.
func (w *watch) size(ctx context.Context) (int64, error) {
	return w.number(ctx, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`)
}

// holds waits until the node has n todos, looks every two milliseconds, and calls
// passing with how many there are each time. It counts them when they seem to be there.
func (n *node) holds(ctx context.Context, want int64, patience time.Duration, passing func(int64)) (time.Time, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var w *watch
	if err := within(ctx, patience, time.Millisecond, func() (err error) {
		w, err = n.look(ctx)
		return err
	}); err != nil {
		return time.Time{}, err
	}
	defer w.close()
	for {
		have, err := w.highest(ctx)
		if err != nil {
			return time.Time{}, err
		}
		passing(have)
		if have >= want {
			break
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%d of %d todos: %w\n%s", have, want, ctx.Err(), n.s.tail())
		case <-n.s.ended:
			return time.Time{}, fmt.Errorf("%d of %d todos: the node has ended: %w\n%s", have, want, n.s.result, n.s.tail())
		case <-time.After(2 * time.Millisecond):
		}
	}
	at := time.Now()
	have, err := w.number(ctx, `SELECT count(*) FROM todos WHERE deleted_at IS NULL`)
	if err == nil && have != want {
		err = fmt.Errorf("%d todos, not %d", have, want)
	}
	return at, err
}
