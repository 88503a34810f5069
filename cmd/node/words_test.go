package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tandem/internal/config"
	"tandem/internal/pairing"
	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

// Whoever forgets --config is told that, and not what a configuration lacks.
func TestACommandWithoutAConfigurationSaysThatOneIsMissing(t *testing.T) {
	for _, args := range [][]string{{"serve"}, {"doctor"}, {"pair", strings.Repeat("b", pairing.CodeLength)}, {"backup", "x"}} {
		verb(t, nil, "", args...).exits(t, exitConfig, "add --config FILE", "node.name is missing")
	}
	s := verb(t, []string{"TANDEM_NODE_NAME=local"}, "", "serve")
	s.exits(t, exitConfig, "node.data")
	if strings.Contains(s.err, "--config FILE") {
		t.Errorf("to one that is configured by its environment it says %q", s.err)
	}
}

// What a start would refuse the doctor does not call well.
func TestTheDoctorFindsAFolderThatIsAnotherNodes(t *testing.T) {
	t.Parallel()
	env, _ := inhabited(t)
	env = append(env, "TANDEM_SCHEDULER_MODE=off")
	other := append(env, "TANDEM_NODE_NAME=other")
	found := looks(t, other, exitFailed, "warn node", "fail files")
	tells(t, found, "files", "belongs to another node")
	tells(t, found, "files", "→ Correct node.data, or make the folder this node's own: tandem adopt")
	verb(t, other, "", "serve").exits(t, exitCorrupt, "belongs to another node")
}

func TestTheDoctorFindsAFenceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	env, data := inhabited(t)
	env = append(env, "TANDEM_SCHEDULER_MODE=off")
	must(t, os.Remove(filepath.Join(data, "todos.fence")))
	must(t, os.Mkdir(filepath.Join(data, "todos.fence"), 0o700))
	tells(t, looks(t, env, exitFailed, "warn node", "fail files"), "files", "todos.fence out of the folder")
	verb(t, env, "", "serve").exits(t, exitCorrupt, "cannot be read", "move it out of the folder")
}

// A folder that a start would only bring up to date is well, and what kept the doctor
// from looking is no reason to take anything out of it.
func TestTheDoctorTakesNothingElseForADamagedFence(t *testing.T) {
	t.Parallel()
	env, data := inhabited(t)
	env = append(env, "TANDEM_SCHEDULER_MODE=off")
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(data, "todos.db"), Schema: sqlite.Todos, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error { // as before a file named its node
		_, err := tx.Exec(`ALTER TABLE sync_state DROP COLUMN node`)
		return err
	}))
	must(t, db.Close())
	looks(t, env, exitOK, "warn node")
	o := &options{terminal: terminal{env: env}}
	found := o.examineOwner(t.Context(), db, config.Node{Name: "alone", Data: data})
	if len(found) != 1 || found[0].Level != fail || found[0].Mend != "" {
		t.Errorf("of a file that it cannot ask it says %+v", found)
	}
}

// Only what another backup would mend is said to be wrong with the backup.
func TestARestoreThatFailsOtherwiseDoesNotCallTheBackupDamaged(t *testing.T) {
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, fs.ErrPermission, syscall.EIO, sqlite.ErrFull, sqlite.ErrNewer} {
		if told := damagedBackup(fmt.Errorf("todos.db: %w", err)); errors.Is(told, errBackupDamaged) {
			t.Errorf("of %v it says %q", err, explain(told))
		}
	}
	db := sqlitetest.Open(t, sqlite.Todos)
	must(t, db.Close())
	if err := intact(t.Context(), db); err == nil || errors.Is(err, errBackupDamaged) {
		t.Errorf("of a copy that it cannot ask it says %v", err)
	}
}

// A backup into a folder that is not there may be one into a disk that is not mounted.
func TestABackupSaysThatItsFolderWasNotThere(t *testing.T) {
	t.Parallel()
	env, _ := inhabited(t)
	dir := t.TempDir()
	s := verb(t, env, "", "backup", filepath.Join(dir, "usb", "one"))
	s.exits(t, exitOK)
	if !strings.Contains(s.err, filepath.Join(dir, "usb")+" is not there and will be made.") {
		t.Errorf("it says %q", s.err)
	}
	if s = verb(t, env, "", "backup", filepath.Join(dir, "usb", "two")); s.err != "" {
		t.Errorf("into one that is there it says %q", s.err)
	}
}

func TestPairingSaysWhatStandsInItsWay(t *testing.T) {
	inPair(t, func(t *testing.T, b *bubble) {
		code, err := b.cloud.node.openPairing(t.Context(), struct{}{})
		must(t, err)
		plan, err := b.home.node.pairLook(t.Context(), pairing.Request{Code: code.Code})
		must(t, err)
		equal(t, "a pair already", plan.Again, true)
		_, err = b.cloud.node.pairRotate(t.Context(), struct{}{})
		if err == nil || !strings.Contains(explain(err), "The secret is changed from home") {
			t.Errorf("rotating at the cloud: %v", err)
		}
		b.link.cut()
		_, looked := b.home.node.pairLook(t.Context(), pairing.Request{Code: code.Code})
		for what, err := range map[string]error{"rotating": b.rotates(), "pairing": looked} {
			if err == nil || !strings.Contains(explain(err), "cloud cannot be reached at http://cloud.test. Start it there") {
				t.Errorf("%s without a line: %v", what, err)
			}
		}
	})
}

// The first lines of a start name what is missing, with what to type.
func TestAStartSaysWhatComesFirst(t *testing.T) {
	inNewBubble(t, func(t *testing.T, b *bubble) {
		says := func(m *machine) string {
			var out strings.Builder
			must(t, m.node.hint(context.Background(), &options{terminal: terminal{out: &out}, configFile: m.node.configFile}))
			return out.String()
		}
		b.home.config.Push = config.Push{Telegram: config.Telegram{Token: "1:demo"}}
		b.home.on()
		b.home.node.configFile = "home.yaml"
		if said := says(b.home); !strings.Contains(said, "Telegram has a token and no chat to write to: set push.telegram.chat_id") {
			t.Errorf("a bot without a chat: %q", said)
		}
		_, err := b.home.node.unpair(t.Context(), struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		want := "It was parted from cloud by tandem unpair, and stays alone until tandem pair --config FILE on the machine of cloud"
		if said := says(b.home); !strings.Contains(said, want) || !strings.Contains(said, "tandem pair --config home.yaml CODE here") {
			t.Errorf("once parted: %q", said)
		}
	})
}

// The doctor says which reminder waits, why, what to do about that, and until when.
func TestTheDoctorSaysWhyAReminderWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.home.off()
		b.home.config.Push = config.Push{}
		b.home.on()
		for range 2 {
			b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:10:00Z"})
		}
		settle(15 * time.Minute)
		found, err := b.home.node.examineDelivery(t.Context())
		must(t, err)
		equal(t, "findings", len(found), 1)
		f := found[0]
		if !strings.HasPrefix(f.Detail, "2 reminders have reached nobody yet, the newest of them fire ") || !strings.HasSuffix(f.Detail, ", due 2000-01-01T00:10:00Z: no_channel") ||
			!strings.Contains(f.Mend, "set push.telegram or push.fcm in ") || !strings.Contains(f.Mend, "next at 2000-01-01T0") || strings.Contains(f.Detail+f.Mend, "May") {
			t.Errorf("%s %q → %q", f.Level, f.Detail, f.Mend)
		}
	})
}

// A node that was started in another working directory says that its folder is new.
func TestTheReadyLineNamesTheDataFolder(t *testing.T) {
	t.Parallel()
	w := barePair(t, t.TempDir())
	for _, new := range []string{", which is new and empty", ""} {
		before := len(w.cloud.said())
		w.cloud.start()
		if said := string(w.cloud.said()[before:]); !strings.Contains(said, "cloud is ready at "+w.cloud.url+", its data in "+w.cloud.dir+new+"\n") {
			t.Errorf("it says %q", said)
		}
		w.cloud.terminates()
	}
}

func TestAnAddressThatCannotBeHadSaysWhatToDo(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.EADDRINUSE:    "Another program uses 0.0.0.0:443",
		syscall.EACCES:        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
		syscall.EADDRNOTAVAIL: "cannot assign requested address",
	} {
		err := cannotListen(&net.OpError{Op: "listen", Err: os.NewSyscallError("bind", cause)}, "0.0.0.0:443")
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", cause, err)
		}
	}
}

// A folder that was restored has no key yet, and is neither new nor empty.
func TestARestoredFolderIsNotCalledNew(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		backup := b.cloud.backup()
		b.cloud.off()
		must(t, os.RemoveAll(b.cloud.config.Node.Data))
		if said := dataIn(b.cloud.config.Node.Data); !strings.HasSuffix(said, ", which is new and empty") {
			t.Errorf("before: %q", said)
		}
		b.cloud.restore(backup)
		equal(t, "after", dataIn(b.cloud.config.Node.Data), b.cloud.config.Node.Data)
		b.cloud.on()
	})
}

// Whatever keeps the nodes apart, there is something to do about it that is its own.
func TestEachFaultOfTheLinkHasItsMend(t *testing.T) {
	inNewBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.on()
		b.home.on()
		files, err := filepath.Glob("../../internal/sync/link/*.go")
		must(t, err)
		codes := map[string]bool{"bad_directory": true, "bad_push_tokens": true, "accounts_not_joined": true, "accounts_put_back": true, "disk_full": true,
			"parted": true, "not_paired": true, "caller_refused": true}
		for _, file := range files {
			text, err := os.ReadFile(file)
			must(t, err)
			if !strings.HasSuffix(file, "_test.go") {
				for _, code := range regexp.MustCompile(`"(peer_[a-z_]+)"`).FindAllStringSubmatch(string(text), -1) {
					codes[code[1]] = true
				}
			}
		}
		if len(codes) < 20 {
			t.Fatalf("only %v were found", codes)
		}
		for _, n := range []*node{b.home.node, b.cloud.node} {
			for code := range codes {
				if n.mend(code) == n.mend("a code that nobody knows") {
					t.Errorf("of %s nobody at %s says what to do", code, n.Node.Name)
				}
			}
		}
	})
}
