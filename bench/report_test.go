package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestMedianIgnoresOrderAndOutliers(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    float64
	}{
		{[]float64{7}, 7},
		{[]float64{900, 1, 3}, 3},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := medianOf(c.samples); got != c.want {
			t.Errorf("%v: %g, want %g", c.samples, got, c.want)
		}
	}
}

func TestQuantileIsASampleThatWasTaken(t *testing.T) {
	samples := []float64{5, 1, 4, 2, 3}
	for part, want := range map[float64]float64{0: 1, 0.2: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(samples, part); got != want {
			t.Errorf("%g: %g, want %g", part, got, want)
		}
	}
}

func TestReportSaysWhetherTheWantIsMet(t *testing.T) {
	f := newFigures()
	f.add(ours, create16, rate, 10_000)
	f.add(pocketbaseName, create16, rate, 2_000)
	f.add(ours, create16, slow, 8)
	f.add(pocketbaseName, create16, slow, 39.9)
	f.add(ours, startEmpty, millis, 150)
	table := tableOf(t, f)
	for _, want := range []string{
		"create, 16 connections req/s 10000 2000 5.0x >= 5x yes",
		"create, 16 connections p99 ms 8.0 39.9 1/5.0 <= 1/5 no",
		"start to ready, empty folder ms 150 - - <= 150 yes", // needs no rival
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
}

func TestOneFailedRoundSpoilsTheFigure(t *testing.T) {
	f := newFigures()
	f.add(ours, create64, rate, 20_000)
	f.add(pocketbaseName, create64, rate, 2_000)
	f.fail(ours, create64, errors.New("3 time-outs"))
	if want, table := "create, 64 connections req/s failed 2000 - >= 7x", tableOf(t, f); !strings.Contains(table, want) {
		t.Errorf("%q is not in\n%s", want, table)
	}
	if rows := report(f, parts); rows[3].Failed == nil || rows[3].Tandem != nil || rows[3].Met != nil {
		t.Errorf("%+v", rows[3])
	}
}

func TestReportHoldsOnlyWhatWasMeasured(t *testing.T) {
	chosen, err := choose(options{rounds: 1, seconds: 1, who: "all", only: "view"})
	if err != nil {
		t.Fatal(err)
	}
	rows := report(newFigures(), chosen)
	if len(rows) != 2 || rows[0].Work != viewOne || rows[1].Work != viewOne {
		t.Errorf("%+v", rows)
	}
}

func TestEachWorkIsInOnePartAndInTheReport(t *testing.T) {
	times := map[work]int{}
	for _, p := range parts {
		for _, w := range p.works {
			times[w]++
		}
	}
	for _, l := range append(slices.Clone(serving), replicating...) {
		if times[l.work] != 1 {
			t.Errorf("%s is measured %d times a round", l.work, times[l.work])
		}
	}
}

func TestFlagsThatMeasureNothingAreRefused(t *testing.T) {
	for _, o := range []options{
		{rounds: 0, seconds: 8, who: "all"},
		{rounds: 3, seconds: 0, who: "all"},
		{rounds: 3, seconds: 8, who: "me"},
		{rounds: 3, seconds: 8, who: "all", only: "everything"},
		{rounds: 3, seconds: 8, who: "all", only: "sync,everything"},
	} {
		if got, err := choose(o); err == nil {
			t.Errorf("%+v: chose %v", o, got)
		}
	}
}

func TestTheReportNamesThePocketBaseThatIsBuilt(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "github.com/pocketbase/pocketbase "+pocketbaseVersion+"\n") {
		t.Errorf("go.mod does not pin %s", pocketbaseVersion)
	}
}

func TestTheReportNamesThePouchDBThatIsInstalled(t *testing.T) {
	lock, err := os.ReadFile("pouch/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var locked struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(lock, &locked); err != nil {
		t.Fatal(err)
	}
	if got := locked.Packages["node_modules/pouchdb"].Version; got != pouchVersion {
		t.Errorf("the lock file pins %s, the report names %s", got, pouchVersion)
	}
}

func TestEachRivalHasATableOfItsOwn(t *testing.T) {
	f := newFigures()
	f.add(ours, firstFetch, rowRate, 90_000)
	f.add(pouchName, firstFetch, rowRate, 4_000)
	f.add(ours, farAway, secs, 61)
	table := tableOf(t, f)
	for _, want := range []string{
		"work unit Tandem PocketBase ratio wanted met",
		"work unit Tandem PouchDB ratio wanted met",
		"home rows/s 90000 4000 22.5x >= 20x yes",
		"loss s 61.0 - - <= 60 no",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
}

func TestSeveralPartsCanBeChosen(t *testing.T) {
	chosen, err := choose(options{rounds: 1, seconds: 1, who: "all", only: "log,far"})
	if err != nil || len(chosen) != 2 {
		t.Fatalf("%d parts, %v", len(chosen), err)
	}
	if needs(chosen, pocketbaseName) || needs(chosen, pouchName) || !needs(chosen, ours) {
		t.Error("the log and the far line are Tandem's alone")
	}
}

// tableOf is the table with its columns one blank apart.
func tableOf(t *testing.T, f *figures) string {
	t.Helper()
	var text strings.Builder
	if err := writeTable(&text, machine{}, nil, report(f, parts)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return strings.Join(lines, "\n")
}
