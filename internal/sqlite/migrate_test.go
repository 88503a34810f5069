package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOlderComparesVersionsByTheirNumbers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"3.51.3", "3.51.3", false},
		{"3.51.2", "3.51.3", true},
		{"3.9.12", "3.51.3", true},
		{"3.52.0", "3.51.3", false},
		{"3.51.10", "3.51.3", false},
		{"3.53", "3.51.3", false},
		{"3.51", "3.51.3", true},
		{"4.0.0", "3.51.3", false},
		{"2.99.99", "3.51.3", true},
		{"unreadable", "3.51.3", true},
		{"", "3.51.3", true},
	} {
		if got := older(c.a, c.b); got != c.want {
			t.Errorf("older(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func TestMigrationsAreNumberedWithoutAGap(t *testing.T) {
	for _, c := range []struct {
		names []string
		good  bool
	}{
		{nil, true},
		{[]string{"m/0001_a.sql", "m/0002_b.sql"}, true},
		{[]string{"m/0001_a.sql", "m/0003_c.sql"}, false},
		{[]string{"m/0002_b.sql"}, false},
		{[]string{"m/0001_a.sql", "m/0001_b.sql"}, false},
		{[]string{"m/1_a.sql"}, false},
	} {
		if err := numbered(c.names); (err == nil) != c.good {
			t.Errorf("%v: %v", c.names, err)
		}
	}
	for _, s := range []Schema{Todos, Users} {
		names, err := s.scripts()
		if err != nil || len(names) == 0 {
			t.Errorf("%s: %v %v", s, names, err)
		}
	}
}

// schemaOf is the whole schema of a file, as text, and how its user_version stands.
func schemaOf(t *testing.T, db *DB) string {
	t.Helper()
	s, err := Read(context.WithoutCancel(t.Context()), db, func(tx *Tx) (string, error) {
		s, _, err := One(tx, Value[string], `
			SELECT group_concat(coalesce(sql, name), char(10) ORDER BY type, name) || char(10) || (SELECT user_version FROM pragma_user_version)
			FROM sqlite_schema`)
		return s, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func optionsFor(s Schema, path string) Options {
	return Options{Path: path, Schema: s, Now: time.Now, Rand: rand.NewChaCha8([32]byte{})}
}

// A disk that is full at each possible moment of the way stands for a crash there.
func TestMigrationThatWasCutShortIsDoneAtTheNextStart(t *testing.T) {
	for _, s := range []Schema{Todos, Users} {
		fresh, err := Open(t.Context(), optionsFor(s, filepath.Join(t.TempDir(), s.File())))
		if err != nil {
			t.Fatal(err)
		}
		want := schemaOf(t, fresh)
		if err := fresh.Close(); err != nil {
			t.Fatal(err)
		}
		cut, whole := 0, false
		for pages := 1; !whole; pages += 1 + pages/4 {
			o := optionsFor(s, filepath.Join(t.TempDir(), s.File()))
			o.MaxPages = pages
			db, err := Open(t.Context(), o)
			switch {
			case err == nil:
				whole = true
				err = db.Close()
			case errors.Is(err, ErrFull):
				cut, err = cut+1, nil
			}
			if err != nil {
				t.Fatalf("%s within %d pages: %v", s, pages, err)
			}
			o.MaxPages = 0
			if db, err = Open(t.Context(), o); err != nil {
				t.Fatalf("%s after %d pages: %v", s, pages, err)
			}
			if got := schemaOf(t, db); got != want {
				t.Fatalf("%s after %d pages:\n%s\nwant\n%s", s, pages, got, want)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if cut < 3 {
			t.Errorf("%s was cut short %d times: the test proves little", s, cut)
		}
	}
}

func TestMigrationFailsWhereItLeavesAReferenceDangling(t *testing.T) {
	o := optionsFor(Users, filepath.Join(t.TempDir(), Users.File()))
	db, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := schemaOf(t, db)
	err = db.Write(t.Context(), func(tx *Tx) error {
		return tx.migrate(`
			CREATE TABLE parents (id INTEGER PRIMARY KEY) STRICT;
			CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED) STRICT;
			INSERT INTO children VALUES (7)`, 99)
	})
	if err == nil || !strings.Contains(err.Error(), "children") {
		t.Fatal(err)
	}
	if got := schemaOf(t, db); got != want {
		t.Fatalf("it left something:\n%s", got)
	}
}

func TestMigrationsRunOnce(t *testing.T) {
	o := optionsFor(Todos, filepath.Join(t.TempDir(), Todos.File()))
	for i := range 3 {
		db, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		n, err := Read(t.Context(), db, func(tx *Tx) (int, error) {
			n, _, err := One(tx, Value[int], `SELECT count(*) FROM applied`)
			return n, err
		})
		if err != nil || n != i {
			t.Fatal(n, err)
		}
		err = db.Write(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(`INSERT INTO applied (effect_key, answer, at) VALUES (?, '', 1)`, fmt.Sprint(i))
			return err
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// Texts of RFC 3339 do not sort as the instants they name: a fraction sorts before the
// Z of the same second, an offset after it.
func TestEachTimeInASchemaIsAnInteger(t *testing.T) { // R:F6
	for _, s := range []Schema{Todos, Users} {
		db, err := Open(t.Context(), optionsFor(s, filepath.Join(t.TempDir(), s.File())))
		if err != nil {
			t.Fatal(err)
		}
		times, err := ReadAll(t.Context(), db, Value[string], `
			SELECT c.type
			FROM pragma_table_list AS t, pragma_table_info(t.name) AS c
			WHERE t.type = 'table' AND (c.name = 'at' OR c.name LIKE '%\_at' ESCAPE '\')`)
		if err != nil || len(times) < 5 {
			t.Fatal(s, times, err)
		}
		for _, kind := range times {
			if kind != "INTEGER" {
				t.Errorf("%s keeps a time as %s", s, kind)
			}
		}
		loose, err := ReadAll(t.Context(), db, Value[string], `
			SELECT name FROM pragma_table_list WHERE type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite%'`)
		if err != nil || len(loose) > 0 {
			t.Errorf("%s: not STRICT, so that a text could get in: %v %v", s, loose, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
