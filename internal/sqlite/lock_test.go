package sqlite_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

func TestFolderIsHeldOnce(t *testing.T) {
	dir := t.TempDir()
	lock, err := sqlite.Hold(dir)
	must(t, err)
	if _, err := sqlite.Hold(dir); !errors.Is(err, sqlite.ErrInUse) || !fault.Of(err, fault.Conflict) {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "lock"))
	must(t, err)
	equal(t, "who holds it", strings.TrimSpace(string(pid)), strconv.Itoa(os.Getpid()))
	must(t, lock.Release())
	again, err := sqlite.Hold(dir)
	must(t, err)
	must(t, again.Release())
}

func TestFolderIsFreeOnceItsHolderWasKilled(t *testing.T) {
	dir := t.TempDir()
	says, kill := start(t, "hold", dir)
	line, err := says.ReadString('\n')
	must(t, err)
	equal(t, "the other process says", line, "held\n")
	if _, err := sqlite.Hold(dir); !errors.Is(err, sqlite.ErrInUse) {
		t.Fatal(err)
	}
	kill()
	_, _ = io.Copy(io.Discard, says) // ends when the process has
	lock, err := sqlite.Hold(dir)
	must(t, err)
	must(t, lock.Release())
}

func TestFolderThatIsMissingCannotBeHeld(t *testing.T) {
	_, err := sqlite.Hold(filepath.Join(t.TempDir(), "missing"))
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, sqlite.ErrInUse) {
		t.Fatal(err)
	}
}
