package sync_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

func TestRefHasOneSpelling(t *testing.T) {
	for _, s := range []string{"0-1", "1-42", "0-9223372036854775807"} {
		r, ok := sync.ParseRef(s)
		if !ok || r.String() != s {
			t.Error(s, r, ok)
		}
	}
	for _, s := range []string{"", "-", "0", "0-", "-1", "0-0", "0--1", "2-1", "00-1", "0-01", "0-+1", " 0-1", "0-1 ", "0-1x", "0x-1", "1-9223372036854775808", "０-1", "0-1-1", "a-1"} {
		if r, ok := sync.ParseRef(s); ok {
			t.Errorf("%q was read as %s", s, r)
		}
	}
}

func TestUIDIsItselfAfterJSONAndSQL(t *testing.T) {
	u := sync.KeyedUID("a")
	b, err := json.Marshal(u)
	must(t, err)
	var back sync.UID
	must(t, json.Unmarshal(b, &back))
	equal(t, "by JSON", back, u)
	equal(t, "as text", string(b), fmt.Sprintf("%q", u))
	for _, bad := range []any{nil, "text", 7, make([]byte, 15), make([]byte, 17)} {
		if back.Scan(bad) == nil {
			t.Errorf("%v was taken for a uid", bad)
		}
	}
}

// The index on uid grows at one end, whoever made the row before.
func TestUIDsOfNewRowsFollowTheirTime(t *testing.T) {
	local, _ := pair(t)
	local.add("a")
	local.skew = 1e9
	local.add("b")
	local.add("c")
	equal(t, "in order of uid", read[int](local, `
		SELECT count(*) FROM todos a JOIN todos b ON b.id = 1 WHERE a.id > 1 AND a.uid > b.uid`), 2)
	equal(t, "different", read[int](local, `SELECT count(DISTINCT uid) FROM todos`), 3)
}

// Two nodes that are apart and make a row about one thing make one row.
func TestRowsOfOneKeyMadeOnBothNodesAreOne(t *testing.T) {
	local, cloud := pair(t)
	for _, n := range []*node{local, cloud} {
		n.write(func(tx *sqlite.Tx) error {
			h := n.log.AddAtTx(tx, "ann", sync.Ref{Origin: 0, ID: 77}, sync.KeyedUID("settings", "ann"))
			_, err := tx.Exec(`INSERT INTO settings (`+sync.HeadColumns+`, tz) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(h.Args(), "Etc/"+n.name)...)
			return err
		})
	}
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "rows", read[int](local, `SELECT count(*) FROM settings`), 1)
}

// S:13. The same pairs of versions by each way that versions come, in both orders.
func TestEachWayOfComingEndsTheSame(t *testing.T) {
	var first, second []json.RawMessage
	for i := range 500 {
		row := func(v int) json.RawMessage {
			return wire(t, map[string]any{
				"id": i + 1, "uid": sync.KeyedUID(fmt.Sprint(i)), "updated_at": 1000 + (i>>v)%3,
				"updated_by": []string{"cloud", "local"}[(i>>(2+v))%2], "content": fmt.Sprint("v", (i>>(4+v))%3),
			})
		}
		first, second = append(first, row(0)), append(second, row(1))
	}
	straight, crossed := pair(t)
	apply := func(n *node, pages ...[]json.RawMessage) {
		for _, p := range pages {
			_, err := n.log.Apply(t.Context(), "peer", "", "", p)
			must(t, err)
		}
	}
	apply(straight, first, second)
	apply(crossed, second, first, second, first)
	same(t, straight, crossed)

	local, cloud := pair(t) // one version on each node
	apply(local, first)
	apply(cloud, second)
	cloud.pull(local)
	local.pull(cloud)
	same(t, local, cloud)
	same(t, local, straight)
}

// A row whose seen was edited by hand is sent as one that contains nothing anybody
// knows of, and is still JSON.
func TestSeenThatCannotBeReadIsSentAsNothing(t *testing.T) {
	for stands, sent := range map[string]string{
		`{"local/a":5}`: `{"local/a":5}`, `{"a":1,"b":2}`: `{"a":1,"b":2}`, `{}`: `{}`, `{"a\u0041":5}`: `{"a\u0041":5}`,
		`{"a":05}`: `{}`, `{"a":"5"}`: `{}`, `{"a"b":5}`: `{}`, "{\"a\x01\":5}": `{}`, "{\"\xff\":5}": `{}`, `{"a":5`: `{}`, `x`: `{}`, ``: `{}`, `{"a":1.5}`: `{}`,
	} {
		local, _ := pair(t)
		r := local.add("milk")
		local.exec(`UPDATE todos SET seen = ? WHERE id = ?`, stands, r.ID)
		p, err := local.log.Page(t.Context(), "", 10)
		must(t, err)
		var row struct{ Seen json.RawMessage }
		if len(p.Entries) != 1 || json.Unmarshal(p.Entries[0], &row) != nil || string(row.Seen) != sent {
			t.Errorf("%q is sent as %s", stands, p.Entries)
		}
	}
}
