package sync_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// insert makes a todo under a key and a uid of the caller's choice, as a request that
// came to both nodes does, or a node that forgot what it gave out.
func (n *node) insert(r sync.Ref, uid sync.UID, content string) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error {
		h := n.log.AddAtTx(tx, "ann", r, uid)
		_, err := tx.Exec(`INSERT INTO todos (`+sync.HeadColumns+`, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(h.Args(), content)...)
		return err
	})
}

// ask has a request make a todo, unless it has made it before.
func (n *node) ask(owner string, by sync.Asked, content string) (r sync.Ref, made bool) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error {
		at, found, err := n.log.MadeTx(tx, "todos", owner, by)
		if err != nil || found {
			r = at
			return err
		}
		h, err := n.log.AddAskedTx(tx, "todos", owner, by)
		if err != nil {
			return err
		}
		r, made = h.Ref, true
		_, err = tx.Exec(`INSERT INTO todos (`+sync.HeadColumns+`, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(h.Args(), content)...)
		return err
	})
	return r, made
}

// leads is where a key leads, and "" where it does not.
func (n *node) leads(r sync.Ref) (to string) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error {
		at, found, err := n.log.AliasTx(tx, "todos", r)
		if found {
			to = at.String()
		}
		return err
	})
	return to
}

// keyOf is the key of the row that says so.
func (n *node) keyOf(content string) string {
	n.t.Helper()
	return read[string](n, `SELECT group_concat(origin || '-' || id) FROM todos WHERE content = ? AND alias_of IS NULL`, content)
}

func quiet(t testing.TB, local, cloud *node) {
	t.Helper()
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "aside at local", local.aside(), "")
	equal(t, "aside at the cloud", cloud.aside(), "")
}

// S:25. A node that forgot gives a key out again. Both rows live: the node whose keys
// they are moves the one it made, and the other node's copy of the first stays.
func TestRowThatTookAnothersKeyIsGivenAFreshOne(t *testing.T) {
	for name, first := range map[string]int{"the origin hears first": 0, "the other node hears first": 1} {
		t.Run(name, func(t *testing.T) {
			local, cloud := pair(t)
			nodes := []*node{local, cloud}
			old := cloud.add("before the loss")
			settle(t, local, cloud)
			cloud.exec(`DELETE FROM todos`)
			cloud.exec(`DELETE FROM sync_tokens`)
			cloud.exec(`DELETE FROM sync_cursors`)
			cloud.restart()
			again := cloud.add("after it")
			equal(t, "the key", again, old)
			a, b := nodes[1-first], nodes[first]
			a.pull(b)
			if first == 1 {
				equal(t, "aside until the origin moves it", local.aside(), "id_reuse todos 1-1")
				equal(t, "what the key means meanwhile", local.content(old), "before the loss")
				q, err := local.log.Quarantine(t.Context(), 1)
				must(t, err)
				equal(t, "reason", q[0].Reason, "its key belongs to another row here")
			}
			b.pull(a)
			quiet(t, local, cloud)
			for _, n := range nodes {
				equal(t, "key of the first at "+n.name, n.keyOf("before the loss"), "1-1")
				equal(t, "key of the second at "+n.name, n.keyOf("after it"), "1-2")
			}
			equal(t, "the next", cloud.add("next").String(), "1-3")
		})
	}
}

// The moved row is derived anew, as one that changed.
func TestDomainHearsOfARowThatWasMoved(t *testing.T) {
	local, cloud := pair(t)
	told := map[sync.UID]int{}
	cloud.tables[0].Applied = func(_ *sqlite.Tx, uids []sync.UID) error {
		for _, u := range uids {
			told[u]++
		}
		return nil
	}
	cloud.restart()
	mine, theirs := sync.KeyedUID("mine"), sync.KeyedUID("theirs")
	cloud.insert(sync.Ref{Origin: 1, ID: 7}, mine, "mine")
	local.insert(sync.Ref{Origin: 1, ID: 7}, theirs, "theirs")
	cloud.pull(local)
	equal(t, "told of", fmt.Sprint(len(told), told[mine], told[theirs]), "2 1 1")
}

// A key of the other node's that is taken is not ours to move: an entry waits, however
// often it is tried, until it comes under another key.
func TestEntryUnderATakenKeyWaitsForAnotherKey(t *testing.T) {
	local, cloud := pair(t)
	local.took(wire(t, map[string]any{"content": "holder"}))
	taken := wire(t, map[string]any{"uid": strings.Repeat("e", 32), "content": "waits"})
	local.took(taken)
	for range 3 {
		local.skew += 2 * time.Hour
		equal(t, "taken", local.retry("p"), 0)
		local.took(taken)
		equal(t, "aside", local.aside(), "id_reuse todos 1-7")
	}
	equal(t, "the holder", local.keyOf("holder"), "1-7")
	local.took(wire(t, map[string]any{"uid": strings.Repeat("e", 32), "content": "waits", "id": 8}))
	equal(t, "aside after another key came", local.aside(), "")
	equal(t, "its key", local.keyOf("waits"), "1-8")
	quiet(t, local, cloud)
}

// The holder of a key goes elsewhere, and its key leads there: the entry that waited
// for the key comes under another one.
func TestEntryThatWaitedComesWhenTheHolderOfItsKeyHasMoved(t *testing.T) {
	local, cloud := pair(t)
	holder := strings.Repeat("a", 32)
	local.took(wire(t, map[string]any{"id": 7, "uid": holder, "content": "holder"}))
	cloud.insert(sync.Ref{Origin: 1, ID: 7}, sync.KeyedUID("waits"), "waits")
	local.pull(cloud)
	equal(t, "aside", local.aside(), "id_reuse todos 1-7")
	local.took(wire(t, map[string]any{"origin": 0, "id": 3, "uid": holder, "content": "holder", "updated_at": 2000, "seen": map[string]any{"cloud/1": 2000}}))
	equal(t, "key of the holder", local.keyOf("holder"), "0-3")
	quiet(t, local, cloud)
	equal(t, "where its old key leads", cloud.leads(sync.Ref{Origin: 1, ID: 7}), "0-3")
	equal(t, "key of the one that waited", local.keyOf("waits"), "1-1") // the first that the cloud counts itself
}

// S:47. One request came to both nodes, which were apart: one row, under the smaller
// key, and the other key leads to it. Whoever hears first, and whatever was edited
// or deleted in between.
func TestRowMadeUnderTwoKeysIsOneUnderTheSmaller(t *testing.T) {
	uid := sync.KeyedUID("asked")
	of0, of1 := sync.Ref{Origin: 0, ID: 5}, sync.Ref{Origin: 1, ID: 3}
	for name, c := range map[string]struct {
		between     func(local, cloud *node)
		content     string
		isConflict  int
		isTombstone bool
	}{
		"nothing in between": {func(*node, *node) {}, "asked", 0, false},
		"an edit at local":   {func(local, _ *node) { local.edit(of0, "content", "of local") }, "of local", 1, false},
		"an edit at the cloud": {func(_, cloud *node) {
			cloud.skew = time.Second
			cloud.edit(of1, "content", "of cloud")
		}, "of cloud", 1, false},
		"edits at both": {func(local, cloud *node) {
			local.edit(of0, "content", "of local")
			cloud.skew = time.Second
			cloud.edit(of1, "content", "of cloud")
		}, "of cloud", 1, false},
		"a delete at local": {func(local, cloud *node) { local.skew = time.Second; local.remove(of0) }, "asked", 1, true},
		"a delete at the cloud": {func(local, cloud *node) {
			cloud.skew = time.Second
			cloud.remove(of1)
		}, "asked", 1, true},
		"an edit over a delete": {func(local, cloud *node) {
			local.remove(of0)
			cloud.skew = time.Second
			cloud.edit(of1, "content", "of cloud")
		}, "of cloud", 1, false},
		"deletes at both": {func(local, cloud *node) {
			local.remove(of0)
			cloud.skew = time.Second
			cloud.remove(of1)
		}, "asked", 0, true},
		"another row on the key that goes": {func(local, _ *node) {
			local.took(wire(t, map[string]any{"id": 3, "content": "third"})) // as if the cloud had given 1-3 to it before
		}, "asked", 0, false},
	} {
		for first := range 2 {
			t.Run(fmt.Sprint(name, []string{", local hears first", ", the cloud hears first"}[first]), func(t *testing.T) {
				local, cloud := pair(t)
				nodes := []*node{local, cloud}
				local.insert(of0, uid, "asked")
				cloud.insert(of1, uid, "asked")
				c.between(local, cloud)
				nodes[first].pull(nodes[1-first])
				settle(t, local, cloud)
				same(t, local, cloud)
				for _, n := range nodes {
					equal(t, "key at "+n.name, n.keyOf(c.content), "0-5")
					equal(t, "deleted at "+n.name, read[bool](n, `SELECT deleted_at IS NOT NULL FROM todos WHERE origin = 0 AND id = 5`), c.isTombstone)
					equal(t, "where the other key leads at "+n.name, n.leads(of1), map[bool]string{true: "", false: "0-5"}[strings.HasPrefix(name, "another row")])
					equal(t, "where its own key leads at "+n.name, n.leads(of0), "")
					equal(t, "conflicts at "+n.name, read[int](n, `SELECT count(*) FROM facts WHERE kind = 'conflict'`), c.isConflict)
					equal(t, "aside at "+n.name, n.aside(), "")
				}
				cloud.edit(of0, "content", "edited then")
				quiet(t, local, cloud)
				equal(t, "an edit afterwards", local.content(of0), "edited then")
				equal(t, "where the other key leads then", local.leads(of1), cloud.leads(of1))
			})
		}
	}
}

// A request that is sent again, here or at the other node, is answered with the row it
// made for as long as keys are kept, and makes another one after that.
func TestRequestMakesOneRowForAWeek(t *testing.T) {
	local, cloud := pair(t)
	asked := sync.Asked{Route: "POST /v1/todos", Key: "k1"}
	ask := func(n *node, owner string, by sync.Asked) (sync.Ref, bool) {
		t.Helper()
		return n.ask(owner, by, "asked")
	}
	first, made := ask(local, "ann", asked)
	equal(t, "made", made, true)
	again, made := ask(local, "ann", asked)
	equal(t, "again", fmt.Sprint(again, made), fmt.Sprint(first, false))
	apart, made := ask(cloud, "ann", asked)
	equal(t, "made at the cloud, which was apart", made, true)
	for _, other := range []struct {
		owner string
		by    sync.Asked
	}{{"bob", asked}, {"ann", sync.Asked{Route: "POST /v1/notes", Key: "k1"}}, {"ann", sync.Asked{Route: "POST /v1/todos", Key: "k2"}}, {"ann", sync.Asked{}}, {"ann", sync.Asked{}}} {
		if _, made := ask(local, other.owner, other.by); !made {
			t.Errorf("%+v is the same request", other)
		}
	}
	quiet(t, local, cloud)
	equal(t, "rows", read[int](cloud, `SELECT count(*) FROM todos WHERE alias_of IS NULL`), 6)
	for _, n := range []*node{local, cloud} {
		r, made := ask(n, "ann", asked)
		equal(t, "again at "+n.name, fmt.Sprint(r, made), fmt.Sprint(first, false))
		equal(t, "where the cloud's key leads at "+n.name, n.leads(apart), first.String())
	}
	local.remove(first)
	r, made := ask(local, "ann", asked)
	equal(t, "again after it was deleted", fmt.Sprint(r, made), fmt.Sprint(first, false))
	local.skew = 7*24*time.Hour - time.Minute
	r, made = ask(local, "ann", asked)
	equal(t, "within the week", fmt.Sprint(r, made), fmt.Sprint(first, false))
	local.skew = 7*24*time.Hour + time.Minute
	r, made = ask(local, "ann", asked)
	equal(t, "after the week", made && r != first, true)
	quiet(t, local, cloud)
}

// Requests that came to both nodes, and nodes that lost their rows and give their keys
// out again: whatever came in whatever order, both end with each row under one key,
// and no row is lost that one of them had.
func TestKeysInAnyConfusionSettle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		local, cloud := pair(t)
		nodes := []*node{local, cloud}
		for i := range rapid.IntRange(3, 20).Draw(rt, "steps") {
			n, text := nodes[rapid.IntRange(0, 1).Draw(rt, "node")], fmt.Sprint(i)
			switch rapid.SampledFrom([]string{"ask", "ask", "add", "edit", "remove", "pull", "pull", "lose"}).Draw(rt, "what") {
			case "ask":
				n.ask("ann", sync.Asked{Route: "r", Key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")}, text)
			case "add":
				n.add(text)
			case "edit", "remove":
				r := sync.Ref{Origin: rapid.Int64Range(0, 1).Draw(rt, "origin"), ID: rapid.Int64Range(1, 4).Draw(rt, "id")}
				if read[int](n, `SELECT count(*) FROM todos WHERE origin = ? AND id = ? AND alias_of IS NULL`, r.Origin, r.ID) == 0 {
					continue
				}
				if n.edit(r, "content", text); i%3 == 0 {
					n.remove(r)
				}
			case "pull":
				n.pull(nodes[1-n.origin])
			case "lose":
				for _, table := range []string{"todos", "facts", "sync_tokens", "sync_cursors", "sync_quarantine", "sync_state"} {
					n.exec(`DELETE FROM ` + table)
				}
				n.restart()
			}
		}
		uids := map[string]bool{}
		for _, n := range nodes {
			for uid := range strings.SplitSeq(read[string](n, `SELECT coalesce(group_concat(hex(uid)), '') FROM todos WHERE alias_of IS NULL`), ",") {
				uids[uid] = true
			}
		}
		delete(uids, "")
		settle(t, local, cloud)
		if a, b := local.state(), cloud.state(); a != b {
			rt.Fatalf("the nodes differ:\n%s\n\n%s", a, b)
		}
		for _, n := range nodes {
			if q := n.aside(); q != "" {
				rt.Fatalf("%s has aside: %s", n.name, q)
			}
			if got := read[int](n, `SELECT count(*) FROM todos WHERE alias_of IS NULL`); got != len(uids) {
				rt.Fatalf("%s has %d of %d rows", n.name, got, len(uids))
			}
		}
	})
}

// An alias is a tombstone, wherever it comes from: it deletes no row.
func TestAliasNeverTakesTheKeyOfALivingRow(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("lives")
	uid := read[[]byte](local, `SELECT uid FROM todos`)
	alias := func(id int, of string) json.RawMessage {
		return wire(t, map[string]any{"origin": 0, "id": id, "uid": strings.Repeat("c", 32), "alias_of": of, "content": nil,
			"updated_at": 9000, "deleted_at": 9000, "seen": map[string]any{}})
	}
	local.took(alias(1, fmt.Sprintf("%x", uid))) // to the row itself
	equal(t, "the row", local.content(r), "lives")
	local.took(alias(1, strings.Repeat("d", 32))) // to one that is not here
	equal(t, "its text", local.keyOf("lives") != "", true)
	settle(t, local, cloud)
	equal(t, "live at the cloud", read[int](cloud, `SELECT count(*) FROM todos WHERE deleted_at IS NULL AND content = 'lives'`), 1)
}

// Found by the simulator: a row that cannot be read was written back from what of it
// could be, when it was found to have two keys.
func TestRowUnderTwoKeysKeepsWhatCannotBeRead(t *testing.T) {
	local, cloud := pair(t)
	by := sync.Asked{Route: "POST /v1/todos", Key: "k"}
	cloud.ask("ann", by, "of the cloud")
	local.skew = time.Hour
	of0, _ := local.ask("ann", by, "of local")
	local.exec(`UPDATE todos SET content = CAST(x'61ff' AS TEXT), notes = 'kept'`)
	settle(t, local, cloud)
	equal(t, "bytes", read[string](local, `SELECT hex(content) || notes FROM todos WHERE origin = ? AND id = ?`, of0.Origin, of0.ID), "61FFkept")
}

// The only copy of a version is in quarantine, under a key of another row, since who
// wrote it has lost it. The same request makes the row here: it has a key now.
func TestVersionWhoseKeyIsTakenIsTakenOnceItsRowHasAKeyHere(t *testing.T) {
	cloud := newNode(t, "cloud", 1)
	uid := sync.KeyedUID("asked", "todos", "ann", "POST /v1/todos", "k")
	first := wire(t, map[string]any{"origin": 0, "id": 1, "uid": strings.Repeat("a", 32), "content": "first", "updated_by": "local"})
	at := time.Now().Add(time.Hour).UnixMilli()
	second := wire(t, map[string]any{"origin": 0, "id": 1, "uid": uid.String(), "content": "second", "updated_by": "local", "updated_at": at, "seen": map[string]any{"local/1": at}})
	_, err := cloud.log.Apply(t.Context(), "local", "", "", entries(first, second))
	must(t, err)
	equal(t, "aside", cloud.aside(), "id_reuse todos 0-1")
	r, _ := cloud.ask("ann", sync.Asked{Route: "POST /v1/todos", Key: "k"}, "made here")
	_, err = cloud.log.Retry(t.Context(), "another version")
	must(t, err)
	equal(t, "aside then", cloud.aside(), "")
	equal(t, "its key", cloud.keyOf("second"), r.String())
	equal(t, "the other's", cloud.keyOf("first"), "0-1")
	equal(t, "conflicts", len(cloud.conflicts("ann")), 1)
}

// A call from before comes once more after its row was moved to another key: it says
// nothing new, and nothing of it is kept aside for ever.
func TestCallFromBeforeARowWasMovedIsNotSetAside(t *testing.T) {
	cloud := newNode(t, "cloud", 1)
	first := wire(t, map[string]any{"origin": 0, "id": 1, "uid": strings.Repeat("a", 32), "content": "first", "updated_by": "local"})
	late := wire(t, map[string]any{"origin": 0, "id": 1, "uid": strings.Repeat("b", 32), "content": "second", "updated_by": "local"})
	moved := wire(t, map[string]any{"origin": 0, "id": 4, "uid": strings.Repeat("b", 32), "content": "second", "updated_by": "local"})
	for i, page := range [][]json.RawMessage{entries(first), entries(late), entries(moved), entries(late)} {
		_, err := cloud.log.Apply(t.Context(), "local", "", "", page)
		must(t, err)
		if i == 1 {
			equal(t, "aside until it comes under its other key", cloud.aside(), "id_reuse todos 0-1")
			continue
		}
		equal(t, "aside", cloud.aside(), "")
	}
	equal(t, "its key", cloud.keyOf("second"), "0-4")
	equal(t, "the other's", cloud.keyOf("first"), "0-1")
}
