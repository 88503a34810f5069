package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "tandem/"

// may lists, for each package, the packages of this module that it may import. The
// order is from the bottom up: no line names a package below itself, so that the
// table cannot hold a circle.
var may = map[string][]string{
	"internal/fault":             {},
	"internal/loop":              {},
	"internal/config":            {"internal/fault"},
	"internal/when":              {"internal/fault"},
	"internal/sqlite":            {"internal/fault"},
	"internal/sqlite/sqlitetest": {"internal/sqlite"},
	"internal/lease":             {"internal/sqlite"},
	"internal/sync":              {"internal/fault", "internal/sqlite"},
	"internal/sync/letters":      {"internal/fault", "internal/sqlite"},
	"internal/sync/link":         {"internal/fault", "internal/loop", "internal/sqlite", "internal/sync", "internal/sync/letters"},
	"internal/sync/sim":          {}, // tests alone
	"internal/sync/sim/mutants":  {},
	"internal/users":             {"internal/fault", "internal/sqlite"},
	"internal/settings":          {"internal/sqlite", "internal/sync", "internal/when"},
	"internal/todos":             {"internal/fault", "internal/sqlite", "internal/sync", "internal/when"},
	"internal/push":              {"internal/fault", "internal/lease", "internal/loop", "internal/sqlite", "internal/sync", "internal/when"},
	"internal/fcm":               {"internal/fault", "internal/push"},
	"internal/telegram":          {"internal/fault", "internal/push"},
	"internal/scheduler":         {"internal/fault", "internal/loop", "internal/push", "internal/sqlite", "internal/sync", "internal/when"},
	"internal/api": {"internal/fault", "internal/push", "internal/scheduler", "internal/settings", "internal/sqlite",
		"internal/sync", "internal/sync/letters", "internal/sync/link", "internal/todos", "internal/users", "internal/when"},
	"internal/contact": {"internal/loop", "internal/push", "internal/sqlite", "internal/sync", "internal/sync/link", "internal/when"},
	"internal/pairing": {"internal/config", "internal/fault", "internal/push", "internal/sqlite", "internal/sync", "internal/sync/letters", "internal/sync/link", "internal/users"},
	"internal/standin": {},
	"cmd/node":         nil, // wires everything
}

// only says which packages may import a library.
var only = map[string][]string{
	"github.com/labstack/echo/v4":                        {"internal/api"},
	"github.com/danielgtaylor/huma/v2":                   {"internal/api"},
	"github.com/danielgtaylor/huma/v2/adapters/humaecho": {"internal/api"},
	"modernc.org/sqlite":                                 {"internal/sqlite"},
	"database/sql":                                       {"internal/sqlite"},
	"github.com/robfig/cron/v3":                          {"internal/when"},
	"github.com/teambition/rrule-go":                     {"internal/when"},
	"firebase.google.com/go/v4":                          {"internal/fcm"},
	"firebase.google.com/go/v4/messaging":                {"internal/fcm"},
	"github.com/go-telegram-bot-api/telegram-bot-api/v5": {"internal/telegram"},
	"github.com/alexedwards/argon2id":                    {"internal/users"},
	"go.yaml.in/yaml/v3":                                 {"internal/config"},
	"github.com/klauspost/compress/zstd":                 {"internal/sync/link"},
	"github.com/spf13/cobra":                             {"cmd/node"},
}

type goPackage struct {
	ImportPath, Dir, Doc string
	Imports, GoFiles     []string
}

func packages(t *testing.T) (out []goPackage) {
	t.Helper()
	list, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,Doc,GoFiles", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(list))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
}

func TestEachPackageImportsOnlyWhatItMay(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, known := may[name]
		if !known {
			t.Errorf("%s: say in this test what it may import", name)
			continue
		}
		if p.Doc == "" {
			t.Errorf("%s: no package comment", name)
		}
		for _, im := range p.Imports {
			if own, ok := strings.CutPrefix(im, module); ok && name != "cmd/node" && !slices.Contains(allowed, own) {
				t.Errorf("%s may not import %s", name, own)
			}
			if owners, ok := only[im]; ok && !slices.Contains(owners, name) {
				t.Errorf("%s may not import %s; only %v may", name, im, owners)
			}
		}
	}
}

// depth is how many packages of this module stand on each other at most.
const depth = 6

func TestImportChainsAreShort(t *testing.T) {
	var chain func(name string, seen []string) []string
	chain = func(name string, seen []string) (longest []string) {
		if slices.Contains(seen, name) {
			t.Fatalf("a circle: %v", append(seen, name))
		}
		for _, below := range may[name] {
			if c := chain(below, append(seen, name)); len(c) > len(longest) {
				longest = c
			}
		}
		return append([]string{name}, longest...)
	}
	for name := range may {
		if c := chain(name, nil); len(c) > depth {
			t.Errorf("%d deep: %s", len(c), strings.Join(c, " → "))
		}
	}
}

var (
	goStatement = regexp.MustCompile(`(?m)^\s*go (func|[a-z]\w*[.(])`)
	environment = regexp.MustCompile(`os\.(Getenv|LookupEnv|Environ|ExpandEnv)\(`)
	exits       = regexp.MustCompile(`os\.Exit\(`)
)

// Work that nobody waits for outlives the request, the test and the shutdown; an
// environment read in the depths is a setting that nobody can find.
func TestGoroutinesAndTheEnvironmentHaveTheirPlaces(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			if goStatement.Match(text) && name != "internal/loop" && name != "internal/sqlite" && name != "cmd/node" {
				t.Errorf("%s/%s starts a goroutine: use a loop", name, f)
			}
			if environment.Match(text) && name != "cmd/node" {
				t.Errorf("%s/%s reads the environment: take a value", name, f)
			}
			if exits.Match(text) && (name != "cmd/node" && name != "internal/sync/sim/mutants" || f != "main.go") {
				t.Errorf("%s/%s exits: return an error", name, f)
			}
		}
	}
}

// The engine is a translation that must match the C library it was made with.
func TestSQLiteAndItsLibcAreThePairThatWasTested(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "modernc.org/libc").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "modernc.org/sqlite").Output()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "modernc.org/libc " + strings.TrimSpace(string(out)); !strings.Contains(string(mod), want+"\n") {
		t.Errorf("go.mod has %s, which modernc.org/sqlite does not name", want)
	}
}
