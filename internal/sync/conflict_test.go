package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// conflicts are those that an owner sees at a node, newest first.
func (n *node) conflicts(owner string) []sync.Conflict {
	n.t.Helper()
	all, err := n.log.Conflicts(context.Background(), owner, nil, 1000)
	must(n.t, err)
	return all
}

// bringBack makes what lost the newest version.
func (n *node) bringBack(owner string, uid sync.UID) (r sync.Ref, err error) {
	n.t.Helper()
	err = n.db.Write(context.Background(), func(tx *sqlite.Tx) (err error) {
		_, r, err = n.log.BringBackTx(tx, owner, uid)
		return err
	})
	return r, err
}

// says is what a version says of a field, as JSON.
func says(v sync.Version, field string) string { return string(v.Fields[field]) }

// S:21. One renames, the other ticks a second later: the tick wins as a whole, and
// the rename is kept, seen on both nodes, and brought back at either.
func TestRenameThatLostToATickIsKeptAndCanBeBroughtBack(t *testing.T) {
	for at := range 2 {
		local, cloud := pair(t)
		nodes := []*node{local, cloud}
		r := local.add("buy milk")
		settle(t, local, cloud)
		local.edit(r, "content", "buy oat milk")
		cloud.skew = time.Second
		cloud.edit(r, "done", 1)
		quiet(t, local, cloud)
		for _, n := range nodes {
			equal(t, "title at "+n.name, n.content(r), "buy milk")
			equal(t, "ticked at "+n.name, read[int](n, `SELECT done FROM todos`), 1)
			all := n.conflicts("ann")
			if len(all) != 1 {
				t.Fatalf("%s has %d conflicts", n.name, len(all))
			}
			c := all[0]
			equal(t, "of", fmt.Sprint(c.Table, " ", c.Ref), "todos "+r.String())
			equal(t, "lost", says(c.Lost, "content")+says(c.Lost, "done")+c.Lost.UpdatedBy, `"buy oat milk"local`)
			equal(t, "stands", says(c.Stands, "content")+says(c.Stands, "done")+c.Stands.UpdatedBy, `"buy milk"truecloud`)
			equal(t, "differs", strings.Join(c.Differs, " "), "content done")
			equal(t, "when it lost", c.Lost.UpdatedAt < c.Stands.UpdatedAt, true)
		}
		n := nodes[at]
		n.skew = -time.Hour // whatever the clock says: who brings back has seen both
		back, err := n.bringBack("ann", n.conflicts("ann")[0].UID)
		must(t, err)
		equal(t, "row", back, r)
		quiet(t, local, cloud)
		for _, n := range nodes {
			equal(t, "title at "+n.name, n.content(r), "buy oat milk")
			equal(t, "ticked at "+n.name, read[int](n, `SELECT done FROM todos`), 0)
			equal(t, "conflicts at "+n.name, len(n.conflicts("ann")), 1)
			equal(t, "differs at "+n.name, len(n.conflicts("ann")[0].Differs), 0)
		}
		stamp := read[int64](n, `SELECT updated_at FROM todos`)
		_, err = n.bringBack("ann", n.conflicts("ann")[0].UID) // pressed twice
		must(t, err)
		equal(t, "stamp after it was pressed twice", read[int64](n, `SELECT updated_at FROM todos`), stamp)
	}
}

// S:20. Clocks and times of syncing say nothing about who had seen what.
func TestEditThatNobodyHadSeenIsNotLostWhateverTheClocksSay(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("v1")
	settle(t, local, cloud)
	local.edit(r, "content", "v2, not sent yet")
	cloud.pull(local) // v2 goes
	cloud.skew = time.Minute
	cloud.edit(r, "content", "on top of v2")
	local.edit(r, "content", "v3, which has not seen that")
	quiet(t, local, cloud)
	equal(t, "what stands", local.content(r), "on top of v2")
	all := local.conflicts("ann")
	equal(t, "conflicts", len(all), 1)
	equal(t, "what lost", says(all[0].Lost, "content"), `"v3, which has not seen that"`)
}

// S:20. The steps in which each clock is right and each sync is later than each edit: what
// one wrote and had not sent yet is at neither node alone.
func TestEditThatWasNotSentYetIsThereOrAmongTheConflicts(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("v1")
	settle(t, local, cloud)
	local.edit(r, "content", "v2")
	must(t, local.apply(cloud, local.page(cloud))) // local reads, and does not send
	cloud.skew = time.Second
	cloud.edit(r, "content", "of the cloud, on top of v1")
	quiet(t, local, cloud)
	for _, n := range []*node{local, cloud} {
		equal(t, n.name+": what stands", n.content(r), "of the cloud, on top of v1")
		all := n.conflicts("ann")
		if len(all) != 1 || says(all[0].Lost, "content") != `"v2"` {
			t.Errorf("%s: v2 is not among the conflicts: %+v", n.name, all)
		}
	}
}

// S:24. A conflict is its owner's, holds the version and nothing else, and no other
// account can see or use it.
func TestConflictIsSeenByItsOwnerOnly(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("private")
	settle(t, local, cloud)
	local.edit(r, "notes", "lost words")
	cloud.skew = time.Second
	cloud.edit(r, "notes", "")
	quiet(t, local, cloud)
	equal(t, "of another", len(local.conflicts("bob")), 0)
	equal(t, "of nobody", len(local.conflicts("")), 0)
	c := local.conflicts("ann")[0]
	if _, err := local.bringBack("bob", c.UID); !errors.Is(err, sync.ErrNoConflict) {
		t.Error("another brought it back:", err)
	}
	if _, err := local.bringBack("ann", sync.KeyedUID("none")); !errors.Is(err, sync.ErrNoConflict) {
		t.Error("one that is not there:", err)
	}
	var body struct {
		Table string
		Lost  map[string]any
	}
	must(t, json.Unmarshal([]byte(read[string](local, `SELECT body FROM facts`)), &body))
	var names []string
	for name := range body.Lost {
		names = append(names, name)
	}
	equal(t, "members of the body", len(names), 10) // the head without seen, table, content and notes
	local.exec(`UPDATE todos SET owner = 'bob'`)    // it is another's by now
	if c := local.conflicts("ann"); len(c) != 1 || c[0].Stands.Fields != nil {
		t.Errorf("the row of another is shown: %+v", c)
	}
	if _, err := local.bringBack("ann", c.UID); !errors.Is(err, sync.ErrNoConflict) {
		t.Error("the row of another was edited:", err)
	}
}

// A delete that loses, and an edit that loses to a delete, are conflicts; two deletes
// are not, nor are two versions that say the same.
func TestDeletesAndEditsThatMeet(t *testing.T) {
	for name, c := range map[string]struct {
		first, second func(*node, sync.Ref)
		content       string
		conflicts     int
		differs       string
	}{
		"edit loses to delete": {
			func(n *node, r sync.Ref) { n.edit(r, "content", "edited") }, (*node).remove, "", 1, "deleted_at",
		},
		"delete loses to edit": {
			(*node).remove, func(n *node, r sync.Ref) { n.edit(r, "content", "edited") }, "edited", 1, "deleted_at",
		},
		"two deletes": {(*node).remove, (*node).remove, "", 0, ""},
		"the same edit": {
			func(n *node, r sync.Ref) { n.edit(r, "content", "edited") }, func(n *node, r sync.Ref) { n.edit(r, "content", "edited") }, "edited", 0, "",
		},
		"the same after a detour": {
			func(n *node, r sync.Ref) { n.edit(r, "content", "x"); n.edit(r, "content", "first") },
			func(n *node, r sync.Ref) { n.edit(r, "content", "first") }, "first", 0, "",
		},
		"another field": {
			func(n *node, r sync.Ref) { n.edit(r, "due_at", 5) }, func(n *node, r sync.Ref) { n.edit(r, "tz", "Europe/Berlin") }, "first", 1, "due_at tz",
		},
		"a field that only a newer version knows": {
			func(n *node, r sync.Ref) { n.exec(`UPDATE todos SET extra = '{"later":1}'`); n.edit(r, "tz", nil) },
			func(n *node, r sync.Ref) { n.edit(r, "tz", nil) }, "first", 1, "later",
		},
	} {
		for who := range 2 {
			t.Run(fmt.Sprint(name, ", first at ", []string{"local", "cloud"}[who]), func(t *testing.T) {
				local, cloud := pair(t)
				nodes := []*node{local, cloud}
				r := local.add("first")
				settle(t, local, cloud)
				c.first(nodes[who], r)
				nodes[1-who].skew = time.Second
				c.second(nodes[1-who], r)
				quiet(t, local, cloud)
				for _, n := range nodes {
					equal(t, "content at "+n.name, n.content(r), c.content)
					all := n.conflicts("ann")
					equal(t, "conflicts at "+n.name, len(all), c.conflicts)
					if len(all) == 1 {
						equal(t, "differs at "+n.name, strings.Join(all[0].Differs, " "), c.differs)
					}
				}
			})
		}
	}
}

// S:34. What lost was a delete, or lost against one: bringing back deletes and undeletes.
func TestBringingBackDeletesAndUndeletes(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("first")
	settle(t, local, cloud)
	local.edit(r, "content", "edited")
	cloud.skew = time.Second
	cloud.remove(r)
	quiet(t, local, cloud)
	_, err := cloud.bringBack("ann", cloud.conflicts("ann")[0].UID)
	must(t, err)
	quiet(t, local, cloud)
	equal(t, "undeleted", local.content(r), "edited")

	local.skew, cloud.skew = 10*time.Second, 11*time.Second
	local.remove(r)
	cloud.edit(r, "content", "edited again")
	quiet(t, local, cloud)
	equal(t, "what stands", local.content(r), "edited again")
	_, err = local.bringBack("ann", local.conflicts("ann")[0].UID)
	must(t, err)
	quiet(t, local, cloud)
	equal(t, "deleted", cloud.content(r), "")
	equal(t, "conflicts", len(cloud.conflicts("ann")), 2)
}

// Bringing back is an edit like any other: one that meets another edit may lose, and
// what it lost against is in conflicts then.
func TestBringingBackAtBothNodesAtOnceIsAConflictLikeAnyOther(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("first")
	settle(t, local, cloud)
	local.edit(r, "content", "lost")
	cloud.skew = time.Second
	cloud.edit(r, "content", "stands")
	quiet(t, local, cloud)
	local.skew, cloud.skew = time.Minute, 2*time.Minute
	_, err := local.bringBack("ann", local.conflicts("ann")[0].UID)
	must(t, err)
	cloud.edit(r, "content", "edited meanwhile")
	quiet(t, local, cloud)
	equal(t, "what stands", local.content(r), "edited meanwhile")
	all := cloud.conflicts("ann")
	equal(t, "conflicts", len(all), 2)
	equal(t, "the newest", says(all[0].Lost, "content"), `"lost"`)
}

// A table may alter what is brought back: a time that has gone by does not ring again.
func TestTableAltersWhatIsBroughtBack(t *testing.T) {
	local, cloud := pair(t)
	local.tables[0].BroughtBack = func(now int64, fields []sync.Field) []sync.Field {
		return sync.With(fields, "notes", json.RawMessage(fmt.Sprintf(`"back at %d"`, now/1e6)))
	}
	var told int
	local.tables[0].Applied = func(_ *sqlite.Tx, uids []sync.UID) error { told += len(uids); return nil }
	local.restart()
	r := local.add("first")
	settle(t, local, cloud)
	local.edit(r, "content", "lost")
	cloud.skew = time.Second
	cloud.edit(r, "content", "stands")
	quiet(t, local, cloud)
	told = 0
	_, err := local.bringBack("ann", local.conflicts("ann")[0].UID)
	must(t, err)
	equal(t, "told", told, 1)
	quiet(t, local, cloud)
	equal(t, "content", cloud.content(r), "lost")
	equal(t, "notes", strings.HasPrefix(read[string](cloud, `SELECT notes FROM todos`), "back at "), true)
}

// Conflicts come newest first, in pages, and are shown for 90 days.
func TestConflictsAreListedNewestFirstAndKeptFor90Days(t *testing.T) {
	local, cloud := pair(t)
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := start
	local.now, cloud.now = func() time.Time { return now }, func() time.Time { return now }
	cloud.skew = time.Second
	for i := range 5 {
		r := local.add(fmt.Sprint(i))
		settle(t, local, cloud)
		now = now.Add(time.Minute)
		local.edit(r, "content", fmt.Sprint("lost ", i))
		cloud.edit(r, "content", fmt.Sprint("stands ", i))
	}
	settle(t, local, cloud) // all five at one moment, told at local and told at the cloud
	for _, n := range []*node{local, cloud} {
		var order []string
		seen := map[sync.UID]bool{}
		var after *sync.ConflictPlace
		last := int64(1) << 62
		for {
			some, err := n.log.Conflicts(t.Context(), "ann", after, 2)
			must(t, err)
			if len(some) == 0 {
				break
			}
			for _, c := range some {
				if seen[c.UID] || c.At > last {
					t.Errorf("%s: %v at %d comes twice or late", n.name, c.UID, c.At)
				}
				seen[c.UID], last = true, c.At
				order = append(order, says(c.Lost, "content"))
			}
			after = &sync.ConflictPlace{At: some[len(some)-1].At, UID: some[len(some)-1].UID}
		}
		equal(t, "listed at "+n.name, len(order), 5)
	}
	now = time.Date(2026, 5, 30, 23, 59, 58, 0, time.UTC) // the 90th day
	equal(t, "on the last day", len(local.conflicts("ann")), 5)
	now = now.Add(2 * time.Second)
	equal(t, "after it", len(local.conflicts("ann")), 0)
}

// Whatever a peer tells as a conflict: the list is read, and what cannot be brought
// back is not.
func TestStrangeConflictsOfAPeerDoNoHarm(t *testing.T) {
	local, _ := pair(t)
	local.took(wire(t, nil))
	for i, body := range []string{
		`null`, `7`, `{}`, `{"table":"users","lost":{}}`, `{"table":"todos"}`, `{"table":"todos","lost":null}`, `{"table":"todos","lost":[]}`,
		`{"table":"todos","lost":{"uid":"00112233445566778899aabbccddeeff","content":5}}`,
		`{"table":"todos","lost":{"uid":"00112233445566778899aabbccddeeff","owner":"bob","content":"of bob"}}`,
		`{"table":"settings","lost":{"uid":"00112233445566778899aabbccddeeff"}}`,
		`{"table":"todos; DROP TABLE todos","lost":{"uid":"00112233445566778899aabbccddeeff"}}`,
	} {
		local.took(json.RawMessage(fmt.Sprintf(`{"table":"facts","uid":"%032x","kind":"conflict","subject":"s","owner":"ann","node":"cloud","at":%d,"body":%s}`,
			i+1, time.Now().UnixMilli(), body)))
	}
	equal(t, "aside", local.aside(), "")
	all := local.conflicts("ann")
	equal(t, "listed", len(all), 11)
	for _, c := range all {
		_, err := local.bringBack("ann", c.UID)
		if err != nil && !errors.Is(err, sync.ErrNoConflict) {
			t.Errorf("%s: %v", c.Table, err)
		}
	}
	equal(t, "owner", read[string](local, `SELECT owner FROM todos`), "ann")
}

// The same loser is told by both nodes, at their own times: it is one conflict.
func TestConflictThatBothNodesTellIsOne(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("first")
	settle(t, local, cloud)
	local.edit(r, "content", "lost")
	cloud.skew = time.Hour
	cloud.edit(r, "content", "stands")
	p, q := local.page(cloud), cloud.page(local)
	must(t, local.apply(cloud, p))
	must(t, cloud.apply(local, q))
	equal(t, "told at local", read[int](local, `SELECT count(*) FROM facts`), 1)
	equal(t, "told at the cloud", read[int](cloud, `SELECT count(*) FROM facts`), 1)
	quiet(t, local, cloud)
	equal(t, "conflicts", len(local.conflicts("ann")), 1)
	equal(t, "conflicts at the cloud", len(cloud.conflicts("ann")), 1)
}

// The loser's row is a tombstone that names nobody: it is still its owner's.
func TestConflictOfATombstoneThatNamesNobodyHasAnOwner(t *testing.T) {
	local, _ := pair(t)
	local.took(wire(t, map[string]any{"content": "lost", "seen": map[string]any{"local/1": 1000}, "updated_by": "local"}))
	local.took(wire(t, map[string]any{"owner": nil, "content": nil, "updated_at": 2000, "deleted_at": 2000, "seen": map[string]any{"cloud/1": 2000}}))
	equal(t, "conflicts", len(local.conflicts("ann")), 1)
}

// A delete removes a text that is too large to cross, and loses to an edit of the other
// node. Each node meets the two by itself, and tells of the same.
func TestDeleteThatLosesIsToldAlikeAtBothNodes(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("first")
	settle(t, local, cloud)
	cloud.edit(r, "content", strings.Repeat("x", 300<<10))
	cloud.remove(r)
	local.skew = time.Second
	local.edit(r, "content", "edited")
	up, down := cloud.page(local), local.page(cloud)
	cloud.skew = 2 * time.Second
	must(t, cloud.apply(local, up))
	must(t, local.apply(cloud, down))
	quiet(t, local, cloud)
	for _, n := range []*node{local, cloud} {
		equal(t, "content at "+n.name, n.content(r), "edited")
		equal(t, "conflicts at "+n.name, len(n.conflicts("ann")), 1)
		equal(t, "aside at "+n.name, n.aside(), "")
	}
}

// A version that could not cross lost where it was written. To bring it back would keep
// all that follows from crossing.
func TestVersionThatCannotBeSentIsNotBroughtBack(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("first")
	settle(t, local, cloud)
	cloud.edit(r, "content", strings.Repeat("x", 300<<10))
	local.skew = time.Second
	local.edit(r, "content", "edited")
	settle(t, local, cloud)
	c := cloud.conflicts("ann")
	equal(t, "conflicts", len(c), 1)
	if _, err := cloud.bringBack("ann", c[0].UID); !errors.Is(err, sync.ErrNoConflict) {
		t.Error("it was brought back:", err)
	}
	equal(t, "content", cloud.content(r), "edited")
}
