//go:build !linux

package config

import (
	"os"
	"testing"
)

// asNobody runs f unless this user may open everything.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root may open every file")
	}
	f()
}
