package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// maxPrepared bounds the statements a connection keeps. The code has far fewer;
// the bound is for statements whose text depends on a count.
const maxPrepared = 256

// conn is one connection with its prepared statements. One goroutine at a time
// uses it.
type conn struct {
	*sql.Conn
	prepared map[string]*sql.Stmt
}

func newConn(ctx context.Context, pool *sql.DB, want map[string]string) (*conn, error) {
	c, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for pragma, value := range want {
		var got string
		if err := c.QueryRowContext(ctx, `PRAGMA `+pragma).Scan(&got); err != nil {
			return nil, fmt.Errorf("pragma %s: %w", pragma, err)
		}
		if got != value {
			return nil, fmt.Errorf("pragma %s is %s, not %s: the connection string was not understood", pragma, got, value)
		}
	}
	return &conn{Conn: c, prepared: map[string]*sql.Stmt{}}, nil
}

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if s, ok := c.prepared[query]; ok {
		return s, nil
	}
	s, err := c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, classify(err)
	}
	if len(c.prepared) >= maxPrepared {
		for q, old := range c.prepared { // any one: what is in use is soon back
			delete(c.prepared, q)
			_ = old.Close()
			break
		}
	}
	c.prepared[query] = s
	return s, nil
}

// Close closes the statements too: the driver keeps a connection that has one open,
// and with it the write-ahead log beside the file.
func (c *conn) Close() error {
	for _, s := range c.prepared {
		_ = s.Close()
	}
	return c.Conn.Close()
}

// run executes one of the writer's and readers' own statements.
func (c *conn) run(query string) error {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(context.Background())
	return classify(err)
}
