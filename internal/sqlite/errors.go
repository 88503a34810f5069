package sqlite

import (
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"tandem/internal/fault"
)

// What may be wrong with a file. Each is met by its identity; the details say
// which file it is.
var (
	ErrCorrupt = fault.New(fault.Internal, "database_corrupt", "A database file is damaged. Stop the node and restore a backup.")
	ErrForeign = fault.New(fault.Internal, "database_foreign", "A database file belongs to another program. Move it away, or point node.data elsewhere.")
	ErrNewer   = fault.New(fault.Internal, "database_newer", "A database file was written by a newer version. Run that version, or restore a backup made by this one.")
	ErrFull    = fault.New(fault.Unavailable, "disk_full", "The disk of this node is full: nothing was saved. Free some space and try again.")
)

// ErrTaken is returned by a statement that would make a second row of what is UNIQUE.
var ErrTaken = errors.New("sqlite: taken")

// ErrUnlike is returned by Open for a file that is not as its version has it, so that a
// migration has nothing to go on.
var ErrUnlike = errors.New("sqlite: not as its version has it")

// ErrUnfit is returned by a statement whose values the table does not take: another
// row could be taken.
var ErrUnfit = errors.New("sqlite: unfit")

// classify gives the driver's errors our names, so that nobody above reads codes
// or texts.
func classify(err error) error {
	e, ok := errors.AsType[*sqlite3.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return ErrCorrupt.Because(err)
	case lib.SQLITE_FULL:
		return ErrFull.Because(err)
	}
	switch e.Code() {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY:
		return fmt.Errorf("%w: %w", ErrTaken, err)
	case lib.SQLITE_CONSTRAINT_CHECK, lib.SQLITE_CONSTRAINT_NOTNULL, lib.SQLITE_CONSTRAINT_DATATYPE, lib.SQLITE_TOOBIG, lib.SQLITE_MISMATCH:
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return err
}

// endsTransaction reports whether SQLite may have rolled the whole transaction
// back by itself (https://sqlite.org/lang_transaction.html, section 3.1).
func endsTransaction(err error) bool {
	e, ok := errors.AsType[*sqlite3.Error](err)
	if !ok {
		return false
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_NOMEM, lib.SQLITE_BUSY, lib.SQLITE_INTERRUPT, lib.SQLITE_CORRUPT:
		return true
	}
	return false
}

func named(e *fault.Error, path string, cause error) error {
	return e.Because(fmt.Errorf("%s: %w", path, cause))
}
