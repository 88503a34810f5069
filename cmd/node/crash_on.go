//go:build crashpoints

package main

import (
	"os"
	"strconv"
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

// maxPages bounds each database file to as many pages as MAX_PAGES says, as a full
// disk would. A file that is larger is bounded where it is.
func maxPages() int {
	n, _ := strconv.Atoi(os.Getenv("MAX_PAGES")) // none: no bound
	return n
}
