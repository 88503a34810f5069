// Command mutants breaks replication on purpose, one way after the other, and
// demands that the simulator notices each: a simulator that passes whatever it is
// given proves nothing. The tree is not touched; each mutation reaches the compiler
// as an overlay. It runs from the root of the module.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const simulator = "./internal/sync/sim"

func main() { os.Exit(run()) }

// run returns the exit code: 0 where each mutant was caught.
func run() int {
	only := flag.String("only", "", "the mutants whose name holds this")
	seeds := flag.Int("seeds", 2000, "within so many seeds each must be caught")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	survived := 0
	sound, err := build(ctx, "")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.Remove(sound)
	for _, m := range mutants {
		if !strings.Contains(m.name, *only) {
			continue
		}
		began := time.Now()
		caught, err := m.hunt(ctx, sound, *seeds)
		switch {
		case err != nil:
			fmt.Printf("%-28s %v\n", m.name, err)
			survived++
		case caught == "":
			fmt.Printf("%-28s SURVIVED %d seeds: %s\n", m.name, *seeds, m.breaks)
			survived++
		default:
			fmt.Printf("%-28s %s (%.0f s)\n", m.name, caught, time.Since(began).Seconds())
		}
	}
	return min(survived, 1)
}

// build compiles the simulator and returns the binary.
func build(ctx context.Context, overlay string) (string, error) {
	f, err := os.CreateTemp("", "sim.test")
	if err != nil {
		return "", err
	}
	defer f.Close()
	args := []string{"test", "-c", "-o", f.Name()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.CommandContext(ctx, "go", append(args, simulator)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not build: %w\n%s", err, out)
	}
	return f.Name(), nil
}

// hunt runs the simulator on the mutated code and returns what it said first; ""
// where it noticed nothing. The seed must pass on sound code.
func (m mutant) hunt(ctx context.Context, sound string, seeds int) (string, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	binary, err := build(ctx, overlay)
	if err != nil {
		return "", err
	}
	defer os.Remove(binary)
	out, err := exec.CommandContext(ctx, binary, "-test.run", "^TestSeeds$", "-seeds", fmt.Sprint(seeds), "-failures", "1").CombinedOutput()
	if err == nil {
		return "", ctx.Err()
	}
	first := failed.FindSubmatch(out)
	if first == nil {
		return "", fmt.Errorf("the simulator ended without naming a seed: %w\n%s", err, out)
	}
	if err := exec.CommandContext(ctx, sound, "-test.run", "^TestSeeds$", "-seed", string(first[1])).Run(); err != nil {
		return "", fmt.Errorf("seed %s fails without the mutation, too", first[1])
	}
	return fmt.Sprintf("seed %s: %.110s", first[1], first[2]), nil
}

var failed = regexp.MustCompile(`seed (\d+): (.*)`)

// overlay writes the mutated files into dir and returns what tells the compiler of
// them (go help build, -overlay).
func (m mutant) overlay(dir string) (string, error) {
	replace := map[string]string{}
	for _, e := range m.edits {
		path, err := filepath.Abs(filepath.FromSlash(e.file))
		if err != nil {
			return "", err
		}
		from := path
		if earlier, ok := replace[path]; ok {
			from = earlier
		}
		b, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(b), e.old); n != 1 {
			return "", fmt.Errorf("STALE: the text to replace in %s is there %d times, not once:\n%s", e.file, n, e.old)
		}
		to := filepath.Join(dir, fmt.Sprint(len(replace), ".go"))
		if from != path {
			to = from
		}
		if err := os.WriteFile(to, []byte(strings.Replace(string(b), e.old, e.new, 1)), 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, b, 0o600)
}
