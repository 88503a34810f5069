package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tandem/internal/fault"
	"tandem/internal/push"
	"tandem/internal/sqlite"
	nodesync "tandem/internal/sync"
	"tandem/internal/users"
)

// A restore has two halves, told apart by the name of a folder within the data
// folder. While it is stagedName the node's own files are untouched, and what is in
// it is worth nothing. Once it is decidedName its files take their places, whoever
// comes next: the restore itself, another, or the next start.
const (
	stagedName  = "restore.partial"
	decidedName = "restore.decided"
	journalName = "restore.json"
)

var errUnfinished = fault.New(fault.Conflict, "restore_unfinished", "A restore was cut off. Start the node, or run the restore again: either finishes it.")

// restoring is what has to be known to finish a restore.
type restoring struct {
	From   string           `json:"from"`
	At     string           `json:"at"`    // of the backup
	Aside  string           `json:"aside"` // the folder for the files of before, within the data folder
	IDs    map[string]int64 `json:"ids"`
	Parked int              `json:"parked"` // notices that are not sent any more
}

// finishRestore carries out a restore that was decided, if there is one, and forgets
// one that was not. Whoever calls it holds the folder. It may be killed anywhere and
// called again: what stands in the decided folder has not taken its place yet, and
// then what does is of before.
func finishRestore(dir string, out outside) (r restoring, finished bool, err error) {
	decided := filepath.Join(dir, decidedName)
	b, err := os.ReadFile(filepath.Join(decided, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, errors.Join(os.RemoveAll(filepath.Join(dir, stagedName)), os.RemoveAll(decided))
	}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return r, false, errUnfinished.Because(err)
	}
	out.crash("restore.decided")
	if err := nodesync.ForceRestored(fencePath(dir), r.IDs); err != nil {
		return r, false, err
	}
	aside := filepath.Join(dir, r.Aside)
	if err := os.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return r, false, err
	}
	for _, schema := range schemas {
		if err := replaceFile(dir, decided, aside, schema.File(), out); err != nil {
			return r, false, err
		}
	}
	_ = os.Remove(aside) // where nothing was here before
	return r, true, errors.Join(os.RemoveAll(decided), syncDir(dir))
}

// replaceFile moves a database with all that belongs to it aside, and the restored
// one in its place.
func replaceFile(dir, decided, aside, name string, out outside) error {
	next := filepath.Join(decided, name)
	if !exists(next) {
		return nil // it has taken its place
	}
	for _, part := range []string{name + "-wal", name + "-shm", name} {
		if err := os.Rename(filepath.Join(dir, part), filepath.Join(aside, part)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := errors.Join(syncDir(aside), syncDir(dir)); err != nil {
		return err
	}
	out.crash("restore.aside " + name)
	if err := os.Rename(next, filepath.Join(dir, name)); err != nil {
		return err
	}
	err := errors.Join(syncDir(dir), syncDir(decided))
	out.crash("restore.placed " + name)
	return err
}

// unfinished says of a folder that nobody holds whether a restore was cut off in it.
func unfinished(dir string) error {
	if exists(filepath.Join(dir, decidedName)) {
		return errUnfinished.Because(fmt.Errorf("in %s", dir))
	}
	return nil
}

// startOver makes databases that are older ones, or another node's, fit to be gone
// on with: what may have been sent is not sent again, and all sessions end.
func (f *folder) startOver(ctx context.Context) (parked int, err error) {
	err = f.todos.Write(ctx, func(tx *sqlite.Tx) error {
		parked, err = push.StartOverTx(tx)
		return err
	})
	if err == nil {
		err = f.users.Write(ctx, users.StartOverTx)
	}
	return parked, err
}

// copyFile copies a file to a name that must be free, and returns once it is on the disk.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return errNotBackup.Because(err)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Sync(), f.Close())
}
