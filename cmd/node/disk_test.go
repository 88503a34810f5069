package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
)

// A node whose disk is full in the middle of a pass stores nothing of the page that
// does not fit, says so, and goes on by itself when there is room. The other node does
// not notice.
func TestANodeWhoseDiskIsFullGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"home", "cloud"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			full, other := w.home, w.cloud
			if side == "cloud" {
				full, other = w.cloud, w.home
			}
			// The file gets no larger than what other things in it have taken.
			db := open(t, full)
			must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
				_, err := tx.Exec(`CREATE TABLE ballast AS SELECT zeroblob(1000000) AS b`)
				return err
			}))
			pages, _, err := sqlite.ReadOne(t.Context(), db, sqlite.Value[int], `SELECT page_count + 20 FROM pragma_page_count`)
			must(t, err)
			must(t, db.Close())
			other.start()
			for i := range 100 {
				must(t, other.add(fmt.Sprintf("todo %03d", i), strings.Repeat("n", 5000)))
			}
			full.start(fmt.Sprint("MAX_PAGES=", pages))
			w.fills(full, other)
			db = open(t, full)
			must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
				_, err := tx.Exec(`DROP TABLE ballast`)
				return err
			}))
			must(t, db.Close())
			w.goesOn(full, other)
		})
	}
}

// open opens the database of a node that runs, or does not, from this process.
func open(t testing.TB, p *process) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(p.dir, sqlite.Todos.File()), Schema: sqlite.Todos, Now: time.Now})
	must(t, err)
	return db
}

// fills waits until the disk of a node is full, and checks how both live with it. The
// node has 100 todos of 5,000 bytes to read, for which there is no room.
func (w *pair) fills(full, other *process) {
	t := w.t
	t.Helper()
	inTime(t, time.Minute, func() error {
		v, err := full.sync()
		if err == nil && (v.State == "ok" || v.Code != "disk_full" || !strings.Contains(v.Detail, "disk")) {
			err = fmt.Errorf("it says %s %s: %s", v.State, v.Code, v.Detail)
		}
		return err
	})
	inTime(t, time.Minute, func() error {
		v, err := other.sync()
		if err == nil && other == w.home && (v.State == "ok" || !strings.Contains(v.Detail, "disk")) {
			err = fmt.Errorf("the other says %s %s: %s", v.State, v.Code, v.Detail)
		}
		return err
	})
	for full.add("once too often", strings.Repeat("n", 5000)) == nil { // until nothing fits
	}
	err := full.add("once too often", strings.Repeat("n", 5000))
	equal(t, "what a person is told", err != nil && strings.Contains(err.Error(), "503") && strings.Contains(err.Error(), "disk_full"), true)
	must(t, other.add("meanwhile", ""))
	must(t, full.call(t.Context(), http.MethodGet, "/v1/todos", nil, nil))
	pages, rows := len(cursors(t, full)), len(todosAt(t, full, "todo %"))
	if pages == 0 && rows > 0 || rows == 100 {
		t.Errorf("of a page that did not fit %d rows are there, and %d cursors", rows, pages)
	}
	whole, err := look(t.Context(), full.dir, sqlite.Todos, `PRAGMA integrity_check`)
	must(t, err)
	equal(t, "what SQLite finds", fmt.Sprint(whole), "[ok]")
}

func cursors(t testing.TB, p *process) []string {
	t.Helper()
	list, err := look(t.Context(), p.dir, sqlite.Todos, `SELECT cursor FROM sync_cursors`)
	must(t, err)
	return list
}

// goesOn waits until both nodes have the same again.
func (w *pair) goesOn(full, other *process) {
	t := w.t
	t.Helper()
	inTime(t, time.Minute, func() error {
		if n := len(todosAt(t, full, "todo %")); n < 100 {
			return fmt.Errorf("%d of 100 have come", n)
		}
		return nil
	})
	must(t, full.add("afterwards", ""))
	inTime(t, time.Minute, w.settle)
	must(t, w.same())
	equal(t, "meanwhile", len(todosAt(t, full, "meanwhile")), 1)
	equal(t, "afterwards", len(todosAt(t, other, "afterwards")), 1)
}
