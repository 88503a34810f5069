package sqlite_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// digest is the content of a file, and which files lie beside it.
func digest(t *testing.T, path string) string {
	t.Helper()
	beside, err := filepath.Glob(filepath.Dir(path) + "/*")
	must(t, err)
	return content(t, path) + " among " + strings.Join(beside, " ")
}

func assertGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

// raw runs statements on a file as another program would.
func raw(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	for _, s := range statements {
		_, err := db.Exec(s)
		must(t, err)
	}
	must(t, db.Close())
}

// ours makes a file with some rows in it and closes it.
func ours(t *testing.T, path string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), options(path))
	must(t, err)
	must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
		for i := range 200 {
			if err := put(fmt.Sprintf("%03d", i), strings.Repeat("x", 1000))(tx); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, db.Close())
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, change(b), 0o600))
}

func TestFileThatIsNotOursIsRefusedAndNotTouched(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		want error
	}{
		{"another program's", func(t *testing.T, path string) { raw(t, path, `CREATE TABLE theirs (a)`) }, sqlite.ErrForeign},
		{"another program's in WAL mode", func(t *testing.T, path string) {
			raw(t, path, `PRAGMA journal_mode = WAL`, `CREATE TABLE theirs (a)`)
		}, sqlite.ErrForeign},
		{"another program's, marked as its own and empty", func(t *testing.T, path string) {
			raw(t, path, `PRAGMA application_id = 7`)
		}, sqlite.ErrForeign},
		{"a newer version's", func(t *testing.T, path string) { ours(t, path); raw(t, path, `PRAGMA user_version = 900`) }, sqlite.ErrNewer},
		{"a text", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat("Dear diary, this is no database.\n", 99)), 0o600))
		}, sqlite.ErrCorrupt},
		{"a short text", func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("hello"), 0o600)) }, sqlite.ErrCorrupt},
		{"ours cut to a quarter", func(t *testing.T, path string) {
			ours(t, path)
			edit(t, path, func(b []byte) []byte { return b[:len(b)/4] })
		}, sqlite.ErrCorrupt},
		{"ours cut within its first page", func(t *testing.T, path string) {
			ours(t, path)
			edit(t, path, func(b []byte) []byte { return b[:700] })
		}, sqlite.ErrCorrupt},
		{"ours with garbage in its first page", func(t *testing.T, path string) {
			ours(t, path)
			edit(t, path, func(b []byte) []byte { copy(b[100:], bytes.Repeat([]byte{0xa5}, 3000)); return b })
		}, sqlite.ErrCorrupt},
		{"ours with its name gone", func(t *testing.T, path string) {
			ours(t, path)
			edit(t, path, func(b []byte) []byte { copy(b, make([]byte, 16)); return b })
		}, sqlite.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := tempFile(t)
			c.make(t, path)
			before := digest(t, path)
			for name, open := range map[string]func(context.Context, sqlite.Options) (*sqlite.DB, error){
				"Open": sqlite.Open, "OpenReadOnly": sqlite.OpenReadOnly,
			} {
				_, err := open(t.Context(), options(path))
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v", name, err)
				}
				equal(t, "the file after "+name, digest(t, path), before)
			}
		})
	}
}

func TestGarbageDeepInTheFileIsNamedWhenItIsRead(t *testing.T) {
	path := tempFile(t)
	ours(t, path)
	edit(t, path, func(b []byte) []byte { // the first three pages stay as they are
		copy(b[3*4096:], bytes.Repeat([]byte{0xa5}, len(b)))
		return b
	})
	db, err := sqlite.Open(t.Context(), options(path))
	if err == nil {
		t.Cleanup(func() { must(t, db.Close()) })
		_, err = sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (int, error) {
			n, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM applied WHERE answer <> ''`)
			return n, err
		})
	}
	if !errors.Is(err, sqlite.ErrCorrupt) {
		t.Fatal(err)
	}
}

// A file that cannot be read is not a damaged one: nobody should restore a backup
// over it.
func TestFileThatCannotBeReadIsNotCalledDamaged(t *testing.T) {
	t.Run("a folder", func(t *testing.T) {
		_, err := sqlite.Open(t.Context(), options(t.TempDir()))
		if err == nil || errors.Is(err, sqlite.ErrCorrupt) {
			t.Fatal(err)
		}
	})
	t.Run("by a caller who has gone", func(t *testing.T) {
		path := tempFile(t)
		ours(t, path)
		ctx, leave := context.WithCancel(t.Context())
		leave()
		_, err := sqlite.Open(ctx, options(path))
		if !errors.Is(err, context.Canceled) || errors.Is(err, sqlite.ErrCorrupt) {
			t.Fatal(err)
		}
	})
	t.Run("in a folder that is missing", func(t *testing.T) {
		_, err := sqlite.Open(t.Context(), options(filepath.Join(t.TempDir(), "missing", "todos.db")))
		if err == nil || errors.Is(err, sqlite.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

// A process that dies while it makes the file leaves the first page, which turns
// the journal mode, and the journal that takes it back.
func TestFileWhoseMakingWasCutShortIsMadeAgain(t *testing.T) {
	path, other := tempFile(t), filepath.Join(t.TempDir(), "other.db")
	raw(t, path, `PRAGMA journal_mode = WAL`)
	db, err := sql.Open("sqlite", other+"?_pragma=cache_size(1)")
	must(t, err)
	conn, err := db.Conn(t.Context())
	must(t, err)
	for _, s := range []string{`BEGIN`, `CREATE TABLE half (a)`, `INSERT INTO half SELECT randomblob(100000)`} {
		_, err := conn.ExecContext(t.Context(), s)
		must(t, err)
	}
	journal, err := os.ReadFile(other + "-journal")
	must(t, err)
	must(t, os.WriteFile(path+"-journal", journal, 0o600))
	must(t, conn.Close())
	must(t, db.Close())
	if fi, err := os.Stat(path); err != nil || fi.Size() == 0 || len(journal) == 0 {
		t.Fatal("there is nothing to take back: the test proves nothing", err)
	}
	ours := open(t, options(path))
	must(t, ours.Write(t.Context(), put("a", "")))
	equal(t, "what is there", keys(t, ours), "a")
	assertGone(t, path+"-journal")
}

func TestEmptyFileIsANewOne(t *testing.T) {
	path := tempFile(t)
	must(t, os.WriteFile(path, nil, 0o600))
	db := open(t, options(path))
	must(t, db.Write(t.Context(), put("a", "")))
	equal(t, "what is there", keys(t, db), "a")
}

func TestPathIsTakenLiterally(t *testing.T) {
	for _, name := range []string{"with space.db", "what?mode=ro", "100%.db", "%41.db", "a#b.db", "家里的.db", "a&b=c.db", "a;b.db", "a'b\".db", "c:d.db"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "in "+name)
			must(t, os.Mkdir(dir, 0o700))
			path := filepath.Join(dir, name)
			db := open(t, options(path))
			must(t, db.Write(t.Context(), put("a", "")))
			if fi, err := os.Stat(path); err != nil || fi.Size() == 0 {
				t.Fatal("the file is elsewhere:", err)
			}
			equal(t, "the path", db.Path(), path)
			equal(t, "what is there", keys(t, db), "a")
		})
	}
	t.Run("below the working directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		db := open(t, options("here:%3f.db"))
		must(t, db.Write(t.Context(), put("a", "")))
		_, err := os.Stat("here:%3f.db")
		must(t, err)
	})
}

func TestWhatWasWrittenIsThereWhenTheFileIsOpenedAgain(t *testing.T) {
	path := tempFile(t)
	ours(t, path)
	db := sqlitetest.OpenAt(t, sqlite.Todos, path)
	equal(t, "rows", query[int](t, db, `SELECT count(*) FROM applied`), 200)
	equal(t, "schema", db.Schema(), sqlite.Todos)
}
