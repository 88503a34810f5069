package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const (
	alone = "node: {name: home, origin: 0, data: d}\n"
	cloud = "node: {name: cloud, origin: 1, data: d}\n"
	// strong is as long as a secret must be, and no shorter.
	strong = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
)

// write puts text into a file of a fresh folder.
func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// load is Load of a file with this text.
func load(t *testing.T, text string, env ...string) (Config, error) {
	t.Helper()
	return Load(write(t, "c.yaml", text, 0o600), env)
}

func mustLoad(t *testing.T, text string, env ...string) Config {
	t.Helper()
	c, err := load(t, text, env...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// faultsOf are the faults in err, each as "place key", the place without its folder.
func faultsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	faults, ok := errors.AsType[*Faults](err)
	if !ok {
		t.Fatalf("not a *Faults: %v", err)
	}
	var all []string
	for _, f := range faults.List {
		all = append(all, strings.TrimSpace(filepath.Base(f.Where)+" "+f.Key))
	}
	return all
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in: %s", part, text)
		}
	}
}

// openFolder is a fresh folder that asNobody can look into.
func openFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		if _, err := os.ReadDir(folder); err != nil {
			t.Fatal(err)
		}
	})
	return folder
}
