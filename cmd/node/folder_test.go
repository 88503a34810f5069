package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A power cut or a full disk can leave a file of no bytes. To take it for a new one
// would look as if all in it had been deleted, and number new rows like old ones.
func TestAFileThatWasEmptiedIsNotTakenForANewOne(t *testing.T) {
	t.Parallel()
	for _, schema := range schemas {
		env, data := inhabited(t)
		must(t, os.Truncate(filepath.Join(data, schema.File()), 0))
		for _, name := range []string{schema.File() + "-wal", schema.File() + "-shm"} {
			_ = os.Remove(filepath.Join(data, name))
		}
		verb(t, env, "", "serve").exits(t, exitCorrupt, "missing beside others")
		fi, err := os.Stat(filepath.Join(data, schema.File()))
		must(t, err)
		equal(t, "bytes afterwards", fi.Size(), 0)
	}
}

func TestAKeyThatOthersCanReadIsRefused(t *testing.T) {
	t.Parallel()
	env, data := inhabited(t)
	must(t, os.Chmod(filepath.Join(data, keyName), 0o644))
	verb(t, env, "", "serve").exits(t, exitConfig, "chmod 600")
}

func TestAFenceThatNamesANumberBeyondAllCountingKeepsTheNodeFromStarting(t *testing.T) {
	t.Parallel()
	env, data := inhabited(t)
	b := []byte(`{"node":"local","origin":0,"incarnation":"x","reserved":{"todos":9007199254740992}}`)
	must(t, os.WriteFile(fencePath(data), b, 0o600))
	verb(t, env, "", "serve").exits(t, exitCorrupt, "move that file out of the folder", "fence_damaged", fencePath(data))
}
