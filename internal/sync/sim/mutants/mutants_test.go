package main

import (
	"os"
	"testing"
)

// Whoever changes a place that a mutation replaces has to look at the mutation, too.
func TestEachMutationFindsItsPlaceOnceAndChangesIt(t *testing.T) {
	t.Chdir("../../../..") // the root of the module
	for _, m := range mutants {
		file, err := m.overlay(t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if b, err := os.ReadFile(file); err != nil || len(b) == 0 {
			t.Errorf("%s: no overlay: %v", m.name, err)
		}
		for _, e := range m.edits {
			if e.old == e.new {
				t.Errorf("%s changes nothing", m.name)
			}
		}
	}
}
