package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

var errMissingFile = fault.New(fault.Internal, "database_missing", "A database file is missing beside others that are there. Restore a backup, or move the others away too.")

// schemas are the databases of a node.
var schemas = []sqlite.Schema{sqlite.Todos, sqlite.Users}

// folder is a node's data folder, held by this process.
type folder struct {
	dir    string
	lock   *sqlite.Lock
	todos  *sqlite.DB
	users  *sqlite.DB
	secret []byte // 32 bytes that never leave the folder; not in a backup
}

// openFolder makes the folder where it is missing, takes it for this process, ends a
// restore that was cut off, and brings its files up to date.
func openFolder(ctx context.Context, dir string, out outside, log *slog.Logger) (_ *folder, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	f := &folder{dir: dir}
	if f.lock, err = sqlite.Hold(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if _, _, err := finishRestore(dir, out); err != nil {
		return nil, err
	}
	if err := f.complete(); err != nil {
		return nil, err
	}
	if err := f.open(ctx, out, log); err != nil {
		return nil, err
	}
	f.secret, err = loadSecret(filepath.Join(dir, keyName), out.rand) // last: it says that the folder is complete
	return f, err
}

// keyName is the file of the node's own secret.
const keyName = "node.key"

// open opens the databases, and makes those that are missing.
func (f *folder) open(ctx context.Context, out outside, log *slog.Logger) (err error) {
	for _, schema := range schemas {
		db := f.files()[schema]
		o := sqlite.Options{Path: filepath.Join(f.dir, schema.File()), Schema: schema, Now: out.now, Rand: out.rand, Log: log, MaxPages: out.maxPages}
		if *db, err = sqlite.Open(ctx, o); err != nil {
			return err
		}
		out.crash("folder.opened")
	}
	return nil
}

func (f *folder) files() map[sqlite.Schema]**sqlite.DB {
	return map[sqlite.Schema]**sqlite.DB{sqlite.Todos: &f.todos, sqlite.Users: &f.users}
}

// complete refuses a folder of which a part is gone: to make it anew would look
// as if all in it had been deleted. In a new folder it makes all the files before
// anything is in one of them, so that a first start that is killed between two of
// them can be had again.
func (f *folder) complete() error {
	_, gone, err := lookInto(f.dir)
	if err != nil {
		return err
	}
	for _, name := range gone {
		if err := writeSynced(filepath.Join(f.dir, name), nil); err != nil {
			return err
		}
	}
	return syncDir(f.dir)
}

// lookInto returns which databases a folder has and which it lacks, or says
// errMissingFile where only some are there. An empty file is one that a power cut
// or a full disk has emptied, and as good as gone; but until the node has its key
// it is what a first start that was killed has left, and neither.
func lookInto(dir string) (here, gone []string, err error) {
	if err := unfinished(dir); err != nil {
		return nil, nil, err
	}
	_, err = os.Stat(filepath.Join(dir, keyName))
	complete := err == nil
	for _, schema := range schemas {
		fi, err := os.Stat(filepath.Join(dir, schema.File()))
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && fi.Size() == 0 && complete:
			gone = append(gone, schema.File())
		case err != nil:
			return nil, nil, err
		case fi.Size() > 0:
			here = append(here, schema.File())
		}
	}
	err = nil
	if len(here) > 0 && len(gone) > 0 {
		err = errMissingFile.Because(fmt.Errorf("%s has %v and lacks %v", dir, here, gone))
	}
	return here, gone, err
}

// writeSynced makes a file of the node's own, and returns once it is on the disk.
func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func (f *folder) close() error { return errors.Join(f.closeFiles(), f.lock.Release()) }

func (f *folder) closeFiles() error {
	var errs []error
	for _, db := range f.files() {
		if *db != nil {
			errs = append(errs, (*db).Close())
		}
	}
	return errors.Join(errs...)
}

// loadSecret returns the node's own secret, and makes it where there is none.
func loadSecret(path string, rand io.Reader) ([]byte, error) {
	if fi, err := os.Stat(path); err == nil && fi.Mode().Perm()&0o077 != 0 {
		return nil, errBadConfig.Because(fmt.Errorf("%s can be read by others (%v): chmod 600 %s", path, fi.Mode().Perm(), path))
	}
	b, err := os.ReadFile(path)
	if err == nil && len(b) != 32 {
		return nil, fmt.Errorf("%s has %d bytes, not 32: restore it, or remove it to have a new one made", path, len(b))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	b = make([]byte, 32)
	if _, err := io.ReadFull(rand, b); err != nil {
		return nil, err
	}
	// Written whole under another name first: half a secret would be one for ever.
	aside := path + ".new"
	if err := writeSynced(aside, b); err != nil {
		return nil, err
	}
	return b, errors.Join(os.Rename(aside, path), syncDir(filepath.Dir(path)))
}
