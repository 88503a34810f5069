package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tandem/internal/sqlite"
)

// child is what this binary does when a test starts it again. It says a line for
// each thing it has done, and goes on until it is killed.
func child(role, dir string) {
	switch role {
	case "write":
		childWrites(dir)
	case "hold":
		if _, err := sqlite.Hold(dir); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("held")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent is gone
	}
}

// childWrites writes rows from several goroutines, and says the key of each once
// its Write has been answered.
func childWrites(dir string) {
	db, err := sqlite.Open(context.Background(), options(filepath.Join(dir, sqlite.Todos.File())))
	if err != nil {
		fmt.Println(err)
		return
	}
	var say sync.Mutex
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, n)
				err := db.Write(context.Background(), func(tx *sqlite.Tx) error {
					return errors.Join(put(key, "first half")(tx), put(key+"+", "second half")(tx))
				})
				if err != nil {
					return
				}
				say.Lock()
				fmt.Println(key)
				say.Unlock()
			}
		})
	}
	all.Wait()
}

// start runs this binary in a role, and returns what it says and how to kill it.
func start(t *testing.T, role, dir string) (*bufio.Reader, func()) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "SQLITE_TEST_CHILD="+role, "SQLITE_TEST_DIR="+dir)
	cmd.Stderr = t.Output()
	_, err = cmd.StdinPipe()
	must(t, err)
	says, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // SIGKILL
	})
	t.Cleanup(func() { kill(); _ = cmd.Wait() })
	return bufio.NewReader(says), kill
}

func TestEverythingAnsweredIsThereAfterTheProcessWasKilled(t *testing.T) {
	dir := t.TempDir()
	answered := map[string]bool{}
	for round := range 3 {
		says, kill := start(t, "write", dir)
		for n := 0; ; n++ {
			line, err := says.ReadString('\n')
			if err != nil {
				break // killed; a line that was cut says nothing
			}
			answered[strings.TrimSuffix(line, "\n")] = true
			if n == 150+70*round {
				kill()
			}
		}
		db, err := sqlite.Open(t.Context(), options(filepath.Join(dir, sqlite.Todos.File())))
		must(t, err)
		there := map[string]bool{}
		for _, key := range strings.Fields(keys(t, db)) {
			there[key] = true
		}
		for key := range answered {
			if !there[key] || !there[key+"+"] {
				t.Fatalf("round %d: %s was answered and is gone", round, key)
			}
		}
		for key := range there {
			if whole := strings.TrimSuffix(key, "+"); !there[whole] || !there[whole+"+"] {
				t.Fatalf("round %d: half of %s is there", round, whole)
			}
		}
		equal(t, "integrity", query[string](t, db, `PRAGMA integrity_check`), "ok")
		must(t, db.Close())
	}
	if len(answered) < 300 {
		t.Fatalf("only %d writes were answered: the test proves little", len(answered))
	}
}
