package sync_test

import (
	"errors"
	"testing"

	"tandem/internal/sqlite"
)

func TestEveryCommitThatAppendsIsAnnounced(t *testing.T) {
	local, cloud := pair(t)
	told := 0
	local.log.OnChange(func() { told++ })
	count := func(what string, want bool, do func()) {
		before, changed := told, local.log.Changed()
		do()
		closed := isClosed(changed)
		if closed != want || told > before != want {
			t.Errorf("%s: announced %v, told %d times", what, closed, told-before)
		}
	}
	count("a row", true, func() { local.add("milk") })
	count("a write that fails", false, func() {
		_ = local.db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := local.addTx(tx, "undone")
			return errors.Join(err, errors.New("refused"))
		})
	})
	count("an empty round", false, func() { local.pull(cloud) })
	cloud.pull(local)
	count("an echo", false, func() { local.pull(cloud) })
	cloud.add("bread")
	count("a row of the peer", true, func() { local.pull(cloud) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
