package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/standin"
)

// backup copies the machine's files, while it is on.
func (m *machine) backup() (dir string) {
	m.Helper()
	dir = filepath.Join(m.TempDir(), "backup")
	_, err := m.node.backupFor(m.Context(), backupRequest{dir})
	must(m, err)
	return dir
}

// offline runs a verb on the folder of a machine that is off; at is where it dies.
func (m *machine) offline(at string, do func(*options, outside) error) (said string, err error) {
	m.Helper()
	var text bytes.Buffer
	n := m.config.Node
	o := &options{terminal: terminal{out: &text, err: &text, env: []string{
		"TANDEM_NODE_NAME=" + n.Name, fmt.Sprint("TANDEM_NODE_ORIGIN=", n.Origin), "TANDEM_NODE_DATA=" + n.Data,
	}}}
	out := m.far()
	died := false
	out.crash = func(point string) {
		if point == at {
			died = true
			panic(http.ErrAbortHandler)
		}
	}
	survived(func() { err = do(o, out) })
	equal(m, "died at "+at, died, at != "")
	return text.String(), err
}

func (m *machine) restore(dir string) string {
	m.Helper()
	said, err := m.offline("", func(o *options, out outside) error { return o.restore(context.Background(), out, dir) })
	must(m, err)
	return said
}

// contents lists what Ada sees, in order.
func (m *machine) contents() string {
	m.Helper()
	list := strings.Split(m.todos(), ", ")
	for i, line := range list {
		_, list[i], _ = strings.Cut(line, " ")
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (m *machine) several(prefix string, n int) (want []string) {
	for i := range n {
		want = append(want, fmt.Sprintf("%s%02d", prefix, i))
		m.add(want[i])
	}
	return want
}

// What a restored node has lost comes back from the other, what it adds arrives, and
// no row takes another's place: whether or not it writes beyond what the other has read.
func TestARestoredNodeLosesNothingWhetherOrNotItOvertakes(t *testing.T) {
	for _, side := range []string{"home", "cloud"} {
		for name, c := range map[string]struct{ lost, after int }{
			"S:25 before overtaking": {5, 5},
			"S:25 after overtaking":  {5, 20},
			"S:26 a single row":      {5, 1},
		} {
			t.Run(name+" at "+side, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					m, other := b.home, b.cloud
					if side == "cloud" {
						m, other = b.cloud, b.home
					}
					want := m.several("kept", 10)
					settle(time.Second)
					dir := m.backup()
					before := m.node.log.Incarnation()
					want = append(want, m.several("lost", c.lost)...)
					settle(time.Second)
					m.off()
					b.link.cut()
					said := m.restore(dir)
					if !strings.Contains(said, "before-restore-") {
						t.Errorf("it says %q", said)
					}
					m.on()
					m.in(false) // sessions end
					b.login()
					equal(t, "the same life", m.node.log.Incarnation() == before, false)
					want = append(want, m.several("new", c.after)...)
					b.link.mend()
					healed()
					slices.Sort(want)
					equal(t, "here", m.contents(), strings.Join(want, " "))
					equal(t, "there", other.contents(), strings.Join(want, " "))
					b.alike()
					b.quiet()
					m.add("at once") // S:26: nothing waits for an old mark to be passed
					settle(time.Second)
					equal(t, "there, at once", strings.Contains(other.contents(), "at once"), true)
				})
			})
		}
	}
}

func TestATwoMonthsOldBackupBringsNothingOldBack(t *testing.T) { // S:28
	inBubble(t, func(t *testing.T, b *bubble) {
		edited, deleted := b.home.add("as it was"), b.home.add("to be deleted")
		kept := b.home.add("untouched")
		settle(time.Second)
		dir := b.home.backup()
		b.home.off()
		b.cloud.off()
		time.Sleep(60 * 24 * time.Hour)
		b.cloud.on()
		b.home.on()
		settle(time.Second)
		b.login()
		b.home.edit(edited, map[string]any{"content": "as it is"})
		b.home.do(http.MethodDelete, "/v1/todos/"+deleted, nil, nil)
		b.cloud.add("since then")
		settle(time.Second)
		want := b.cloud.todos()
		b.home.off()
		b.home.restore(dir)
		b.home.on()
		healed()
		b.home.login()
		equal(t, "the cloud", b.cloud.todos(), want)
		equal(t, "home", b.home.contents(), b.cloud.contents())
		equal(t, "what was never touched", strings.Contains(want, kept+" untouched"), true)
		b.alike()
		b.quiet()
	})
}

func TestACloudThatIsRestoredWhileHomeSendsHealsAlone(t *testing.T) { // S:30
	inBubble(t, func(t *testing.T, b *bubble) {
		want := b.home.several("early", 5)
		settle(time.Second)
		dir := b.cloud.backup()
		for i := range 10 {
			want = append(want, b.home.several(fmt.Sprint("sent", i, "-"), 2)...)
			settle(time.Second)
		}
		b.cloud.kill()
		want = append(want, b.home.several("meanwhile", 3)...)
		b.cloud.restore(dir)
		b.cloud.on()
		want = append(want, b.home.several("after", 3)...)
		healed()
		healed()
		b.login()
		slices.Sort(want)
		equal(t, "the cloud", b.cloud.contents(), strings.Join(want, " "))
		equal(t, "the state", b.home.node.client.Status().State, "ok")
		b.alike()
		b.quiet()
	})
}

// restorePoints are where a restore may die.
var restorePoints = []string{
	"restore.copied", "folder.opened", "restore.prepared", "restore.decided",
	"restore.aside todos.db", "restore.placed todos.db", "restore.aside users.db", "restore.placed users.db",
}

// Killed anywhere a restore leaves what was there or what was in the backup, and
// whoever comes next finishes it: another restore, or the start.
func TestARestoreThatIsKilledLeavesTheOldOrTheNew(t *testing.T) {
	for i, point := range restorePoints {
		for _, next := range []string{"start", "restore"} {
			t.Run(point+", then "+next, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					b.home.add("in the backup")
					settle(time.Second)
					dir := b.home.backup()
					b.link.cut() // so that what follows does not come back
					b.home.add("since then")
					b.home.kill()
					_, _ = b.home.offline(point, func(o *options, out outside) error { return o.restore(context.Background(), out, dir) })
					decided := i >= slices.Index(restorePoints, "restore.decided")
					if decided {
						_, err := b.home.offline("", func(o *options, out outside) error {
							_, err := o.backupAlone(context.Background(), b.home.config.Node.Data, filepath.Join(t.TempDir(), "x"), out, manifest{})
							return err
						})
						if err == nil || !strings.Contains(explain(err), "Start the node, or run the restore again") {
							t.Errorf("a backup of half a restore: %v", err)
						}
					}
					if next == "restore" {
						b.home.restore(dir)
					}
					b.home.on()
					want := "in the backup since then"
					if decided || next == "restore" {
						want = "in the backup"
						b.home.in(false)
					}
					b.home.login()
					equal(t, "home", b.home.contents(), want)
					equal(t, "what SQLite finds", fmt.Sprint(b.home.rows(`PRAGMA integrity_check`)), "[ok]")
					asides, err := filepath.Glob(filepath.Join(b.home.config.Node.Data, "before-restore-*"))
					must(t, err)
					equal(t, "folders with the files of before", len(asides), strings.Count(want, "in the backup")-strings.Count(want, "since then"))
					for _, name := range []string{stagedName, decidedName} {
						equal(t, name, exists(filepath.Join(b.home.config.Node.Data, name)), false)
					}
					for _, aside := range asides { // the files of before are whole
						old, err := look(t.Context(), aside, sqlite.Todos, `SELECT content FROM todos ORDER BY seq`)
						must(t, err)
						equal(t, "aside", fmt.Sprint(old), "[in the backup since then]")
					}
					b.link.mend()
					healed()
					equal(t, "home, healed", b.home.contents(), want)
					equal(t, "the cloud, healed", b.cloud.contents(), want)
					b.alike()
				})
			})
		}
	}
}

func TestARestoreDoneTwiceKeepsBothSetsOfBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.home.add("in the backup")
		dir := b.home.backup()
		b.home.add("since then")
		settle(time.Second)
		b.home.off()
		b.home.restore(dir)
		b.home.restore(dir)
		b.home.on()
		healed()
		b.home.login()
		equal(t, "home", b.home.contents(), "in the backup since then")
		asides, err := filepath.Glob(filepath.Join(b.home.config.Node.Data, "before-restore-*"))
		must(t, err)
		equal(t, "folders with the files of before", len(asides), 2)
		b.alike()
	})
}

// A notice that waited at the time of the backup was sent since: nobody is rung by it
// again, and the doctor tells of it.
func TestWhatWaitedInABackupRingsNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.register("phone")
		settle(time.Second)
		b.link.cut() // so that home has it from nobody else
		b.telegram.FailAlways(0, standin.HTML(502))
		b.fcm.FailAlways("", standin.InternalError)
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		settle(6 * time.Minute)
		dir := b.home.backup()
		b.fcm.Heal()
		b.telegram.Heal()
		settle(10 * time.Minute)
		rang := b.rang()
		if !strings.Contains(rang, "phone: call May") {
			t.Fatalf("it rang %q", rang)
		}
		b.home.off()
		said := b.home.restore(dir)
		if !strings.Contains(said, "1 notices") {
			t.Errorf("it says %q", said)
		}
		b.home.on()
		settle(time.Hour)
		equal(t, "what rang", b.rang(), rang)
		found, err := b.home.node.doctorFor(t.Context(), struct{}{})
		must(t, err)
		equal(t, "the doctor", strings.Contains(fmt.Sprint(found), "nobody knows whether fire") && strings.Contains(fmt.Sprint(found), "restored"), true)
	})
}

// restorable is a stopped node with a todo, and a backup of it.
func restorable(t testing.TB) (env []string, data, dir string) {
	t.Helper()
	env, data = inhabited(t)
	dir = filepath.Join(t.TempDir(), "backup")
	verb(t, env, "", "backup", dir).exits(t, exitOK)
	return env, data, dir
}

func TestABackupThatCannotBeRestoredChangesNothing(t *testing.T) {
	t.Parallel()
	edit := func(change func(*manifest)) func(t testing.TB, dir string) {
		return func(t testing.TB, dir string) {
			var m manifest
			path := filepath.Join(dir, manifestName)
			b, err := os.ReadFile(path)
			must(t, err)
			must(t, json.Unmarshal(b, &m))
			change(&m)
			must(t, os.Remove(path))
			must(t, writeManifest(path, m))
		}
	}
	// resealed has the manifest agree with a file that was spoiled.
	resealed := func(name string, change func([]byte)) func(t testing.TB, dir string) {
		return func(t testing.TB, dir string) {
			spoil(t, filepath.Join(dir, name), change)
			got, err := sum(filepath.Join(dir, name))
			must(t, err)
			edit(func(m *manifest) { m.Files[name] = got })(t, dir)
		}
	}
	for name, c := range map[string]struct {
		spoil func(t testing.TB, dir string)
		code  int
		says  string
	}{
		"no folder":         {func(t testing.TB, dir string) { must(t, os.RemoveAll(dir)) }, exitCorrupt, "holds no whole backup"},
		"no manifest":       {func(t testing.TB, dir string) { must(t, os.Remove(filepath.Join(dir, manifestName))) }, exitCorrupt, "holds no whole backup"},
		"no users.db":       {func(t testing.TB, dir string) { must(t, os.Remove(filepath.Join(dir, "users.db"))) }, exitCorrupt, "holds no whole backup"},
		"half a manifest":   {func(t testing.TB, dir string) { must(t, os.Truncate(filepath.Join(dir, manifestName), 50)) }, exitCorrupt, "is damaged"},
		"a short manifest":  {edit(func(m *manifest) { delete(m.Files, "users.db") }), exitCorrupt, "holds no whole backup"},
		"another node":      {edit(func(m *manifest) { m.Node = "cloud" }), exitCorrupt, "tandem adopt"},
		"another origin":    {edit(func(m *manifest) { m.Origin = 1 }), exitCorrupt, "tandem adopt"},
		"an empty database": {edit(func(m *manifest) { m.Files["todos.db"] = manifestFile{} }), exitCorrupt, "todos.db is empty"},
		"the other database": {func(t testing.TB, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, "users.db"))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, "todos.db"), b, 0o600))
			got, err := sum(filepath.Join(dir, "todos.db"))
			must(t, err)
			edit(func(m *manifest) { m.Files["todos.db"] = got })(t, dir)
		}, exitCorrupt, "The backup is damaged"},
		"a flipped bit": {func(t testing.TB, dir string) {
			spoil(t, filepath.Join(dir, "users.db"), func(b []byte) { b[len(b)/2] ^= 1 })
		}, exitCorrupt, "is damaged"},
		"damaged before it was copied": {resealed("todos.db", func(b []byte) { clear(b[len(b)-4096:]) }), exitCorrupt, "is damaged"},
		"foreign":                      {resealed("users.db", func(b []byte) { binary.BigEndian.PutUint32(b[68:], 1) }), exitCorrupt, "The backup is damaged"},
		"newer":                        {resealed("todos.db", func(b []byte) { binary.BigEndian.PutUint32(b[60:], 999) }), exitCorrupt, "newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, data, dir := restorable(t)
			before := digest(t, data)
			c.spoil(t, dir)
			verb(t, env, "", "restore", dir).exits(t, c.code, c.says)
			equal(t, "the folder", digest(t, data), before)
		})
	}
}

// A backup goes back into a folder that has lost everything, and into one where only
// a log is left that belongs to another file.
func TestARestoreTakesNoLogThatIsNotTheFiles(t *testing.T) { // S:33
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, data string){
		"nothing is left": func(t *testing.T, data string) { must(t, os.RemoveAll(data)) },
		"a stale log is left": func(t *testing.T, data string) {
			other, from := alone(t)
			verb(t, other, adasPassword, "init", "--email", "eve@example.org", "--password-stdin").exits(t, exitOK)
			f, err := openFolder(t.Context(), from, world(), slog.New(slog.DiscardHandler))
			must(t, err)
			for range 50 {
				must(t, f.users.Write(t.Context(), func(tx *sqlite.Tx) error {
					_, err := tx.Exec(`UPDATE users SET updated_at = updated_at + 1`)
					return err
				}))
			}
			b, err := os.ReadFile(filepath.Join(from, "users.db-wal"))
			must(t, err)
			equal(t, "there is a log", len(b) > 4096, true)
			must(t, f.close())
			for _, file := range []string{"users.db", "todos.db"} {
				must(t, os.WriteFile(filepath.Join(data, file+"-wal"), b, 0o600))
				must(t, os.WriteFile(filepath.Join(data, file+"-shm"), make([]byte, 32768), 0o600))
			}
			must(t, os.Remove(filepath.Join(data, "users.db")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, data, dir := restorable(t)
			spoil(t, data)
			verb(t, env, "", "restore", dir).exits(t, exitOK, "Restored as of", "tandem serve")
			for _, schema := range schemas {
				whole, err := look(t.Context(), data, schema, `PRAGMA integrity_check`)
				must(t, err)
				equal(t, schema.File(), fmt.Sprint(whole), "[ok]")
			}
			accounts, err := look(t.Context(), data, sqlite.Users, `SELECT email FROM users`)
			must(t, err)
			equal(t, "accounts", fmt.Sprint(accounts), "["+demoEmail+"]")
			verb(t, env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitFailed, "has accounts already")
		})
	}
}

func TestARestoreIsRefusedWhileTheNodeRuns(t *testing.T) { // S:33
	t.Parallel()
	w := newPair(t)
	w.home.start()
	dir := filepath.Join(t.TempDir(), "backup")
	verb(t, w.home.env, "", "backup", dir).exits(t, exitOK)
	_, err := w.home.post("/v1/todos", "one", map[string]string{"content": "since then"})
	must(t, err)
	verb(t, w.home.env, "", "restore", dir).exits(t, exitTryMore, "Another process is using this data folder")
	must(t, w.home.alive(t.Context()))
	must(t, w.home.has(t.Context(), "since then"))
	w.home.terminates()
	verb(t, w.home.env, "", "restore", dir).exits(t, exitOK, "Restored as of", filepath.Join(w.home.dir, "before-restore-"))
	w.home.start()
	must(t, w.home.login(t.Context()))
	if w.home.has(t.Context(), "since then") == nil {
		t.Error("it is there after all, and came from nowhere")
	}
	w.home.terminates()
}

// S:25 with two processes, killed as they are.
func TestARestoredProcessHealsWithItsPeer(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.cloud.start()
	w.home.start()
	add := func(content string) {
		t.Helper()
		_, err := w.home.post("/v1/todos", strings.ReplaceAll(content, " ", "-"), map[string]string{"content": content})
		must(t, err)
	}
	add("in the backup")
	dir := filepath.Join(t.TempDir(), "backup")
	verb(t, w.home.env, "", "backup", dir).exits(t, exitOK)
	add("since then")
	eventually(t, func() error { return w.cloud.has(t.Context(), "since then") })
	must(t, w.home.kill())
	for _, point := range []string{"restore.placed todos.db", ""} {
		c := w.home.command("restore", dir)
		c.Env = append(c.Env, "CRASH_AT="+point)
		if err := c.Run(); (err == nil) != (point == "") {
			t.Fatalf("%s: %v", point, err)
		}
	}
	w.home.start()
	must(t, w.home.login(t.Context()))
	add("after it")
	eventually(t, func() error { return w.home.has(t.Context(), "since then") })
	eventually(t, func() error { return w.cloud.has(t.Context(), "after it") })
	eventually(t, w.alike)
}
