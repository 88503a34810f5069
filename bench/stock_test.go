package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
)

func TestEachContenderAndRunGetsTheSameSentences(t *testing.T) {
	seen := map[string]int{}
	for i := range 1000 {
		s := sentence(i)
		if s != sentence(i) {
			t.Fatalf("todo %d has two texts", i)
		}
		if k, twice := seen[s]; twice {
			t.Fatalf("todos %d and %d are one", k, i)
		}
		seen[s] = i
	}
}

// People's own English shrinks to a third or so, word by word text of 200 words to
// not much less: not to a twentieth, as one sentence repeated would.
func TestSentencesShrinkNoMoreThanPeoplesOwn(t *testing.T) {
	var text, packed bytes.Buffer
	for i := range 5000 {
		text.WriteString(sentence(i) + "\n")
	}
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if ratio := float64(text.Len()) / float64(packed.Len()); ratio > 4 {
		t.Errorf("shrinks to 1/%.1f", ratio)
	}
}

func TestMultiplyMakesRowsLikeTheOneThatIsThere(t *testing.T) {
	n := &node{at: site{dir: t.TempDir()}}
	if err := os.Mkdir(n.at.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("sqlite", fileURL(n.todos(), ""))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, statement := range []string{
		`CREATE TABLE todos (id INTEGER, uid BLOB UNIQUE, seq INTEGER UNIQUE, created_at INTEGER, updated_at INTEGER, seen TEXT, content TEXT UNIQUE, later TEXT) STRICT`,
		`INSERT INTO todos VALUES (7, x'01', 3, 5000, 5000, '{"cloud/abc":5000}', 'the first', 'of a later version')`,
	} {
		if _, err := pool.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.multiply(context.Background(), 50); err != nil {
		t.Fatal(err)
	}
	var all, right int
	if err := pool.QueryRow(`SELECT count(*), count(*) FILTER (WHERE later = 'of a later version' AND seen = '{"cloud/abc":' || updated_at || '}'
		AND id - 7 = seq - 3 AND updated_at = 5000 - 10 * (seq - 3)) FROM todos`).Scan(&all, &right); err != nil {
		t.Fatal(err)
	}
	if all != 50 || right != 50 {
		t.Errorf("%d rows, %d of them right", all, right)
	}
}

func TestACopyOfAFolderIsPrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/key", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := private(dir); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(dir + "/key")
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

func TestTheLastWordOfASentenceIsItsNumber(t *testing.T) {
	if s := sentence(4711); !strings.HasSuffix(s, " 4711") {
		t.Error(s)
	}
}
