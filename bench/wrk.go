package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// threads of wrk, the same for every contender and every number of connections.
const threads = 2

//go:embed lua
var scripts embed.FS

// load is one run of wrk against one server.
type load struct {
	script      string // "create" or "read"
	token       string
	paths       []string // what to POST to, or what to GET in turn
	connections int
	seconds     int
}

// outcome is what wrk saw. Latencies are those that wrk corrects for the
// requests it could not send while it waited.
type outcome struct {
	perSecond float64
	p50, p99  time.Duration
}

// errNoWrk says how to get the one tool that is not built from here.
var errNoWrk = errors.New("wrk is not installed: apt-get install wrk (Debian, Ubuntu)")

func findWrk() error {
	if _, err := exec.LookPath("wrk"); err != nil {
		return errNoWrk
	}
	return nil
}

// run sends the load to base and fails when any single request failed.
func (l load) run(ctx context.Context, base, dir string) (outcome, error) {
	script, err := l.write(dir)
	if err != nil {
		return outcome{}, err
	}
	cmd := exec.CommandContext(ctx, "wrk",
		"-t", strconv.Itoa(threads),
		"-c", strconv.Itoa(l.connections),
		"-d", strconv.Itoa(l.seconds)+"s",
		"--timeout", "10s",
		"-s", script, base)
	cmd.Env = append(os.Environ(), "BENCH_TOKEN="+l.token, "BENCH_PATHS="+strings.Join(l.paths, " "))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return outcome{}, fmt.Errorf("wrk: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return parseWrk(out)
}

// write joins the script with the line that reports, and returns its path.
func (l load) write(dir string) (string, error) {
	var text []byte
	for _, name := range []string{l.script, "done"} {
		part, err := scripts.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return "", err
		}
		text = append(text, part...)
	}
	path := filepath.Join(dir, l.script+".lua")
	return path, os.WriteFile(path, text, 0o600)
}

// parseWrk reads the line that done.lua wrote. Anything but success on every
// request is an error, so that a server that refuses fast never looks fast.
func parseWrk(out []byte) (outcome, error) {
	const mark = "bench "
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), mark)
		if !ok {
			continue
		}
		var seen struct{ Requests, Micros, P50, P99, Refused, Broken, Late int64 }
		if err := json.Unmarshal([]byte(text), &seen); err != nil {
			return outcome{}, fmt.Errorf("wrk's report: %w", err)
		}
		if seen.Refused+seen.Broken+seen.Late > 0 {
			return outcome{}, fmt.Errorf("%d answers of status 400 or more, %d broken connections, %d time-outs in %d requests",
				seen.Refused, seen.Broken, seen.Late, seen.Requests)
		}
		if seen.Requests == 0 || seen.Micros == 0 {
			return outcome{}, errors.New("wrk got no answer at all")
		}
		return outcome{
			perSecond: float64(seen.Requests) / (float64(seen.Micros) / 1e6),
			p50:       time.Duration(seen.P50) * time.Microsecond,
			p99:       time.Duration(seen.P99) * time.Microsecond,
		}, nil
	}
	return outcome{}, errors.New("wrk did not report")
}
