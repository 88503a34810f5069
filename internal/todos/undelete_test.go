package todos

import (
	"errors"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

func (n *node) undelete(owner string, ref sync.Ref) (t Todo, err error) {
	err = n.write(func(tx *sqlite.Tx) (err error) {
		t, err = n.UndeleteTx(tx, owner, ref)
		return err
	})
	return t, err
}

// S:34. An undelete is a write of its own: it wins over the deletion on both nodes,
// and nothing of the todo is judged anew.
func TestATodoThatIsBroughtBackIsBackOnBothNodes(t *testing.T) {
	local, cloud := newNode(t), newPeer(t, "cloud", 1)
	made := local.add(New{Content: "milk", Notes: "two", DueAt: "2026-03-01T09:00", Done: true})
	local.must(local.remove(anna, made.Ref))
	cloud.take(local)
	equal(t, "live at the cloud", cloud.count(`SELECT count(*) FROM todos WHERE deleted_at IS NULL`), 0)

	cloud.exec(`UPDATE todos SET tz = 'Nowhere/Known'`)
	cloud.clock = cloud.clock.Add(-time.Hour) // its clock is late
	back, err := cloud.undelete(anna, made.Ref)
	cloud.must(err)
	equal(t, "content", back.Content, "milk")
	equal(t, "by", back.UpdatedBy, "cloud")
	equal(t, "a larger stamp", back.UpdatedAt > made.UpdatedAt, true)
	local.take(cloud)
	for _, n := range []*node{local, cloud} {
		seen := n.see(made.Ref)
		equal(t, "content at "+n.name, seen.Content+" "+seen.Notes, "milk two")
		equal(t, "done at "+n.name, seen.Done, true)
		equal(t, "conflicts at "+n.name, n.count(`SELECT count(*) FROM facts`), 0)
	}
}

func TestATodoThatIsThereIsNotBroughtBackAgain(t *testing.T) {
	n := newNode(t)
	made := n.add(New{Content: "milk"})
	n.must(n.remove(anna, made.Ref))
	first, err := n.undelete(anna, made.Ref)
	n.must(err)
	for range 2 {
		again, err := n.undelete(anna, made.Ref)
		n.must(err)
		equal(t, "seq", again.Seq, first.Seq)
		equal(t, "stamp", again.UpdatedAt, first.UpdatedAt)
	}
	n.must(n.remove(anna, made.Ref))
	if _, err := n.undelete(ben, made.Ref); !errors.Is(err, ErrNotFound) {
		t.Errorf("another's: %v", err)
	}
	if _, err := n.undelete(anna, sync.Ref{Origin: 0, ID: 99}); !errors.Is(err, ErrNotFound) {
		t.Errorf("one that never was: %v", err)
	}
	equal(t, "live", n.count(`SELECT count(*) FROM todos WHERE deleted_at IS NULL`), 0)
}

func TestATodoWhoseTextIsGoneCannotBeBroughtBack(t *testing.T) {
	n := newNode(t)
	made := n.add(New{Content: "milk", Notes: "two"})
	n.must(n.remove(anna, made.Ref))
	blank := func() {
		n.must(n.write(func(tx *sqlite.Tx) error { _, err := n.log.BlankTx(tx, true); return err }))
	}
	blank()
	n.clock = n.clock.Add(29 * 24 * time.Hour)
	blank()
	_, err := n.undelete(anna, made.Ref)
	n.must(err)
	n.must(n.remove(anna, made.Ref))
	blank()
	n.clock = n.clock.Add(31 * 24 * time.Hour)
	blank()
	before := n.count(`SELECT max(seq) FROM todos`)
	if _, err := n.undelete(anna, made.Ref); !errors.Is(err, ErrTextIsGone) {
		t.Error(err)
	}
	equal(t, "seq", n.count(`SELECT max(seq) FROM todos`), before)
}

// A request that made a todo at each node made one; people may hold the key that was
// given up.
func TestAKeyThatWasMergedAwayLeadsToTheTodo(t *testing.T) {
	local, cloud := newNode(t), newPeer(t, "cloud", 1)
	milk := New{Content: "milk", Asked: sync.Asked{Route: "POST /v1/todos", Key: "k"}}
	stays, goes := local.add(milk).Ref, cloud.add(milk).Ref
	for range 2 {
		local.take(cloud)
		cloud.take(local)
	}
	for _, n := range []*node{local, cloud} {
		equal(t, "where it leads", n.see(goes).Ref, stays)
		_, err := n.Get(t.Context(), ben, goes)
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("another's: %v", err)
		}
	}
	text := "bread"
	changed, err := cloud.tryEdit(anna, goes, Change{Content: &text})
	cloud.must(err)
	equal(t, "what was changed", changed.Ref, stays)
	equal(t, "content", cloud.see(stays).Content, "bread")
	cloud.must(cloud.remove(anna, goes))
	for _, ref := range []sync.Ref{stays, goes} {
		if _, err := cloud.Get(t.Context(), anna, ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s was deleted: %v", ref, err)
		}
	}
	back, err := cloud.undelete(anna, goes)
	cloud.must(err)
	equal(t, "what is back", back.Ref.String()+" "+back.Content, stays.String()+" bread")
	equal(t, "live", cloud.count(`SELECT count(*) FROM todos WHERE deleted_at IS NULL`), 1)
	local.take(cloud)
	equal(t, "content at home", local.see(goes).Content, "bread")
}
