package sqlite_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

// A child has its parent's files until it runs a program of its own.
func TestFolderIsFreeOnceItIsGivenBackWhoeverHasTheFile(t *testing.T) {
	dir := t.TempDir()
	lock, err := sqlite.Hold(dir)
	must(t, err)
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not list a process's files: ", err)
	}
	copies := 0
	for _, fd := range open {
		if name, _ := os.Readlink("/proc/self/fd/" + fd.Name()); name == filepath.Join(dir, sqlite.LockName) {
			n, err := strconv.Atoi(fd.Name())
			must(t, err)
			child, err := syscall.Dup(n)
			must(t, err)
			defer syscall.Close(child)
			copies++
			break
		}
	}
	equal(t, "copies", copies, 1)
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
