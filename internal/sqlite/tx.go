package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"
)

// Tx is a transaction, and the door by which time and chance enter the data: all
// that one transaction writes bears the same Now. What takes a Tx takes no context.
type Tx struct {
	Now time.Time // UTC, whole milliseconds

	conn  *conn
	ids   io.Reader // for NewID: within a millisecond each is above the last
	rand  io.Reader
	ctx   context.Context // of a Read: looked at between rows; nil in a Write
	until time.Time       // of a Read: when its time is up
	last  []func(*Tx) error
	after []func()
	bytes int   // arguments so far; a batch is bounded by them
	fatal error // the transaction is gone: nothing more may run in it
	scans bool  // a statement's rows are being read
}

// Millis is Now as the schema keeps it: milliseconds since 1970, UTC.
func (tx *Tx) Millis() int64 { return tx.Now.UnixMilli() }

// BeforeCommit runs f as the last of the transaction's work, and not if that fails. An
// error of f's rolls all of it back.
func (tx *Tx) BeforeCommit(f func(*Tx) error) { tx.last = append(tx.last, f) }

// AfterCommit runs f once the transaction is durable, and not if it rolls back.
// F runs on the writer: it wakes others and returns.
func (tx *Tx) AfterCommit(f func()) { tx.after = append(tx.after, f) }

// NewID returns a ULID (26 characters, sorts by the transaction's time). A Read
// has none to give.
func (tx *Tx) NewID() string {
	if tx.ids == nil {
		panic("sqlite: NewID in a Read") // ulid would make one without randomness
	}
	id, err := ulid.New(uint64(max(tx.Millis(), 0)), tx.ids)
	if err != nil {
		panic("sqlite: no randomness: " + err.Error())
	}
	return id.String()
}

// Random returns n bytes of the store's randomness.
func (tx *Tx) Random(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(tx.rand, b); err != nil {
		panic("sqlite: no randomness: " + err.Error())
	}
	return b
}

// Exec runs one statement and returns how many rows it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	stmt, err := tx.ready(query, args)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, tx.failed(err)
	}
	return res.RowsAffected()
}

// ready checks the arguments and returns the statement, prepared once for the
// life of the connection.
func (tx *Tx) ready(query string, args []any) (*sql.Stmt, error) {
	if tx.fatal != nil {
		return nil, tx.fatal
	}
	if tx.scans {
		// It might be the statement that is being read, which would begin anew.
		return nil, errors.New("sqlite: a statement within a scan; collect the rows first")
	}
	for _, a := range args {
		switch a := a.(type) {
		case string:
			tx.bytes += len(a)
		case []byte:
			tx.bytes += len(a)
		case time.Time, *time.Time:
			// The driver would store Go's own text for it, which does not sort.
			return nil, errors.New("sqlite: a time.Time is no argument; pass its UnixMilli")
		}
	}
	return tx.conn.prepare(query)
}

// failed notes whether err ended the whole transaction: SQLite rolls it back by
// itself when the disk is full or broken, and a statement that followed would
// commit on its own.
func (tx *Tx) failed(err error) error {
	err = classify(err)
	if endsTransaction(err) {
		tx.fatal = err
	}
	return err
}

// Try runs a part of a transaction that may fail by itself: when fn returns an
// error, what it wrote and what it wanted done Before- and AfterCommit is undone, and the rest
// of the transaction goes on. An error that ended the whole transaction ends it all
// the same.
func (tx *Tx) Try(fn func() error) error {
	if err := tx.part(`SAVEPOINT part`); err != nil {
		return err
	}
	last, after := len(tx.last), len(tx.after)
	err := fn()
	switch {
	case tx.fatal != nil:
		return tx.fatal
	case err == nil:
		return tx.part(`RELEASE part`)
	}
	tx.last, tx.after = tx.last[:last], tx.after[:after]
	return cmp.Or(tx.part(`ROLLBACK TO part`), tx.part(`RELEASE part`), err)
}

func (tx *Tx) part(query string) error {
	if tx.fatal == nil {
		tx.fatal = tx.conn.run(query)
	}
	return tx.fatal
}

// Row is one result row, as a scan function sees it.
type Row interface{ Scan(...any) error }

// All returns each row of query through scan.
func All[T any](tx *Tx, scan func(Row) (T, error), query string, args ...any) ([]T, error) {
	stmt, err := tx.ready(query, args)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return nil, tx.failed(err)
	}
	tx.scans = true
	defer func() { tx.scans = false; rows.Close() }()
	var out []T
	for rows.Next() {
		if err := tx.patience(len(out)); err != nil {
			return nil, err
		}
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, tx.failed(err)
	}
	return out, nil
}

// patience ends a Read whose caller has gone or whose time is up.
func (tx *Tx) patience(row int) error {
	if tx.ctx == nil || row%64 != 63 {
		return nil
	}
	if err := tx.ctx.Err(); err != nil {
		return err
	}
	if time.Now().After(tx.until) {
		return fmt.Errorf("a read went on for more than %v", readLimit)
	}
	return nil
}

// One returns the first row of query, and whether there was one.
func One[T any](tx *Tx, scan func(Row) (T, error), query string, args ...any) (T, bool, error) {
	var v T
	stmt, err := tx.ready(query, args)
	if err != nil {
		return v, false, err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return v, false, tx.failed(err)
	}
	tx.scans = true
	defer func() { tx.scans = false; rows.Close() }() // also where scan has not read the row
	if !rows.Next() {
		return v, false, tx.failed(rows.Err())
	}
	if v, err = scan(rows); err != nil {
		return v, false, err
	}
	return v, true, tx.failed(rows.Close())
}

// Value scans a row of a single column.
func Value[T any](r Row) (T, error) {
	var v T
	return v, r.Scan(&v)
}

// Time undoes Millis: the instant so many milliseconds after 1970, in UTC.
func Time(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// TimePtr is Time for a column that may be NULL.
func TimePtr(ms *int64) *time.Time {
	if ms == nil {
		return nil
	}
	t := Time(*ms)
	return &t
}

// MillisPtr undoes TimePtr.
func MillisPtr(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}
