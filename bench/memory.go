package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memory is what the kernel holds for a process, in MiB.
type memory struct {
	resident float64 // now (VmRSS)
	peak     float64 // since it started (VmHWM)
}

func readMemory(pid int) (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	return parseStatus(string(status))
}

// parseStatus reads the two sizes of /proc/PID/status, which names its unit kB
// and means KiB.
func parseStatus(status string) (memory, error) {
	var m memory
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		var into *float64
		switch name {
		case "VmRSS":
			into = &m.resident
		case "VmHWM":
			into = &m.peak
		default:
			continue
		}
		size, unit, _ := strings.Cut(strings.TrimSpace(value), " ")
		kib, err := strconv.ParseInt(size, 10, 64)
		if err != nil || unit != "kB" {
			return memory{}, fmt.Errorf("%s is %q", name, strings.TrimSpace(value))
		}
		*into = float64(kib) / 1024
	}
	if m.resident == 0 || m.peak == 0 {
		return memory{}, fmt.Errorf("no VmRSS or VmHWM in the status")
	}
	return m, nil
}
