package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
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

// readCPU is how long a process has run on any core, its own time and the kernel's.
func readCPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(string(stat))
}

// parseStat reads fields 14 and 15 of /proc/PID/stat, in hundredths of a second on
// each Linux. The name before them is in parentheses and may hold anything.
func parseStat(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc stat has %d fields", len(fields))
	}
	own, err := strconv.ParseInt(fields[11], 10, 64)
	kernel, bad := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(own+kernel) * 10 * time.Millisecond, errors.Join(err, bad)
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
