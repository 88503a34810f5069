//go:build crashpoints

package main

import (
	"os"
	"syscall"
)

// crashPoints kills the process at the point that CRASH_AT names, as the kernel
// or a power cut would: nothing is flushed, closed or answered.
func crashPoints() func(string) {
	at := os.Getenv("CRASH_AT")
	return func(point string) {
		if point == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal may take a moment
		}
	}
}
