package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tandem/internal/fault"
	"tandem/internal/scheduler"
	"tandem/internal/sqlite"
	"tandem/internal/when"
)

var errBackupExists = fault.New(fault.Conflict, "backup_exists", "The folder for the backup is there already. Name one that is not: a backup never overwrites another.")

// manifest says what a backup is of. It is written last but for the folder's name.
type manifest struct {
	Node        string                  `json:"node"`
	Origin      int                     `json:"origin"`
	Incarnation string                  `json:"incarnation"` // the life of the log that was copied
	IDs         map[string]int64        `json:"ids"`         // table to the largest id that the node had given out
	Version     string                  `json:"version"`
	At          string                  `json:"at"`
	Files       map[string]manifestFile `json:"files"`
}

// manifestName is the file in a backup that says what it is of.
const manifestName = "backup.json"

type manifestFile struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type backupRequest struct{ Dir string }

func backupCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the databases as they are at one moment, while the node runs",
		Long: `Copy the databases as they are at one moment into DIR, which must not exist yet. The
node goes on meanwhile. Keys are not in the copy: keep node.key, the peer secret and
the credentials of push services apart from it.`,
		Example: `  tandem backup --config configs/local.yaml /mnt/backup/tandem-$(date +%F)`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return o.backup(c.Context(), world(), args[0]) },
	}
}

func (o *options) backup(ctx context.Context, out outside, dir string) error {
	c, err := o.load()
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if parent := filepath.Dir(dir); !exists(parent) {
		fmt.Fprintf(o.err, "%s is not there and will be made. If a disk should be mounted there, it is not.\n", parent)
	}
	defer o.watch(dir)()
	m, running, err := ask[manifest](ctx, c.Node.Data, "backup", backupRequest{dir})
	if err == nil && !running {
		m, err = o.backupAlone(ctx, c.Node.Data, dir, out, manifest{Node: c.Node.Name, Origin: c.Node.Origin})
	}
	if err != nil {
		return err
	}
	var bytes int64
	for _, f := range m.Files {
		bytes += f.Bytes
	}
	fmt.Fprintf(o.out, "%d files, %s, as of %s, in %s\n", len(m.Files), size(bytes), m.At, dir)
	fmt.Fprintf(o.out, "Not in it, keep them apart: %s, the peer secret, the push services' credentials.\n", filepath.Join(c.Node.Data, keyName))
	return nil
}

// backupAlone copies the files of a folder that no node runs on.
func (o *options) backupAlone(ctx context.Context, data, dir string, out outside, m manifest) (_ manifest, err error) {
	var files []*sqlite.DB
	defer func() {
		for _, db := range files {
			err = errors.Join(err, db.Close())
		}
	}()
	here, _, err := lookInto(data)
	if err == nil && len(here) == 0 {
		err = fmt.Errorf("there is nothing in %s to back up", data)
	}
	if err != nil {
		return m, err
	}
	for _, schema := range schemas {
		path := filepath.Join(data, schema.File())
		db, err := sqlite.OpenReadOnly(ctx, sqlite.Options{Path: path, Schema: schema, Now: out.now})
		if err != nil {
			return m, err
		}
		files = append(files, db)
	}
	return copyAll(ctx, dir, out, m, files...)
}

// backupFor copies the files of this node.
func (n *node) backupFor(ctx context.Context, in backupRequest) (manifest, error) {
	return copyAll(ctx, in.Dir, n.out, manifest{Node: n.Node.Name, Origin: n.Node.Origin}, n.folder.todos, n.folder.users)
}

// partial is the name of a backup that is not whole yet.
func partial(dir string) string { return dir + ".partial" }

// takePartial makes the folder for a backup in the making, or empties what one that
// was killed has left. Of two backups to one place the second is refused.
func takePartial(aside string) (*sqlite.Lock, error) {
	if err := os.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	lock, err := sqlite.Hold(aside)
	if err != nil {
		return nil, err
	}
	left, err := os.ReadDir(aside)
	for _, f := range left {
		if err == nil && f.Name() != sqlite.LockName {
			err = os.Remove(filepath.Join(aside, f.Name()))
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

// copyAll makes the backup under another name and renames it once it is whole and
// on the disk: whatever is called DIR is a backup.
func copyAll(ctx context.Context, dir string, out outside, m manifest, files ...*sqlite.DB) (_ manifest, err error) {
	if _, err := os.Lstat(dir); err == nil {
		return m, errBackupExists.Because(errors.New(dir))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	aside := partial(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return m, err
	}
	alone, err := takePartial(aside)
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(aside))
		}
		err = errors.Join(err, alone.Release())
	}()
	m.Version, m.At, m.Files = version(), when.Format(out.now()), map[string]manifestFile{}
	if err := sqlite.Backup(ctx, aside, files...); err != nil {
		return m, err
	}
	out.crash("backup.copied")
	for _, db := range files {
		if m.Files[db.Schema().File()], err = sum(filepath.Join(aside, db.Schema().File())); err != nil {
			return m, err
		}
	}
	// From the files themselves, which have gone on: ids above those in the copy do no harm.
	if m.Incarnation, m.IDs, err = lifeOf(ctx, files[0], m.Origin); err != nil {
		return m, err
	}
	if err := writeManifest(filepath.Join(aside, manifestName), m); err != nil {
		return m, err
	}
	if err := errors.Join(os.Remove(filepath.Join(aside, sqlite.LockName)), syncDir(aside)); err != nil {
		return m, err
	}
	if err := os.Rename(aside, dir); err != nil {
		return m, err
	}
	return m, syncDir(filepath.Dir(dir))
}

// lifeOf reads of todos.db which life of the node's log it holds, and the largest id
// of the node's own in each table that counts them.
func lifeOf(ctx context.Context, db *sqlite.DB, origin int) (incarnation string, ids map[string]int64, err error) {
	ids = map[string]int64{}
	_, err = sqlite.Read(ctx, db, func(tx *sqlite.Tx) (_ struct{}, err error) {
		if incarnation, _, err = sqlite.One(tx, sqlite.Value[string], `SELECT incarnation FROM sync_state`); err != nil {
			return struct{}{}, err
		}
		for _, t := range replicated(scheduler.NewTable(nil)) {
			if t.Derived != nil {
				continue
			}
			if ids[t.Name], _, err = sqlite.One(tx, sqlite.Value[int64], `SELECT coalesce(max(id), 0) FROM `+t.Name+` WHERE origin = ?`, origin); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return incarnation, ids, err
}

func writeManifest(path string, m manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

func sum(path string) (manifestFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return manifestFile{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return manifestFile{n, hex.EncodeToString(h.Sum(nil))}, err
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// watch says now and then how far a copy has come, until it is told to stop.
func (o *options) watch(dir string) (stop func()) {
	tick, quit, done := time.NewTicker(2*time.Second), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				var bytes int64
				for _, s := range schemas {
					if fi, err := os.Stat(filepath.Join(partial(dir), s.File())); err == nil {
						bytes += fi.Size()
					}
				}
				fmt.Fprintf(o.err, "%s copied so far\n", size(bytes))
			}
		}
	}()
	return func() {
		tick.Stop()
		close(quit)
		<-done
	}
}

func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
