package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
)

// said is how a verb ended and what it wrote.
type said struct {
	code     int
	out, err string
}

// verb runs a verb in this process, as a terminal would. One that hangs fails.
func verb(t testing.TB, env []string, in string, args ...string) said {
	t.Helper()
	var out, err bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	args = append([]string{}, args...) // not nil, for which the library takes this test's own
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, args, terminal{in: strings.NewReader(in), out: &out, err: &err, env: env})
	}()
	select {
	case code := <-ended:
		return said{code, out.String(), err.String()}
	case <-time.After(patience):
		t.Fatalf("%v hangs", args)
		return said{}
	}
}

// exits checks the exit code, and that the texts are in what a person reads: on the
// terminal's error output where the verb failed.
func (s said) exits(t testing.TB, code int, texts ...string) {
	t.Helper()
	where := s.out
	if code != exitOK {
		where = s.err
	}
	equal(t, "exit", s.code, code)
	for _, text := range texts {
		if !strings.Contains(where, text) {
			t.Errorf("it does not say %q; on out it said\n%s\nand on err\n%s", text, s.out, s.err)
		}
	}
}

// alone is the environment of a node without a peer, on a folder of its own.
func alone(t testing.TB) (env []string, data string) {
	data = filepath.Join(t.TempDir(), "data")
	return []string{"TANDEM_NODE_NAME=alone", "TANDEM_NODE_ORIGIN=0", "TANDEM_NODE_DATA=" + data, "TANDEM_HTTP_LISTEN=127.0.0.1:0"}, data
}

const adasPassword = demoPassword + "\n"

// inhabited makes a node's folder with Ada's account, and returns it stopped.
func inhabited(t testing.TB) (env []string, data string) {
	t.Helper()
	env, data = alone(t)
	verb(t, env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitOK, demoEmail+" is the first admin")
	return env, data
}

func TestMistakesAtTheTerminalExit2AndNameTheHelp(t *testing.T) {
	t.Parallel()
	env, _ := alone(t)
	for _, args := range [][]string{
		{"fly"}, {"--fly"}, {"--config"},
		{"serve", "now"}, {"serve", "--fly"}, {"serve", "--config"},
		{"init"}, {"init", "--email"}, {"init", "ada@example.org"}, {"init", "--email", "ada@example.org", "--fly"},
		{"backup"}, {"backup", "a", "b"}, {"backup", "--fly", "a"},
		{"restore"}, {"restore", "a", "b"}, {"adopt", "it"}, {"unpair", "cloud"}, {"pair", "bcdf"}, {"pair", "--rotate", "now"},
		{"doctor", "home"}, {"doctor", "--json=perhaps"},
		{"demo", "now"}, {"demo", "--fly"},
		{"version", "2"},
		{"next"}, {"next", "--cron", "0 9 * * *"}, {"next", "--tz", "UTC"}, {"next", "0 9 * * *", "--tz", "UTC"},
		{"next", "--cron", "0 9 * * *", "--rrule", "FREQ=DAILY", "--tz", "UTC"},
		{"next", "--cron", "0 9 * * *", "--tz", "UTC", "-n", "many"},
	} {
		s := verb(t, env, "", args...)
		s.exits(t, exitUsage, "tandem: usage: ", "--help")
		equal(t, fmt.Sprint(args, " on out"), s.out, "")
	}
	for _, n := range []string{"0", "-1", "1001"} {
		verb(t, env, "", "next", "--cron", "0 9 * * *", "--tz", "UTC", "-n", n).exits(t, exitUsage, "-n takes 1 to 1000")
	}
}

func TestEachVerbHasHelpWithAnExample(t *testing.T) {
	t.Parallel()
	root := verb(t, nil, "")
	root.exits(t, exitOK, "Examples:")
	verbs := regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(root.out, -1)
	if len(verbs) < 8 {
		t.Fatalf("the help lists %v", verbs)
	}
	for _, v := range verbs {
		if v[1] == "help" { // the library's own
			continue
		}
		for _, args := range [][]string{{v[1], "--help"}, {"help", v[1]}} {
			verb(t, nil, "", args...).exits(t, exitOK, "Usage:\n  tandem "+v[1], "Examples:\n  ", "tandem "+v[1])
		}
	}
}

func TestVersionSaysWhatWasBuilt(t *testing.T) {
	t.Parallel()
	s := verb(t, nil, "", "version")
	s.exits(t, exitOK)
	if !regexp.MustCompile(`^tandem \S+ go1\.\d+\S* [a-z]+/[a-z0-9]+\n$`).MatchString(s.out) {
		t.Errorf("version says %q", s.out)
	}
}

func TestABadConfigurationExits78AndListsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bad.yaml")
	must(t, os.WriteFile(file, []byte("node: {name: LOCAL, origin: 3}\nhttp: {listen: 0.0.0.0:80}\nscheduler: {mode: sometimes}\nfoo: 1\n"), 0o600))
	texts := []string{"node.name", "node.origin", "node.data", "http.listen", "scheduler.mode", "foo", file + ":4", "TANDEM_NODE_NOSE"}
	env := []string{"TANDEM_NODE_NOSE=red"}
	for _, args := range [][]string{{"serve"}, {"init", "--email", demoEmail}, {"backup", filepath.Join(t.TempDir(), "x")}, {"doctor"},
		{"restore", t.TempDir()}, {"adopt"}, {"pair"}, {"unpair"}} {
		s := verb(t, env, adasPassword, append(args, "--config", file)...)
		s.exits(t, exitConfig, texts...)
		equal(t, "on out", s.out, "")
	}
	verb(t, nil, "", "serve", "--config", file+".not").exits(t, exitConfig, file+".not", "no such file")
	verb(t, nil, "", "serve").exits(t, exitConfig, "node.name", "TANDEM_NODE_NAME")
}

// What only shows once the parts are made is bad configuration too, and is named.
func TestWhatTheChannelsAndThePeerRefuseExits78(t *testing.T) {
	t.Parallel()
	write := func(text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	for name, c := range map[string]struct{ variable, says string }{
		"no key file":       {"TANDEM_PUSH_FCM_CREDENTIALS_FILE=" + write("{}", 0o600), "push.fcm.credentials_file: is not the key file of a service account"},
		"a short secret":    {"TANDEM_PEER_TOKEN_FILE=" + write("short\n", 0o600), "peer.token_file"},
		"an open secret":    {"TANDEM_PEER_TOKEN_FILE=" + write(strings.Repeat("x", 43)+"\n", 0o644), "chmod 600"},
		"an empty secret":   {"TANDEM_PEER_TOKEN_FILE=" + write("", 0o600), "empty"},
		"a secret too many": {"TANDEM_PEER_TOKEN_FILE=" + write(strings.Repeat(strings.Repeat("x", 43)+"\n", 3), 0o600), "two lines"},
	} {
		t.Run(name, func(t *testing.T) {
			env, _ := alone(t)
			if strings.HasPrefix(c.variable, "TANDEM_PEER") {
				env = append(env, "TANDEM_PEER_NAME=cloud", "TANDEM_PEER_URL=http://127.0.0.1:1")
			}
			verb(t, append(env, c.variable), "", "serve").exits(t, exitConfig, c.says)
		})
	}
}

func TestAFolderInUseExits75(t *testing.T) {
	t.Parallel()
	env, data := inhabited(t)
	lock, err := sqlite.Hold(data)
	must(t, err)
	for _, args := range [][]string{{"serve"}, {"init", "--email", demoEmail, "--password-stdin"}, {"adopt"}} {
		verb(t, env, adasPassword, args...).exits(t, exitTryMore, "Another process is using this data folder", data)
	}
	must(t, lock.Release())
	verb(t, env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitFailed, "has accounts already")
}

func TestAPortInUseSaysWhatToDo(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	env, _ := inhabited(t)
	verb(t, append(env, "TANDEM_HTTP_LISTEN="+l.Addr().String()), "", "serve").exits(t, exitFailed, "address already in use", "choose another http.listen")
}

// spoil changes a file of a node, as other programs and disks do.
func spoil(t testing.TB, path string, change func([]byte)) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	change(b)
	must(t, os.WriteFile(path, b, 0o600))
}

func TestAFileThatCannotBeUsedExits65AndIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t testing.TB, path string)
		says  string
	}{
		// Offsets in the header of https://sqlite.org/fileformat.html.
		"foreign": {func(t testing.TB, path string) {
			spoil(t, path, func(b []byte) { binary.BigEndian.PutUint32(b[68:], 0x12345678) })
		}, "belongs to another program"},
		"newer": {func(t testing.TB, path string) {
			spoil(t, path, func(b []byte) { binary.BigEndian.PutUint32(b[60:], 999) })
		}, "newer version"},
		"damaged": {func(t testing.TB, path string) { spoil(t, path, func(b []byte) { clear(b[:16]) }) }, "is damaged"},
		"missing": {func(t testing.TB, path string) { must(t, os.Remove(path)) }, "is missing"},
	} {
		for _, file := range []string{"todos.db", "users.db"} {
			t.Run(name+" "+file, func(t *testing.T) {
				t.Parallel()
				env, data := inhabited(t)
				c.spoil(t, filepath.Join(data, file))
				before := digest(t, data)
				copied := filepath.Join(t.TempDir(), "copy")
				for _, args := range [][]string{{"serve"}, {"init", "--email", demoEmail, "--password-stdin"}, {"backup", copied}} {
					verb(t, env, adasPassword, args...).exits(t, exitCorrupt, c.says, file)
				}
				s := verb(t, env, "", "doctor")
				equal(t, "doctor exits", s.code, exitFailed)
				if !strings.Contains(s.out, "fail  files") || !strings.Contains(s.out, c.says) || !strings.Contains(s.out, file) {
					t.Errorf("the doctor says\n%s", s.out)
				}
				equal(t, "the folder", digest(t, data), before)
				if left, err := filepath.Glob(copied + "*"); err != nil || len(left) > 0 {
					t.Errorf("the backup left %v (%v)", left, err)
				}
			})
		}
	}
}

// digest is what a folder holds, but for the lock and the files beside a database
// that say nothing.
func digest(t testing.TB, dir string) string {
	t.Helper()
	sums := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		if e.Name() != "lock" && !strings.HasSuffix(e.Name(), "-shm") && !(strings.HasSuffix(e.Name(), "-wal") && len(b) == 0) {
			sums[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(b))
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		lines = append(lines, name+" "+sums[name])
	}
	return strings.Join(lines, "\n")
}

// The page that is damaged is read only when a row on it is wanted; the doctor looks
// at every one.
func TestTheDoctorFindsDamageThatTheStartDoesNot(t *testing.T) {
	t.Parallel()
	env, data := inhabited(t)
	spoil(t, filepath.Join(data, "users.db"), func(b []byte) { clear(b[len(b)-4096:]) })
	s := verb(t, env, "", "doctor")
	equal(t, "doctor exits", s.code, exitFailed)
	if !strings.Contains(s.out, "users.db is damaged") || !strings.Contains(s.out, "restore a backup") {
		t.Errorf("the doctor says\n%s", s.out)
	}
}
