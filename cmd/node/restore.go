package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

var (
	errNotBackup     = fault.New(fault.Invalid, "not_a_backup", "That folder holds no whole backup. Name one that tandem backup has made.")
	errBackupDamaged = fault.New(fault.Internal, "backup_damaged", "The backup is damaged: it is not what was once copied. Nothing was changed. Restore another one.")
	errOthersBackup  = fault.New(fault.Conflict, "backup_of_another_node", "That is the backup of another node. Restore it with that node's configuration. To make a node of its own of it, copy its databases into an empty data folder and run: tandem adopt --config FILE")
)

func restoreCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "restore DIR",
		Short: "Put the databases of a backup in place of those of this node",
		Long: `Put the databases of a backup in place of those of this node, which must not run. The
backup is checked before anything is touched, and the databases of before are kept in
a folder beside. What was written since the backup comes back from the other node.
Sessions end. Reminders that were waiting to be sent are not sent, since they may have
been since; the doctor lists them. Cut off on the way, all is as before or as after:
do it again.`,
		Example: "  tandem restore --config configs/local.yaml /mnt/backup/tandem-2026-05-06",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return o.restore(c.Context(), world(), args[0]) },
	}
}

func (o *options) restore(ctx context.Context, out outside, dir string) (err error) {
	c, err := o.load()
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	m, err := readManifest(dir, c.Node)
	if err != nil {
		return err
	}
	data := c.Node.Data
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	lock, err := sqlite.Hold(data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	done, finished, err := finishRestore(data, out)
	if err != nil {
		return err
	}
	if !finished || done.From != dir || done.At != m.At { // what was cut off was another one
		if err := o.stage(ctx, out, data, dir, m); err != nil {
			return errors.Join(err, os.RemoveAll(filepath.Join(data, stagedName)))
		}
		if done, _, err = finishRestore(data, out); err != nil {
			return err
		}
	}
	o.reportRestore(data, done)
	return nil
}

func (o *options) reportRestore(data string, done restoring) {
	fmt.Fprintf(o.out, "Restored as of %s.\n", done.At)
	if aside := filepath.Join(data, done.Aside); exists(aside) {
		fmt.Fprintf(o.out, "What was here before is in %s; delete it once all is well.\n", aside)
	}
	if done.Parked > 0 {
		fmt.Fprintf(o.out, "%d notices were waiting to be sent then, and may have been since: they are not sent again, and tandem doctor lists them.\n", done.Parked)
	}
	fmt.Fprintln(o.out, "Everybody logs in anew. Start the node:", o.line("serve"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readManifest reads what a backup says of itself, and refuses one that is not of
// this node.
func readManifest(dir string, node config.Node) (m manifest, err error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, errNotBackup.Because(fmt.Errorf("%s has no %s", dir, manifestName))
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, errBackupDamaged.Because(fmt.Errorf("%s: %w", manifestName, err))
	}
	for _, schema := range schemas {
		f, ok := m.Files[schema.File()]
		switch {
		case !ok:
			return m, errNotBackup.Because(fmt.Errorf("%s does not name %s", manifestName, schema.File()))
		case f.Bytes == 0:
			return m, errBackupDamaged.Because(fmt.Errorf("%s is empty", schema.File()))
		}
	}
	if m.Node != node.Name || m.Origin != node.Origin {
		return m, errOthersBackup.Because(fmt.Errorf("it is of %q, origin %d; the configuration names %q, origin %d", m.Node, m.Origin, node.Name, node.Origin))
	}
	return m, nil
}

// stage copies the backup into the data folder, checks the copy and makes it fit to
// be gone on with, all without touching what the node has. The last step, a rename,
// decides that it takes its place.
func (o *options) stage(ctx context.Context, out outside, data, dir string, m manifest) error {
	staged := filepath.Join(data, stagedName)
	if err := errors.Join(os.RemoveAll(staged), os.Mkdir(staged, 0o700)); err != nil {
		return err
	}
	for _, schema := range schemas {
		to := filepath.Join(staged, schema.File())
		if err := copyFile(to, filepath.Join(dir, schema.File())); err != nil {
			return err
		}
		got, err := sum(to)
		if err == nil && got != m.Files[schema.File()] {
			err = errBackupDamaged.Because(fmt.Errorf("%s is not what %s says", filepath.Join(dir, schema.File()), manifestName))
		}
		if err != nil {
			return err
		}
	}
	out.crash("restore.copied")
	next := restoring{From: dir, At: m.At, Aside: "before-restore-" + out.now().UTC().Format("20060102T150405Z"), IDs: m.IDs}
	for exists(filepath.Join(data, next.Aside)) { // two within a second
		next.Aside += "-again"
	}
	var err error
	if next.Parked, err = o.prepare(ctx, out, staged); err != nil {
		return err
	}
	b, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := errors.Join(writeSynced(filepath.Join(staged, journalName), b), syncDir(staged)); err != nil {
		return err
	}
	out.crash("restore.prepared")
	return errors.Join(os.Rename(staged, filepath.Join(data, decidedName)), syncDir(data))
}

// prepare brings the copies up to date, looks at every page of them, and takes from
// them what only held at the time of the backup.
func (o *options) prepare(ctx context.Context, out outside, staged string) (parked int, err error) {
	f := &folder{dir: staged}
	defer func() {
		err = errors.Join(err, f.closeFiles())
		if err == nil {
			err = nothingBeside(staged)
		}
	}()
	if err := f.open(ctx, out, o.logger()); err != nil {
		return 0, damagedBackup(err)
	}
	for _, db := range f.files() {
		if err := intact(ctx, *db); err != nil {
			return 0, err
		}
	}
	if parked, err = f.startOver(ctx); err != nil {
		return 0, damagedBackup(err)
	}
	return parked, nil
}

// damagedBackup says of what is wrong with a copy that it is so with the backup: whoever
// restores one must not look for it in the node's own files. All else, such as what a
// newer version wrote, a disk that fails or is full and a restore that is given up, is
// what it is: another backup would not help.
func damagedBackup(err error) error {
	if errors.Is(err, sqlite.ErrCorrupt) || errors.Is(err, sqlite.ErrForeign) || errors.Is(err, sqlite.ErrUnlike) {
		return errBackupDamaged.Because(err)
	}
	return err
}

// intact has SQLite look at every page and every index of a file.
func intact(ctx context.Context, db *sqlite.DB) error {
	said, err := sqlite.Read(ctx, db, func(tx *sqlite.Tx) ([]string, error) {
		return sqlite.All(tx, sqlite.Value[string], `PRAGMA integrity_check`)
	})
	if err == nil && !slices.Equal(said, []string{"ok"}) {
		err = sqlite.ErrCorrupt.Because(fmt.Errorf("%q", said))
	}
	if err != nil {
		return damagedBackup(fmt.Errorf("%s: %w", db.Schema().File(), err))
	}
	return nil
}

// nothingBeside refuses files that SQLite has left something beside: moved without it they
// would lack commits.
func nothingBeside(staged string) error {
	left, err := filepath.Glob(filepath.Join(staged, "*.db-wal"))
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%v did not go as its file was closed", left)
	}
	return err
}
