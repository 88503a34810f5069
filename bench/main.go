// Command bench runs Tandem and PocketBase in turn on this machine, both with
// logins and synchronous=FULL, under the same load from wrk, and prints the
// figures side by side. They are figures, not tests: what is wanted stands
// beside them, and only a request that failed fails the run. It needs Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// options are the flags.
type options struct {
	rounds, seconds int
	only, who, dir  string
	json            bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var o options
	flag.IntVar(&o.rounds, "rounds", 3, "how often everything is measured; the median counts")
	flag.IntVar(&o.seconds, "seconds", 8, "how long each load lasts")
	flag.StringVar(&o.only, "only", "", "measure one part: creates, list, view, start or memory")
	flag.StringVar(&o.who, "who", "both", "measure tandem, pocketbase or both")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where the servers' folders go; it should lie on a disk")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.Parse()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// errFailed says that some figure is missing; the report has the reasons.
var errFailed = errors.New("some runs failed; see above")

func run(ctx context.Context, o options, stdout, progress io.Writer) error {
	chosen, err := choose(o)
	if err != nil {
		return err
	}
	if err := findWrk(); err != nil {
		return err
	}
	root, err := os.MkdirTemp(o.dir, "tandem-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	m, err := inspect(root)
	if err != nil {
		return err
	}
	b := &bench{seconds: o.seconds, root: root, figures: newFigures(), progress: progress}
	if b.contenders, err = contenders(ctx, o.who, root, progress); err != nil {
		return err
	}
	for n := range o.rounds {
		fmt.Fprintf(progress, "round %d of %d\n", n+1, o.rounds)
		if err := b.round(ctx, chosen); err != nil {
			return err
		}
	}
	write := writeTable
	if o.json {
		write = writeJSON
	}
	settings := fmt.Sprintf("PocketBase "+pocketbaseVersion+"; both synchronous=FULL and authenticated; wrk -t%d on the same cores; rounds: %d, medians; %d s a load",
		threads, o.rounds, o.seconds)
	if err := write(stdout, m, settings, report(b.figures, chosen)); err != nil {
		return err
	}
	if len(b.figures.failures) > 0 {
		return errFailed
	}
	return nil
}

// choose checks the flags before anything slow begins.
func choose(o options) ([]part, error) {
	if o.rounds < 1 || o.seconds < 1 {
		return nil, errors.New("-rounds and -seconds are at least 1")
	}
	if !slices.Contains([]string{"both", "tandem", "pocketbase"}, o.who) {
		return nil, fmt.Errorf("-who %s: say tandem, pocketbase or both", o.who)
	}
	if o.only == "" {
		return parts, nil
	}
	var names []string
	var chosen []part
	for _, p := range parts {
		if p.name == o.only {
			chosen = append(chosen, p)
		}
		names = append(names, p.name)
	}
	if chosen == nil {
		return nil, fmt.Errorf("-only %s: say one of %s", o.only, strings.Join(slices.Compact(names), ", "))
	}
	return chosen, nil
}

// contenders builds those that who names, Tandem first.
func contenders(ctx context.Context, who, root string, progress io.Writer) ([]contender, error) {
	var all []contender
	for _, each := range []struct {
		name  string
		build func(context.Context, string) (contender, error)
	}{{"tandem", tandem}, {"pocketbase", pocketbase}} {
		if who != "both" && who != each.name {
			continue
		}
		fmt.Fprintf(progress, "building %s (the first time takes minutes)\n", each.name)
		c, err := each.build(ctx, filepath.Join(root, "bin"))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
