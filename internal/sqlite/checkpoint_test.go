package sqlite_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
)

func logSize(t *testing.T, path string) int64 {
	t.Helper()
	fi, err := os.Stat(path + "-wal")
	must(t, err)
	return fi.Size()
}

func fill(t *testing.T, db *sqlite.DB, prefix string) {
	t.Helper()
	for i := range 20 {
		must(t, db.Write(t.Context(), put(fmt.Sprint(prefix, i), strings.Repeat("x", 10_000))))
	}
}

func TestLogIsFoldedBackIntoTheFileWhenNothingIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		for _, round := range []string{"a", "b"} {
			fill(t, db, round)
			if logSize(t, db.Path()) == 0 {
				t.Fatal("nothing was in the log: the test proves nothing")
			}
			time.Sleep(6 * time.Second)
			equal(t, "bytes in the log", logSize(t, db.Path()), 0)
		}
	})
}

func TestLogThatAReaderHeldIsFoldedBackOnceHeEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		fill(t, db, "a")
		held := make(chan struct{})
		go func() {
			_, _ = sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (int, error) {
				_, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM applied`)
				<-held
				return 0, err
			})
		}()
		synctest.Wait()
		fill(t, db, "b")
		time.Sleep(time.Minute)
		if logSize(t, db.Path()) == 0 {
			t.Fatal("the reader held nothing: the test proves nothing")
		}
		close(held)
		time.Sleep(time.Minute)
		equal(t, "bytes in the log", logSize(t, db.Path()), 0)
	})
}

func TestWriteDoesNotWaitForALogThatAReaderHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		fill(t, db, "a")
		held := make(chan struct{})
		go func() {
			_, _ = sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (int, error) {
				_, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM applied`)
				<-held
				return 0, err
			})
		}()
		synctest.Wait()
		fill(t, db, "b")
		for i := range 30 { // some of them while the writer would fold the log back
			time.Sleep(5*time.Second + time.Millisecond)
			began := time.Now()
			must(t, db.Write(t.Context(), put(fmt.Sprint(i), "")))
			equal(t, "how long it took", time.Since(began), 0)
		}
		close(held)
	})
}

func TestLogThatStaysLargeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		o := options(filepath.Join(t.TempDir(), sqlite.Todos.File()))
		o.Log = slog.New(slog.NewTextHandler(&said, nil))
		db := open(t, o)
		held := make(chan struct{})
		go func() {
			_, _ = sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (int, error) {
				_, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM applied`)
				<-held
				return 0, err
			})
		}()
		synctest.Wait()
		time.Sleep(6 * time.Second)
		equal(t, "said of a small log", said.String(), "")
		const secret = "private words "
		for i := range 5 {
			must(t, db.Write(t.Context(), put(fmt.Sprint(i), strings.Repeat(secret, 14<<20/len(secret)))))
		}
		time.Sleep(6 * time.Second)
		equal(t, "lines", strings.Count(said.String(), "\n"), 1)
		if !strings.Contains(said.String(), "write-ahead log stays large") || strings.Contains(said.String(), secret) {
			t.Error(said.String())
		}
		close(held)
	})
}
