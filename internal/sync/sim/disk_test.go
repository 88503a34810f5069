package sim

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	gosync "sync"
	"time"

	"tandem/internal/sqlite"
)

// disk is the folder of a node and the database that is open in it. It outlives a
// world: to open a file and to prepare its statements costs more than a story.
type disk struct {
	dir   string
	db    *sqlite.DB
	now   func() int64 // Unix ms, by the clock of the node that has the disk
	dice  *rand.ChaCha8
	dirty bool // its schema is no longer the one that all begin with
}

// Read implements io.Reader: all randomness of what runs on the disk.
func (d *disk) Read(p []byte) (int, error) { return d.dice.Read(p) }

// seed makes what comes by chance follow from the world and the life.
func (d *disk) seed(world uint64, node, life int) {
	var s [32]byte
	binary.BigEndian.PutUint64(s[:], world)
	binary.BigEndian.PutUint32(s[8:], uint32(node))
	binary.BigEndian.PutUint32(s[12:], uint32(life))
	d.dice = rand.NewChaCha8(s)
}

func (d *disk) path() string  { return filepath.Join(d.dir, sqlite.Todos.File()) }
func (d *disk) fence() string { return filepath.Join(d.dir, "fence.json") }

// open opens the database, as a start of the node does.
func (d *disk) open() (err error) {
	d.db, err = sqlite.Open(ctx, sqlite.Options{
		Path: d.path(), Schema: sqlite.Todos, Rand: d, Volatile: true,
		Now: func() time.Time { return time.UnixMilli(d.now()) },
	})
	return err
}

func (d *disk) close() error {
	if d.db == nil {
		return nil
	}
	err := d.db.Close()
	d.db = nil
	return err
}

// copied are the files that make a database; what SQLite shares between processes
// is made anew.
var copied = []string{"", "-wal"}

// remove takes the database away, which must be closed.
func (d *disk) remove() error {
	var errs []error
	for _, suffix := range append([]string{"-shm"}, copied...) {
		if err := os.Remove(d.path() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// blank is how a world finds the disk: a database without rows, and no fence.
func (d *disk) blank() error {
	if err := os.Remove(d.fence()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if wal, err := os.Stat(d.path() + "-wal"); err == nil && wal.Size() > 1<<20 {
		d.dirty = true // a snapshot would copy what other worlds wrote
	}
	if d.db != nil && !d.dirty {
		return d.db.Write(ctx, func(tx *sqlite.Tx) error {
			names, err := sqlite.All(tx, sqlite.Value[string], `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'`)
			for _, name := range names {
				if err == nil {
					_, err = tx.Exec(`DELETE FROM ` + name)
				}
			}
			return err
		})
	}
	d.dirty = false
	if err := errors.Join(d.close(), os.MkdirAll(d.dir, 0o700), d.remove(), os.WriteFile(d.path(), empty(), 0o600)); err != nil {
		return err
	}
	return d.open()
}

// empty is a migrated file without rows: to copy it is faster than to make it.
var empty = gosync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp(scratch(), "sim")
	if err == nil {
		defer os.RemoveAll(dir)
		d := disk{dir: dir, now: func() int64 { return 0 }}
		d.seed(0, 0, 0)
		if err = d.open(); err == nil {
			err = errors.Join(d.db.Write(ctx, func(tx *sqlite.Tx) error {
				_, err := tx.Exec(`CREATE TABLE sim_acts (n INTEGER PRIMARY KEY, key TEXT NOT NULL) STRICT`) // what letters did
				return err
			}), d.close())
		}
		if err == nil {
			var b []byte
			if b, err = os.ReadFile(d.path()); err == nil {
				return b
			}
		}
	}
	panic(err)
})

// scratch is where the files of the nodes lie: in memory where the machine has room
// for that.
func scratch() string {
	const shm = "/dev/shm"
	if fi, err := os.Stat(shm); err == nil && fi.Mode()&fs.ModeSticky != 0 {
		return shm
	}
	return os.TempDir()
}
