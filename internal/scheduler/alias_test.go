package scheduler

import (
	"context"
	"errors"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// A request that made a reminder at each node made one, which rings once; people may
// hold the key that was given up.
func TestAKeyThatWasMergedAwayLeadsToTheMessage(t *testing.T) {
	a, b := newNode(t, noon), newPeer(t, "cloud", 1, noon)
	draft := Draft{Content: "tea", TriggerAt: "2026-05-06T13:00:00Z", Asked: sync.Asked{Route: "POST /v1/scheduled-messages", Key: "k"}}
	stays, goes := a.add(draft), b.add(draft)
	for range 2 {
		exchange(a, b)
	}
	for _, n := range []*node{a, b} {
		equal(t, n.get(goes).Ref, stays.Ref)
		if _, err := n.store.Get(t.Context(), "another", goes.Ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("another's: %v", err)
		}
	}
	equal(t, b.edit(goes, Change{Content: ptr("coffee")}).Ref, stays.Ref)
	exchange(a, b)
	a.tick("2026-05-06T13:00:00Z")
	a.rang("2026-05-06T13:00:00Z coffee")
	b.must(b.db.Write(context.Background(), func(tx *sqlite.Tx) error { return b.store.DeleteTx(tx, anna, goes.Ref) }))
	for _, m := range []Message{stays, goes} {
		if _, err := b.store.Get(t.Context(), anna, m.Ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s was deleted: %v", m.Ref, err)
		}
	}
}
