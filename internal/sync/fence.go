package sync

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// fence is what a node knows of its file when the file has forgotten it. It stands
// beside the database and is in no backup: a database that is older than its fence
// was put back, and must not give out again what the peer has from a later life.
type fence struct {
	Node        string           `json:"node"`
	Origin      int64            `json:"origin"`
	Incarnation string           `json:"incarnation"`
	Reserved    map[string]int64 `json:"reserved"` // table to the largest id that may have been given out
	Floor       map[string]int64 `json:"floor"`    // table to an id above which the next one is, whatever the file has
	Served      int64            `json:"served"`   // a seq that the peer may have read
}

const (
	idBlock = 1000 // ids reserved at once: a write of the fence for so many rows

	forgotten     = 100_000   // ids left out at least when nothing tells how many were given out
	mostForgotten = 1_000_000 // and less than so many

	fenceEvery = time.Second // between two writes of Served
)

// ErrFence refuses a fence with a number that no counting leads to: to go on from it
// would leave the node none for new rows.
var ErrFence = fault.New(fault.Internal, "fence_damaged", "The file todos.fence in the data folder names a number that this node cannot have given out. With the node stopped, move that file out of the folder and start the node: it counts on from a number that is free. No row is lost by that.")

// ErrFenceUnread is returned where a fence is there and cannot be read.
var ErrFenceUnread = fault.New(fault.Internal, "fence_unreadable", "The file todos.fence in the data folder cannot be read. Let this node read it. If that cannot be had: with the node stopped, move it out of the folder and start the node: it counts on from a number that is free. No row is lost by that.")

// mostReserved bounds the ids in a fence: as many above those that are believed of the
// peer as a node may ever make.
const mostReserved = believedID + 1<<40

// loadFence reads the fence at path. One that is missing or makes no sense is no
// fence: what follows is safe, and only begins a new life. One that makes sense and
// cannot be right is ErrFence, one that the disk does not give ErrFenceUnread.
func loadFence(path string) (f fence, found bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil
	}
	if err != nil {
		return f, false, ErrFenceUnread.Because(err)
	}
	if d := json.NewDecoder(bytes.NewReader(b)); d.Decode(&f) != nil || f.Node == "" {
		return fence{}, false, nil
	}
	for _, ids := range []map[string]int64{f.Reserved, f.Floor} {
		for table, id := range ids {
			if id < 0 || id > mostReserved {
				return fence{}, false, ErrFence.Because(fmt.Errorf("%s: %.40s %d", path, table, id))
			}
		}
	}
	return f, true, nil
}

// save makes f durable at path: whole, or as it was.
func (f fence) save(path string) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := writeDurably(next, append(b, '\n')); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return syncDir(path)
}

// removeFence forgets the fence at path, where there is one.
func removeFence(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(path)
}

// syncDir makes durable what was made, renamed or removed at path.
func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func writeDurably(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return sqlite.ErrFull.Because(err) // as if the row had not fitted that the fence goes before
	}
	return err
}

// guard keeps the fence of a log. A log without a path has none.
type guard struct {
	path   string
	fence  fence
	read   int64     // a seq that the peer may have read in this life
	stamp  time.Time // of the last write of Served
	absent bool      // there was none when the log was opened
}

// load reads the fence of a log that is being opened.
func (g *guard) load() error {
	if g.path == "" {
		return nil
	}
	f, found, err := loadFence(g.path)
	g.fence, g.absent = f, !found
	return err
}

// reserve makes sure that id of table stands in the fence before it is used.
func (g *guard) reserve(table string, id int64) error {
	if g.path == "" || id <= g.fence.Reserved[table] {
		return nil
	}
	next := g.fence
	next.Reserved = with(next.Reserved, table, id+idBlock-1)
	return g.replace(next)
}

// raise keeps id as one above which the next one of table is.
func (g *guard) raise(table string, id int64) error {
	if id <= g.fence.Floor[table] {
		return nil
	}
	next := g.fence
	next.Floor = with(next.Floor, table, id)
	return g.replace(next)
}

// with returns a copy of ids with one of them raised.
func with(ids map[string]int64, table string, id int64) map[string]int64 {
	next := map[string]int64{}
	maps.Copy(next, ids)
	next[table] = max(next[table], id)
	return next
}

// served notes, at most once a second, that the peer may have read up to seq; what
// came within the second is noted with the next look, also at nothing. What the fence
// does not know yet, the tokens tell.
func (g *guard) served(seq int64, now time.Time) error {
	g.read = max(g.read, seq)
	if g.path == "" || g.read <= g.fence.Served || now.Sub(g.stamp).Abs() < fenceEvery {
		return nil
	}
	next := g.fence
	next.Served, g.stamp = g.read, now
	return g.replace(next)
}

func (g *guard) replace(next fence) error {
	if g.path == "" {
		g.fence = next
		return nil
	}
	if err := next.save(g.path); err != nil {
		return err
	}
	g.fence = next
	return nil
}

// ForceRestored has the log that is opened next beside the fence at path begin a
// new incarnation, with ids above those given. It belongs before the databases of a
// backup take their places: a crash between the two only costs a reading from the
// start.
func ForceRestored(path string, highest map[string]int64) error {
	f, found, err := loadFence(path)
	if err != nil || !found {
		return err // without a fence the database counts as restored anyway
	}
	f.Incarnation = ""
	for table, id := range highest {
		f.Reserved = with(f.Reserved, table, id)
	}
	return f.save(path)
}
