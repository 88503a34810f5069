package todos

import (
	"testing"
	"time"

	"tandem/internal/sync"
)

// S:47. A request whose answer was lost may be sent again, to the other node too.
func TestTheSameRequestAtBothNodesMakesOneTodo(t *testing.T) {
	local, cloud := newNode(t), newPeer(t, "cloud", 1)
	milk := New{Content: "milk", Asked: sync.Asked{Route: "POST /v1/todos", Key: "k"}}

	t.Run("after it has crossed", func(t *testing.T) {
		made := cloud.add(milk)
		local.take(cloud)
		equal(t, "asked at home", local.add(milk).Ref, made.Ref)
		equal(t, "rows at home", local.count(`SELECT count(*) FROM todos`), 1)
	})
	t.Run("while the nodes are apart", func(t *testing.T) {
		bread := New{Content: "bread", Asked: sync.Asked{Route: "POST /v1/todos", Key: "l"}}
		there, here := cloud.add(bread), local.add(bread)
		for range 2 {
			local.take(cloud)
			cloud.take(local)
		}
		for _, n := range []*node{local, cloud} {
			equal(t, "live rows at "+n.name, n.count(`SELECT count(*) FROM todos WHERE deleted_at IS NULL AND content = 'bread'`), 1)
			equal(t, "conflicts at "+n.name, n.count(`SELECT count(*) FROM facts`), 0)
		}
		equal(t, "the smaller key stays", cloud.see(here.Ref).Content, "bread")
		equal(t, "where the other leads", cloud.count(`SELECT count(*) FROM todos WHERE origin = 1 AND id = ? AND alias_of IS NOT NULL`, there.ID), 1)
	})
	t.Run("after the keys' time", func(t *testing.T) {
		local.clock = local.clock.Add(8 * 24 * time.Hour)
		made := local.add(milk)
		equal(t, "rows", local.count(`SELECT count(*) FROM todos WHERE content = 'milk'`), 2)
		equal(t, "and another request", local.add(New{Content: "milk", Asked: sync.Asked{Route: "POST /v1/todos", Key: "m"}}).Ref == made.Ref, false)
	})
}
