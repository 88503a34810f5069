package config

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// asNobody runs f without the right of root to open everything, which would
// hide what these tests are about. The right goes with the thread's file system
// user; where that cannot be changed back the thread dies with the test.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Setfsuid(0); err == nil {
				runtime.UnlockOSThread()
			}
		}()
	}
	f()
}
