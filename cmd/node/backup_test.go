package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
)

// whole checks that dir is a backup of the node, and returns the todos in it.
func whole(t testing.TB, dir, node string) []string {
	t.Helper()
	var m manifest
	b, err := os.ReadFile(filepath.Join(dir, "backup.json"))
	must(t, err)
	must(t, json.Unmarshal(b, &m))
	equal(t, "the node", m.Node, node)
	life, ids, err := lifeIn(t, dir, m.Origin)
	must(t, err)
	equal(t, "the life", m.Incarnation, life)
	for _, table := range []string{"todos", "scheduled_messages"} {
		if id, named := m.IDs[table]; !named || id < ids[table] {
			t.Errorf("ids of %s: %d in the manifest, %d in the copy", table, id, ids[table])
		}
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		fi, err := e.Info()
		must(t, err)
		equal(t, e.Name()+" may be read by", fi.Mode().Perm(), 0o600)
		names = append(names, e.Name())
	}
	equal(t, "the files", fmt.Sprint(names), "[backup.json todos.db users.db]")
	for name, want := range m.Files {
		got, err := sum(filepath.Join(dir, name))
		must(t, err)
		equal(t, name, got, want)
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", fi.Mode(), err)
	}
	accounts, err := look(t.Context(), dir, sqlite.Users, `SELECT email FROM users`)
	must(t, err)
	equal(t, "accounts", fmt.Sprint(accounts), "["+demoEmail+"]")
	todos, err := look(t.Context(), dir, sqlite.Todos, `SELECT content FROM todos ORDER BY seq`)
	must(t, err)
	return todos
}

// lifeIn is what a copy says of its life and its ids. It leaves the copy as it is.
func lifeIn(t testing.TB, dir string, origin int) (string, map[string]int64, error) {
	aside := t.TempDir()
	must(t, copyFile(filepath.Join(aside, "todos.db"), filepath.Join(dir, "todos.db")))
	db, err := sqlite.OpenReadOnly(t.Context(), sqlite.Options{Path: filepath.Join(aside, "todos.db"), Schema: sqlite.Todos, Now: time.Now})
	must(t, err)
	defer db.Close()
	return lifeOf(t.Context(), db, origin)
}

func TestABackupHoldsWhatWasAnsweredWhetherTheNodeRunsOrNot(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.home.start()
	var want []string
	add := func(content string) {
		t.Helper()
		_, err := w.home.post("/v1/todos", content, map[string]string{"content": content})
		must(t, err)
		want = append(want, content)
	}
	copyTo := func(name string) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "not", "there", name)
		verb(t, w.home.env, "", "backup", dir).exits(t, exitOK, "2 files, ", " in "+dir, "Not in it, keep them apart: "+filepath.Join(w.home.dir, "node.key"))
		equal(t, name, fmt.Sprint(whole(t, dir, "home")), fmt.Sprint(want))
		return dir
	}
	add("one")
	first := copyTo("while it runs")
	add("two")
	must(t, w.home.kill()) // what was answered is only in the log of the file
	copyTo("after a kill")
	w.home.start()
	add("three")
	w.home.terminates()
	copyTo("after a stop")

	// DIR is never written over.
	before := digest(t, first)
	verb(t, w.home.env, "", "backup", first).exits(t, exitFailed, "there already", first)
	w.home.start()
	verb(t, w.home.env, "", "backup", first).exits(t, exitFailed, "there already", first)
	equal(t, "the backup that was there", digest(t, first), before)
	must(t, w.home.alive(t.Context()))
}

// While todos are added without a pause, a copy holds all that had been answered
// before it began, and none twice or out of turn.
func TestABackupOfABusyNodeIsOfOneMoment(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.home.start()
	ctx, stop := context.WithCancel(t.Context())
	answered := make(chan int, 1)
	answered <- 0
	done := make(chan error, 1)
	go func() {
		for i := 1; ctx.Err() == nil; i++ {
			if _, err := w.home.post("/v1/todos", fmt.Sprint(i), map[string]string{"content": fmt.Sprint(i)}); err != nil {
				done <- err
				return
			}
			<-answered
			answered <- i
		}
		done <- nil
	}()
	so := func() int {
		n := <-answered
		answered <- n
		return n
	}
	for n := range 3 {
		eventually(t, func() error {
			if so() < 5*n+5 {
				return fmt.Errorf("only %d were answered", so())
			}
			return nil
		})
		before := so()
		dir := filepath.Join(t.TempDir(), "copy")
		verb(t, w.home.env, "", "backup", dir).exits(t, exitOK)
		todos := whole(t, dir, "home")
		if len(todos) < before {
			t.Errorf("%d had been answered, %d are in the copy", before, len(todos))
		}
		for i, content := range todos {
			equal(t, "in turn", content, fmt.Sprint(i+1))
		}
	}
	stop()
	must(t, <-done)
}

// What is called DIR is whole: a backup that was killed has another name.
func TestABackupThatIsKilledLeavesNothingCalledDIR(t *testing.T) {
	t.Parallel()
	for _, runs := range []bool{false, true} {
		t.Run(fmt.Sprintf("the node runs %t", runs), func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			dir := filepath.Join(t.TempDir(), "copy")
			if runs {
				w.home.start("CRASH_AT=backup.copied")
				verb(t, w.home.env, "", "backup", dir).exits(t, exitFailed, "ask the running node")
				w.home.dies()
			} else {
				w.home.process = w.home.command("backup", dir)
				w.home.process.Env = append(w.home.process.Env, "CRASH_AT=backup.copied")
				must(t, w.home.process.Start())
				w.home.dies()
			}
			left, err := filepath.Glob(dir + "*")
			must(t, err)
			equal(t, "left", fmt.Sprint(left), "["+partial(dir)+"]")
			verb(t, w.home.env, "", "backup", dir).exits(t, exitOK)
			whole(t, dir, "home")
			w.home.start()
			w.home.terminates()
		})
	}
}

func TestABackupThatCannotBeMadeLeavesNothing(t *testing.T) {
	t.Parallel()
	env, data := inhabited(t)
	for _, dir := range []string{data, filepath.Join(data, "lock"), filepath.Join(data, "todos.db")} {
		before := digest(t, data)
		verb(t, env, "", "backup", dir).exits(t, exitFailed, "there already")
		equal(t, "the node's folder", digest(t, data), before)
	}
	verb(t, env, "", "backup", filepath.Join(data, "todos.db", "copy")).exits(t, exitFailed, "not a directory")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	dir := filepath.Join(t.TempDir(), "copy")
	equal(t, "interrupted", execute(ctx, []string{"backup", dir}, terminal{in: strings.NewReader(""), out: &strings.Builder{}, err: &strings.Builder{}, env: env}), exitFailed)
	left, err := filepath.Glob(dir + "*")
	must(t, err)
	equal(t, "left", len(left), 0)

	nothing, folder := alone(t)
	verb(t, nothing, "", "backup", dir).exits(t, exitFailed, "there is nothing in "+folder)
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("a backup of nothing makes %s (%v)", folder, err)
	}
}

// A relative DIR is below the terminal's folder, also where another process writes it.
func TestABackupGoesWhereItsCallerIs(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.home.start()
	here := t.TempDir()
	c := w.home.command("backup", "copy")
	c.Dir = here
	out, err := c.Output()
	must(t, err)
	if !strings.Contains(string(out), filepath.Join(here, "copy")) {
		t.Errorf("it says %q", out)
	}
	whole(t, filepath.Join(here, "copy"), "home")
	entries, err := os.ReadDir(here)
	must(t, err)
	equal(t, "what is there", len(entries), 1)
}
