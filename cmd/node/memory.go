package main

import (
	"runtime/debug"
	"slices"
	"strings"
)

// A node is a small tenant of a machine at home. Its own heap is a few megabytes,
// and at Go's default the collector would run at every few more, for a quarter of
// all time under load. So it may grow to four times what lives, and up to the soft
// limit together with all else the runtime holds; near the limit the collector
// works as hard as it must.
const (
	gcPercent   = 300
	memoryLimit = 48 << 20 // bytes
)

// boundMemory sets both, unless the operator has by Go's own variables.
func boundMemory(env []string) {
	set := func(name string) bool {
		return slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	}
	if !set("GOGC") {
		debug.SetGCPercent(gcPercent)
	}
	if !set("GOMEMLIMIT") {
		debug.SetMemoryLimit(memoryLimit)
	}
}
