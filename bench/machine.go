package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// machine is what the figures hang on. Compare ratios between machines, never
// figures.
type machine struct {
	Cores    int     `json:"cores"`
	Go       string  `json:"go"`
	Fsync    float64 `json:"fsync_micros"` // median of one 4 KiB write with its fsync
	Load     float64 `json:"load"`         // runnable threads over the last minute, before anything was built
	InMemory bool    `json:"in_memory"`    // the folder is a tmpfs, where an fsync does nothing
}

func (m machine) String() string {
	text := fmt.Sprintf("%d cores, %s, write and fsync %.0f µs", m.Cores, m.Go, m.Fsync)
	if m.Load > float64(m.Cores)/4 {
		text += fmt.Sprintf("\nWARNING: the machine was busy (load %.1f before the run): measure again when it is quiet", m.Load)
	}
	if m.InMemory {
		text += "\nWARNING: the folder lies in memory, where an fsync costs nothing; name one on a disk with -dir"
	}
	return text
}

// inspect looks at the machine and at the disk below dir.
func inspect(dir string) (machine, error) {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	const tmpfs = 0x01021994
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return machine{}, err
	}
	m.InMemory = fs.Type == tmpfs
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return machine{}, err
	}
	if _, err := fmt.Sscan(string(text), &m.Load); err != nil {
		return machine{}, err
	}
	m.Fsync, err = fsync(filepath.Join(dir, "fsync"))
	return m, err
}

func fsync(path string) (micros float64, err error) {
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	page := make([]byte, 4096)
	samples := make([]float64, 100)
	for i := range samples {
		start := time.Now()
		if _, err := file.Write(page); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		samples[i] = float64(time.Since(start).Nanoseconds()) / 1000
	}
	return medianOf(samples), nil
}
