package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite"
)

// backupPages are copied between two looks at the caller's context.
const backupPages = 1024

// Backup copies all files as they were at one moment into dir, which must exist
// and hold no file of their names, while the node goes on: the writers pause only
// until a snapshot of each file is open. After an error or a crash the copies in
// dir are worth nothing; the caller gives the folder its final name once Backup
// has returned.
func Backup(ctx context.Context, dir string, files ...*DB) error {
	var snaps []*snapshot
	defer func() {
		for _, s := range snaps {
			s.close()
		}
	}()
	open := func() error {
		for _, db := range files {
			s, err := openSnapshot(ctx, db)
			if err != nil {
				return err
			}
			snaps = append(snaps, s)
		}
		return nil
	}
	if err := paused(ctx, files, open); err != nil {
		return err
	}
	for _, s := range snaps {
		if err := s.copy(ctx, filepath.Join(dir, s.db.schema.File())); err != nil {
			return fmt.Errorf("copy %s: %w", s.db.path, err)
		}
	}
	return nil
}

// paused runs fn while no file is being written. Whoever was answered before has
// been committed in every file; whoever shares the writer's batch with this pause
// has not been answered yet, and is not in the snapshot.
func paused(ctx context.Context, files []*DB, fn func() error) error {
	if len(files) == 0 {
		return fn()
	}
	if files[0].writer == nil {
		return paused(ctx, files[1:], fn)
	}
	return files[0].Write(ctx, func(*Tx) error { return paused(ctx, files[1:], fn) })
}

// snapshot is a connection whose read transaction holds a file at one moment.
type snapshot struct {
	db   *DB
	pool *sql.DB
	conn *sql.Conn
}

func openSnapshot(ctx context.Context, db *DB) (_ *snapshot, err error) {
	s := &snapshot{db: db}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.pool, err = sql.Open("sqlite", fileURL(db.path, "mode=ro&_pragma=busy_timeout(5000)")); err != nil {
		return nil, err
	}
	if s.conn, err = s.pool.Conn(ctx); err != nil {
		return nil, err
	}
	if _, err = s.conn.ExecContext(ctx, `BEGIN`); err != nil {
		return nil, err
	}
	var n int // the snapshot begins with the first read
	return s, s.conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&n)
}

func (s *snapshot) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	if s.pool != nil {
		_ = s.pool.Close()
	}
}

func (s *snapshot) copy(ctx context.Context, to string) error {
	// Ours alone, as what is in it; and never over a file that is there.
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	err = s.conn.Raw(func(driver any) error {
		b, err := driver.(interface {
			NewBackup(string) (*sqlite3.Backup, error)
		}).NewBackup(fileURL(to, ""))
		if err != nil {
			return err
		}
		for more := true; more && err == nil; {
			if more, err = b.Step(backupPages); err == nil {
				err = ctx.Err()
			}
		}
		return errors.Join(err, b.Finish())
	})
	if err != nil {
		return classify(err)
	}
	return syncFile(to)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
