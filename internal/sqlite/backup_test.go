package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

// copyOf opens the copy of a schema's file in a folder, which is how a restored
// one begins.
func copyOf(t *testing.T, dir string, s sqlite.Schema) *sqlite.DB {
	t.Helper()
	db := sqlitetest.OpenAt(t, s, filepath.Join(dir, s.File()))
	equal(t, "integrity of "+s.File(), query[string](t, db, `PRAGMA integrity_check`), "ok")
	return db
}

func set(list string) map[string]bool {
	m := map[string]bool{}
	for _, k := range strings.Fields(list) {
		m[k] = true
	}
	return m
}

// pairs writes the same key to two files, the second once the first is answered.
type pairs struct {
	mu       sync.Mutex
	answered []string // keys whose second half was answered
}

func (p *pairs) write(ctx context.Context, name string, first, second *sqlite.DB) error {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s-%06d", name, n)
		for _, db := range []*sqlite.DB{first, second} {
			if err := db.Write(context.WithoutCancel(ctx), put(key, strings.Repeat("x", 300))); err != nil {
				return err
			}
		}
		p.mu.Lock()
		p.answered = append(p.answered, key)
		p.mu.Unlock()
	}
	return nil
}

func (p *pairs) soFar() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered[:len(p.answered):len(p.answered)]
}

// A copy of each file at a moment of its own would show a second half without the
// first, in one direction or the other.
func TestBackupHasAllFilesAtOneMomentWhileTheyAreWritten(t *testing.T) {
	todos, users := sqlitetest.Open(t, sqlite.Todos), sqlitetest.Open(t, sqlite.Users)
	ctx, stop := context.WithCancel(t.Context())
	var p pairs
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			if err := p.write(ctx, fmt.Sprint("there", i), todos, users); err != nil {
				t.Error(err)
			}
		})
		writers.Go(func() {
			if err := p.write(ctx, fmt.Sprint("back", i), users, todos); err != nil {
				t.Error(err)
			}
		})
	}
	type taken struct {
		dir    string
		before []string
	}
	var backups []taken
	for len(p.soFar()) < 50 { // so that the first copy has something in it
		_, _ = sqlite.Read(ctx, todos, func(*sqlite.Tx) (int, error) { return 0, nil })
	}
	for range 4 {
		b := taken{dir: t.TempDir(), before: p.soFar()}
		must(t, sqlite.Backup(t.Context(), b.dir, todos, users))
		backups = append(backups, b)
	}
	stop()
	writers.Wait()
	for _, b := range backups {
		inTodos, inUsers := set(keys(t, copyOf(t, b.dir, sqlite.Todos))), set(keys(t, copyOf(t, b.dir, sqlite.Users)))
		for _, key := range b.before {
			if !inTodos[key] || !inUsers[key] {
				t.Fatalf("%s was answered before the backup and is not in it", key)
			}
		}
		for key := range inUsers {
			if strings.HasPrefix(key, "there") && !inTodos[key] {
				t.Fatalf("%s: users.db was copied later than todos.db", key)
			}
		}
		for key := range inTodos {
			if strings.HasPrefix(key, "back") && !inUsers[key] {
				t.Fatalf("%s: todos.db was copied later than users.db", key)
			}
		}
	}
}

// No file is written between the first snapshot and the last.
func TestBackupHoldsEveryWriterUntilAllSnapshotsAreOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, todos *sqlite.DB) {
		users, dir := sqlitetest.Open(t, sqlite.Users), t.TempDir()
		gate := make(chan struct{})
		var done []string
		run := func(name string, work func() error) {
			go func() { done = append(done, fmt.Sprint(name, " ", work())) }()
			synctest.Wait()
		}
		run("slow", func() error {
			return users.Write(t.Context(), func(tx *sqlite.Tx) error { <-gate; return put("slow", "")(tx) })
		})
		run("backup", func() error { return sqlite.Backup(t.Context(), dir, todos, users) })
		run("late", func() error { return todos.Write(t.Context(), put("late", "")) })
		equal(t, "what is done while users.db is being written", strings.Join(done, ", "), "")
		close(gate)
		synctest.Wait()
		slices.Sort(done)
		equal(t, "what is done", strings.Join(done, ", "), "backup <nil>, late <nil>, slow <nil>")
		equal(t, "todos in the copy", keys(t, copyOf(t, dir, sqlite.Todos)), "")
		equal(t, "users in the copy", keys(t, copyOf(t, dir, sqlite.Users)), "") // it was not answered before
		equal(t, "what is there", keys(t, todos)+" "+keys(t, users), "late slow")
	})
}

func TestBackupIsOnePrivateFileThatOpens(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	must(t, db.Write(t.Context(), put("a", strings.Repeat("x", 100_000))))
	dir := t.TempDir()
	must(t, sqlite.Backup(t.Context(), dir, db))
	t.Run("one file without a log beside it", func(t *testing.T) {
		all, err := filepath.Glob(dir + "/*")
		must(t, err)
		equal(t, "files", strings.Join(all, " "), filepath.Join(dir, "todos.db"))
	})
	t.Run("for its owner's eyes only", func(t *testing.T) {
		fi, err := os.Stat(filepath.Join(dir, "todos.db"))
		must(t, err)
		equal(t, "mode", fi.Mode(), fs.FileMode(0o600))
	})
	t.Run("a node's file again", func(t *testing.T) {
		copied := copyOf(t, dir, sqlite.Todos)
		must(t, copied.Write(t.Context(), put("b", "")))
		equal(t, "what is in the copy", keys(t, copied), "a b")
		equal(t, "what is in the file", keys(t, db), "a")
	})
}

func TestBackupNeverGoesOverAFile(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	must(t, db.Write(t.Context(), put("a", "")))
	err := sqlite.Backup(t.Context(), filepath.Dir(db.Path()), db) // its own folder
	if !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	must(t, db.Write(t.Context(), put("b", "")))
	equal(t, "what is there", keys(t, db), "a b")
	equal(t, "integrity", query[string](t, db, `PRAGMA integrity_check`), "ok")
}

func TestBackupsAtOnceAreEachWhole(t *testing.T) {
	todos, users := sqlitetest.Open(t, sqlite.Todos), sqlitetest.Open(t, sqlite.Users)
	must(t, todos.Write(t.Context(), put("a", "")))
	must(t, users.Write(t.Context(), put("b", "")))
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	var all sync.WaitGroup
	for _, dir := range dirs {
		all.Go(func() {
			if err := sqlite.Backup(t.Context(), dir, todos, users); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, dir := range dirs {
		equal(t, "todos", keys(t, copyOf(t, dir, sqlite.Todos)), "a")
		equal(t, "users", keys(t, copyOf(t, dir, sqlite.Users)), "b")
	}
}

func TestBackupThatIsBrokenOffHoldsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		must(t, db.Write(t.Context(), put("a", "")))
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if err := sqlite.Backup(ctx, t.TempDir(), db); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := sqlite.Backup(t.Context(), filepath.Join(t.TempDir(), "missing"), db); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		must(t, db.Write(t.Context(), put("b", "")))
		time.Sleep(time.Minute)
		equal(t, "bytes in the log, which a snapshot would hold", logSize(t, db.Path()), 0)
	})
}

func TestBackupOfAFileOpenForReadingOnly(t *testing.T) {
	path := tempFile(t)
	ours(t, path)
	db, err := sqlite.OpenReadOnly(t.Context(), options(path))
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	dir := t.TempDir()
	must(t, sqlite.Backup(t.Context(), dir, db))
	equal(t, "rows", query[int](t, copyOf(t, dir, sqlite.Todos), `SELECT count(*) FROM applied`), 200)
}
