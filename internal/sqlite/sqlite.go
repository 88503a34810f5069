// Package sqlite is a node's store: files of one writer and many readers each,
// and their schemas. It knows the tables' shape but none of their meaning; the
// statements live beside the types they fill. It alone knows the driver.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver, named in sql.Open
)

// Options say which file to open, and where time and chance come from.
type Options struct {
	Path   string
	Schema Schema
	Now    func() time.Time
	Rand   io.Reader // NewID and the keys of rows; the same source gives the same ids
	Log    *slog.Logger

	// MaxPages, when not 0, bounds the file, so that a test can fill the disk.
	MaxPages int

	// Volatile leaves it to the system when what is committed reaches the disk
	// (synchronous=OFF). A process that is killed loses nothing, a machine that loses
	// its power loses commits or the file: for tests that open thousands of files.
	Volatile bool
}

// DB is an open file. Its methods may be called from many goroutines.
type DB struct {
	schema  Schema
	path    string
	now     func() time.Time
	writer  *writer
	readers *readers
	pools   []*sql.DB
}

// busyTimeout bounds the wait for another process's lock, such as a backup
// tool's; within the process nothing waits for a lock.
const busyTimeout = 5 * time.Second

// Open opens the file, makes it where it is missing, and brings its schema up to
// date. It refuses with ErrForeign, ErrNewer or ErrCorrupt before it has changed
// a byte of a file it should not write.
func Open(ctx context.Context, o Options) (*DB, error) {
	if err := inspect(ctx, o.Path, o.Schema); err != nil {
		return nil, err
	}
	db := &DB{schema: o.Schema, path: o.Path, now: o.Now}
	settings := toWrite
	if o.Volatile {
		settings = strings.Replace(settings, "synchronous(FULL)", "synchronous(OFF)", 1)
	}
	if o.MaxPages > 0 {
		settings += fmt.Sprintf("&_pragma=max_page_count(%d)", o.MaxPages)
	}
	write, err := db.pool(settings)
	if err != nil {
		return nil, err
	}
	if db.writer, err = newWriter(ctx, write, o); err != nil {
		return nil, errors.Join(classify(err), db.closePools())
	}
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	read, err := db.pool(toRead)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.readers = newReaders(read)
	return db, nil
}

// OpenReadOnly opens an existing file without writing to it or migrating it, for
// a verb that looks while no node runs. Write fails.
func OpenReadOnly(ctx context.Context, o Options) (*DB, error) {
	if err := inspect(ctx, o.Path, o.Schema); err != nil {
		return nil, err
	}
	db := &DB{schema: o.Schema, path: o.Path, now: o.Now}
	read, err := db.pool(onlyLook)
	if err != nil {
		return nil, err
	}
	db.readers = newReaders(read)
	return db, nil
}

// Close waits for the writes under way and closes the file. Writes that come
// later fail with ErrClosed.
func (db *DB) Close() error {
	if db.writer != nil {
		db.writer.stop()
	}
	var err error
	if db.readers != nil {
		err = db.readers.close()
	}
	return errors.Join(err, db.closePools())
}

// Path is the file's path.
func (db *DB) Path() string { return db.path }

// Now is the time by the file's clock, as a transaction that began at this moment
// would have it: for what is decided without one.
func (db *DB) Now() time.Time { return db.now().UTC().Truncate(time.Millisecond) }

// Schema is which of the node's files this is.
func (db *DB) Schema() Schema { return db.schema }

// What every connection of a pool is told as it opens: a pragma set by Exec would
// reach only one of them.
var (
	patient  = fmt.Sprintf("_pragma=busy_timeout(%d)&_dqs=0", busyTimeout.Milliseconds())
	durable  = patient + "&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=cache_size(-8000)"
	toWrite  = durable + "&_txlock=immediate"
	toRead   = durable + "&_pragma=query_only(1)"
	onlyLook = patient + "&mode=ro&_pragma=query_only(1)" // of a file that nobody may change, not even its settings
)

func (db *DB) pool(settings string) (*sql.DB, error) {
	pool, err := sql.Open("sqlite", fileURL(db.path, settings))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", db.path, err)
	}
	db.pools = append(db.pools, pool)
	return pool, nil
}

// fileURL names a file with its settings. A path is escaped, since a '?' in it
// would begin the settings.
func fileURL(path, settings string) string {
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: settings}).String()
}

func (db *DB) closePools() error {
	var errs []error
	for _, p := range db.pools {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Read returns what fn finds in one consistent snapshot. It ends with the
// caller's context and after readLimit, both checked between rows: an interrupt
// of the driver's own would cost each short look-up a goroutine.
func Read[T any](ctx context.Context, db *DB, fn func(*Tx) (T, error)) (T, error) {
	var v T
	err := db.readers.read(ctx, db.now(), func(tx *Tx) error {
		return tx.snapshot(func(tx *Tx) (err error) {
			v, err = fn(tx)
			return err
		})
	})
	return v, err
}

// ReadOne is One for a look-up that is a single statement. That is a snapshot by
// itself, and two statements cheaper than a Read.
func ReadOne[T any](ctx context.Context, db *DB, scan func(Row) (T, error), query string, args ...any) (v T, found bool, err error) {
	err = db.readers.read(ctx, db.now(), func(tx *Tx) (err error) {
		v, found, err = One(tx, scan, query, args...)
		return err
	})
	return v, found, err
}

// ReadAll is All, as ReadOne is One.
func ReadAll[T any](ctx context.Context, db *DB, scan func(Row) (T, error), query string, args ...any) (list []T, err error) {
	err = db.readers.read(ctx, db.now(), func(tx *Tx) (err error) {
		list, err = All(tx, scan, query, args...)
		return err
	})
	return list, err
}

// Write runs fn in the file's one write transaction and returns once what it
// wrote is durable. Several callers' functions share a commit; one that fails is
// rolled back alone. Nothing slow belongs inside, and no Write: it would wait for
// itself, and fails after patience. The context counts until fn begins and not
// afterwards: a half-cancelled statement would undo the neighbours' work too.
//
// A crash before Write returns leaves all of fn or nothing.
func (db *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	if db.writer == nil {
		return fmt.Errorf("%s is open for reading only", db.path)
	}
	return db.writer.write(ctx, fn)
}
