package main

// mutant is one deliberate mistake.
type mutant struct {
	name   string
	breaks string // what a person would suffer from it
	edits  []edit
}

// edit replaces text that must be in the file exactly once.
type edit struct{ file, old, new string }

const here = "internal/sync/"

// mutants are the easier choices that replication does not make.
var mutants = []mutant{
	{"wall clock stamps", "who edits what he saw with a slow clock loses to it", []edit{
		{here + "head.go", `max(tx.Millis(), h.UpdatedAt+1)`, `tx.Millis()`},
	}},
}
