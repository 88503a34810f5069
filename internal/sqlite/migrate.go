package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	sqlite3 "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Schema is one of the node's files.
type Schema string

// The files. Their names are those of the folders under migrations.
const (
	Todos Schema = "todos" // todos.db: all that replicates, and deliveries
	Users Schema = "users" // users.db: accounts and sessions
)

// File is the name of the schema's file in the data folder.
func (s Schema) File() string { return string(s) + ".db" }

// applicationID marks a file as ours ("TNDM"), see https://sqlite.org/pragma.html#pragma_application_id.
const applicationID = 0x544e444d

// oldest is the first engine without the race that could reset a write-ahead log
// under a reader and lose commits.
const oldest = "3.51.3"

//go:embed migrations
var migrations embed.FS

// fragments are what every file begins with.
const fragments = "migrations/0001_fragments.sql"

// scripts returns the schema's migrations in order. Each is applied once, none
// is edited after it has been released, and there is no way back.
func (s Schema) scripts() ([]string, error) {
	own, err := fs.Glob(migrations, "migrations/"+string(s)+"/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	names := append([]string{fragments}, own...)
	return names, numbered(names)
}

// numbered refuses a gap: a file's user_version counts the scripts it has seen.
func numbered(names []string) error {
	for i, name := range names {
		if n, _, _ := strings.Cut(path.Base(name), "_"); n != fmt.Sprintf("%04d", i+1) {
			return fmt.Errorf("migration %s: want number %04d", name, i+1)
		}
	}
	return nil
}

// inspect looks at an existing file without changing it: once a connection has
// set its journal mode, a foreign file would already be altered. A file without a
// write-ahead log is whole in itself, and is read without the two files that
// SQLite would make, and leave, beside it.
func inspect(ctx context.Context, path string, s Schema) error {
	if fi, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && fi.Size() == 0 {
		return nil
	} else if err != nil {
		return err
	}
	settings := "mode=ro&_pragma=busy_timeout(5000)"
	if wal, err := os.Stat(path + "-wal"); err != nil || wal.Size() == 0 {
		settings += "&immutable=1"
	}
	db, err := sql.Open("sqlite", fileURL(path, settings))
	if err != nil {
		return err
	}
	defer db.Close()
	var app, version, tables int
	var engine string
	err = db.QueryRowContext(ctx, `
		SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
		       (SELECT count(*) FROM sqlite_schema), sqlite_version()`).Scan(&app, &version, &tables, &engine)
	if errors.Is(classify(err), ErrCorrupt) {
		return named(ErrCorrupt, path, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err) // it may be whole: nobody should restore over it
	}
	names, err := s.scripts()
	switch {
	case err != nil:
		return err
	case older(engine, oldest):
		return fmt.Errorf("SQLite %s has a defect that loses commits: build with %s or newer", engine, oldest)
	case app != applicationID && (app != 0 || tables > 0):
		return named(ErrForeign, path, fmt.Errorf("application_id %#x", app))
	case version > len(names):
		return named(ErrNewer, path, fmt.Errorf("schema %d; this build knows %d", version, len(names)))
	}
	return nil
}

// older reports whether version a comes before b.
func older(a, b string) bool {
	var x, y [3]int
	_, _ = fmt.Sscanf(a, "%d.%d.%d", &x[0], &x[1], &x[2])
	_, _ = fmt.Sscanf(b, "%d.%d.%d", &y[0], &y[1], &y[2])
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

// migrate applies each script above the file's user_version, all in one
// transaction: a crash leaves the file as it was, and a new one costs one fsync.
func (db *DB) migrate(ctx context.Context) error {
	names, err := db.schema.scripts()
	if err != nil {
		return err
	}
	var have int
	if err := db.writer.conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&have); err != nil {
		return fmt.Errorf("%s: %w", db.path, classify(err))
	}
	if have >= len(names) {
		return nil
	}
	return db.Write(ctx, func(tx *Tx) error {
		for i := have; i < len(names); i++ {
			body, err := migrations.ReadFile(names[i])
			if err == nil {
				err = tx.migrate(string(body), i+1)
			}
			if err != nil {
				return fmt.Errorf("%s: migration %s: %w", db.path, names[i], err)
			}
		}
		return nil
	})
}

func (tx *Tx) migrate(script string, version int) error {
	script += fmt.Sprintf("\n;PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, version)
	if _, err := tx.conn.ExecContext(context.Background(), script); err != nil {
		if e, ok := errors.AsType[*sqlite3.Error](err); ok && e.Code() == lib.SQLITE_ERROR { // no such table, or one that is there already
			err = fmt.Errorf("%w: %w", ErrUnlike, err)
		}
		return tx.failed(err)
	}
	// By Exec this pragma passes whatever it finds; its rows must be read.
	broken, err := All(tx, Value[string], `SELECT "table" FROM pragma_foreign_key_check`)
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("%w: dangling references in %v", ErrUnlike, broken)
	}
	return err
}
