package sqlite_test

import (
	"testing"

	"tandem/internal/sqlite"
)

// Each commit of a node waits for the disk; only a test may choose otherwise, and it
// must choose.
func TestEachCommitWaitsForTheDiskUnlessTheFileIsVolatile(t *testing.T) {
	for _, volatile := range []bool{false, true} {
		o := options(tempFile(t))
		o.Volatile = volatile
		db := open(t, o)
		var synchronous int // https://sqlite.org/pragma.html#pragma_synchronous
		must(t, db.Write(t.Context(), func(tx *sqlite.Tx) (err error) {
			synchronous, _, err = sqlite.One(tx, sqlite.Value[int], `PRAGMA synchronous`)
			return err
		}))
		want := 2
		if volatile {
			want = 0
		}
		equal(t, "synchronous", synchronous, want)
	}
}
