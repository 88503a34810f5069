// Command bench runs Tandem and its rivals in turn on this machine and prints the
// figures side by side: beside PocketBase what one node serves, both with logins and
// synchronous=FULL, under the same load from wrk; beside PouchDB how two nodes become
// alike. They are figures, not tests: what is wanted stands beside them, and only
// what failed fails the run. It needs Linux.
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
	flag.StringVar(&o.only, "only", "", "measure some parts, separated by commas: "+strings.Join(partNames(), ", "))
	flag.StringVar(&o.who, "who", "all", "measure tandem, pocketbase, pouchdb or all")
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
	if needs(chosen, pocketbaseName) {
		if err := findWrk(); err != nil {
			return err
		}
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
	b := &bench{seconds: o.seconds, root: root, contenders: map[string]contender{}, stocks: map[int]string{}, figures: newFigures(), progress: progress}
	settings, err := b.gather(ctx, chosen, o)
	if err != nil {
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
	if !slices.Contains([]string{"all", "tandem", "pocketbase", "pouchdb"}, o.who) {
		return nil, fmt.Errorf("-who %s: say tandem, pocketbase, pouchdb or all", o.who)
	}
	if o.only == "" {
		return parts, nil
	}
	names := strings.Split(o.only, ",")
	for _, name := range names {
		if !slices.Contains(partNames(), name) {
			return nil, fmt.Errorf("-only %s: say some of %s", name, strings.Join(partNames(), ", "))
		}
	}
	var chosen []part
	for _, p := range parts {
		if slices.Contains(names, p.name) {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return slices.Compact(names)
}

// needs is whether a contender has a side in one of the parts.
func needs(chosen []part, who string) bool {
	return slices.ContainsFunc(chosen, func(p part) bool {
		return slices.ContainsFunc(p.sides, func(s side) bool { return s.who == who })
	})
}

// gather builds or installs whoever takes part, and returns the settings that the
// report names. PouchDB is left out where it cannot be had.
func (b *bench) gather(ctx context.Context, chosen []part, o options) ([]string, error) {
	settings := []string{fmt.Sprintf("rounds: %d, medians; %d s a load", o.rounds, o.seconds)}
	wanted := func(who string) bool {
		return needs(chosen, who) && (o.who == "all" || o.who == strings.ToLower(who))
	}
	for who, build := range map[string]func(context.Context, string) (contender, error){ours: tandem, pocketbaseName: pocketbase} {
		if !wanted(who) {
			continue
		}
		fmt.Fprintf(b.progress, "building %s (the first time takes minutes)\n", who)
		c, err := build(ctx, filepath.Join(b.root, "bin"))
		if err != nil {
			return nil, err
		}
		b.contenders[who] = c
	}
	if needs(chosen, pocketbaseName) {
		settings = append(settings, fmt.Sprintf("PocketBase "+pocketbaseVersion+"; both synchronous=FULL and authenticated; wrk -t%d on the same cores", threads))
	}
	if !needs(chosen, pouchName) {
		return settings, nil
	}
	about := "PouchDB " + pouchVersion + " on leveldb, which waits for no disk; Tandem synchronous=FULL on both nodes; all on the same cores"
	if wanted(pouchName) {
		var err error
		if b.pouch, err = newPouch(ctx, b.progress); err != nil {
			about = fmt.Sprintf("PouchDB is left out: %v", err)
			fmt.Fprintln(b.progress, about)
		}
	}
	return append(settings, about), nil
}
