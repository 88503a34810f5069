package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestANodeOnADiskThatIsFullGoesOnWhenThereIsRoom is about the whole folder: also the
// log of the database and the fence find no room.
func TestANodeOnADiskThatIsFullGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	onSmallDisk(t, w.home.dir)
	w.cloud.start()
	w.home.start()
	eventually(t, w.home.idle)
	room := filepath.Join(w.home.dir, "other-peoples-files")
	fill(t, room)
	for i := range 100 {
		must(t, w.cloud.add(fmt.Sprintf("todo %03d", i), strings.Repeat("n", 5000)))
	}
	w.fills(w.home, w.cloud)
	must(t, os.Remove(room))
	w.goesOn(w.home, w.cloud)
}

// smallDisk is what the mounts of these tests are called, with the process after it.
const smallDisk = "tandem-test-"

// onSmallDisk moves a folder to a disk of 2 MB.
func onSmallDisk(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("to mount a small disk needs root")
	}
	unmountLeft()
	before := dir + ".before"
	must(t, os.Rename(dir, before))
	must(t, os.Mkdir(dir, 0o700))
	if err := unix.Mount(fmt.Sprint(smallDisk, os.Getpid()), dir, "tmpfs", 0, "size=2m,mode=700"); err != nil {
		t.Skip("this machine mounts nothing for a test: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	must(t, copyTree(dir, before))
}

// unmountLeft unmounts the disks of tests that were killed.
func unmountLeft() {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		pid, err := strconv.Atoi(strings.TrimPrefix(fields[0], smallDisk))
		if strings.HasPrefix(fields[0], smallDisk) && err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = unix.Unmount(fields[1], unix.MNT_DETACH)
		}
	}
}

// fill writes to a file until the disk has no room for one byte.
func fill(t testing.TB, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else {
			must(t, err)
		}
	}
	must(t, f.Close())
}
