package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// aside is what a node has in quarantine, each entry as its kind, table and key.
func (n *node) aside() string {
	n.t.Helper()
	q, err := n.log.Quarantine(context.Background(), 1000)
	must(n.t, err)
	var all []string
	for _, e := range q {
		all = append(all, fmt.Sprint(e.Kind, " ", e.Table, " ", e.Ref))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (n *node) retry(peerVersion string) int {
	n.t.Helper()
	taken, err := n.log.Retry(context.Background(), peerVersion)
	must(n.t, err)
	return taken
}

// took applies entries as a page that came by itself.
func (n *node) took(all ...json.RawMessage) {
	n.t.Helper()
	_, err := n.log.Apply(context.Background(), "x", "", "", all)
	must(n.t, err)
}

// quarantined has fn see one entry in quarantine.
func (n *node) quarantined(table string, uid sync.UID, fn func(*sqlite.Tx, sync.Quarantined) error) error {
	n.t.Helper()
	return n.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		q, err := n.log.QuarantinedTx(tx, table, uid)
		if err != nil {
			return err
		}
		return fn(tx, q)
	})
}

// broken makes a todo whose text only SQL can have written.
func (n *node) broken(text string) sync.Ref {
	n.t.Helper()
	r := n.add("x")
	n.exec(`UPDATE todos SET content = CAST(? AS TEXT) WHERE origin = ? AND id = ?`, []byte(text), r.Origin, r.ID)
	return r
}

// S:42, S:57. Rows that cannot be sent, and 50 good ones behind them: the good ones
// arrive in this round. A blank title is only unwise, and is stored.
func TestRowsThatCannotBeSentKeepNoOtherAway(t *testing.T) {
	local, cloud := pair(t)
	blank := local.broken("")
	local.broken("not \xff UTF-8")
	local.broken("with \x00 within")
	large := local.broken(strings.Repeat("x", 300<<10))
	local.fact("fired", "broken", nil)
	local.exec(`UPDATE facts SET body = 'not JSON'`)
	for i := range 50 {
		local.add(fmt.Sprint("good ", i))
	}
	p := cloud.page(local)
	must(t, cloud.apply(local, p))
	equal(t, "good ones after one page", read[int](cloud, `SELECT count(*) FROM todos WHERE content LIKE 'good %'`), 50)
	equal(t, "the blank one", read[int](cloud, `SELECT count(*) FROM todos WHERE id = ? AND content = ''`, blank.ID), 1)
	equal(t, "all that came", read[int](cloud, `SELECT count(*) FROM todos`)+read[int](cloud, `SELECT count(*) FROM facts`), 51)
	equal(t, "aside", local.aside(), "unencodable facts -1-0, unencodable todos 0-2, unencodable todos 0-3, unencodable todos 0-4")
	q, err := local.log.Quarantine(t.Context(), 10)
	must(t, err)
	reasons := map[string]int{}
	for _, e := range q {
		reasons[e.Reason]++
		equal(t, "owner", e.Owner, "ann")
	}
	if reasons[`todos 0-2: content: not plain text`] != 1 || len(reasons) < 3 {
		t.Error("reasons:", reasons)
	}
	equal(t, "entries of the next page", len(cloud.page(local).Entries), 0)
	later := local.add("later")
	equal(t, "entries after another write", cloud.pull(local), 1)
	equal(t, "the later one", cloud.content(later), "later")
	equal(t, "rows at the writer", read[int](local, `SELECT count(*) FROM todos WHERE length(content) > 1000`), 1)
	local.edit(large, "content", "shorter")
	settle(t, local, cloud)
	equal(t, "what was mended by an edit", cloud.content(large), "shorter")
	equal(t, "aside after its echo", local.aside(), "unencodable facts -1-0, unencodable todos 0-2, unencodable todos 0-3")
}

// What was mended by SQL as well, without a new place: the reader has passed the one
// it had.
func TestRowThatCanBeSentByNowGetsANewPlace(t *testing.T) {
	local, cloud := pair(t)
	r := local.broken("\xff")
	other := local.broken("\xfe")
	local.fact("fired", "f", nil)
	local.exec(`UPDATE facts SET body = 'not JSON'`)
	local.add("good")
	settle(t, local, cloud)
	stamp := read[int64](local, `SELECT updated_at FROM todos WHERE id = ?`, r.ID)
	local.retry("v1") // another pair of versions than when they were set aside
	local.exec(`UPDATE todos SET content = 'mended' WHERE id = ?`, r.ID)
	local.exec(`UPDATE facts SET body = '"mended"'`)
	equal(t, "taken at once", local.retry("v1"), 0)
	equal(t, "what moves", round(local, cloud), 0)
	local.skew = time.Hour
	equal(t, "taken after an hour", local.retry("v1"), 2)
	settle(t, local, cloud)
	equal(t, "the row", cloud.content(r), "mended")
	equal(t, "the fact", cloud.told("f"), `fired by local "mended"`)
	equal(t, "its stamp", read[int64](cloud, `SELECT updated_at FROM todos WHERE id = ?`, r.ID), stamp)
	equal(t, "aside", local.aside(), "unencodable todos "+other.String())
	local.exec(`DELETE FROM todos WHERE id = ?`, other.ID)
	local.skew = 2 * time.Hour
	local.retry("v1")
	equal(t, "aside when the row is gone", local.aside(), "")
}

func TestPageOfWhichNothingCanBeSentLeavesTheCursor(t *testing.T) {
	local, cloud := pair(t)
	cloud.add("good")
	local.pull(cloud)
	for range 3 {
		cloud.broken("\xff")
	}
	before, err := local.log.Cursor(t.Context(), "cloud")
	must(t, err)
	for range 2 {
		p := local.pageOf(cloud, 1)
		equal(t, "entries", len(p.Entries), 0)
		equal(t, "cursor", p.Cursor, before)
		equal(t, "more", p.More, false)
		must(t, local.apply(cloud, p))
	}
	equal(t, "aside", cloud.aside(), "unencodable todos 1-2, unencodable todos 1-3, unencodable todos 1-4")
	cloud.exec(`DELETE FROM todos WHERE id = 1`)
	local.exec(`UPDATE sync_cursors SET cursor = 'garbage'`) // and nothing from the start either
	p := local.page(cloud)
	equal(t, "why it begins again", p.Reset, "unreadable cursor")
	must(t, local.apply(cloud, p))
	equal(t, "why it does so again", local.page(cloud).Reset, "")
	r := cloud.add("good again")
	local.pull(cloud)
	equal(t, "what comes then", local.content(r), "good again")
}

// The peer takes a row in no size: it is set aside here, and comes when it is less.
func TestOwnRowThatThePeerRefusesIsSetAside(t *testing.T) {
	local, cloud := pair(t)
	r := local.add("large")
	must(t, local.log.QuarantineOwn(t.Context(), local.entries()[0], "the peer refuses it for its size"))
	q, err := local.log.Quarantine(t.Context(), 10)
	must(t, err)
	if len(q) != 1 || q[0].Kind != sync.Unencodable || q[0].Ref != r || q[0].Owner != "ann" || q[0].Reason != "the peer refuses it for its size" {
		t.Fatalf("%+v", q)
	}
	local.edit(r, "content", "less")
	settle(t, local, cloud)
	equal(t, "aside", local.aside(), "")
}

// Found by the simulator: both nodes change a row in one millisecond, and the one that
// stays cannot cross. The other one's coming does not say that it has.
func TestOwnRowThatIsSetAsideStaysSoWhenTheLoserOfTheSameMillisecondComes(t *testing.T) {
	local, cloud := pair(t)
	local.now = func() time.Time { return time.UnixMilli(1_800_000_000_000) }
	cloud.now = local.now
	r := local.add("milk")
	settle(t, local, cloud)
	local.edit(r, "content", "of local")
	cloud.edit(r, "content", "of cloud")
	must(t, local.log.QuarantineOwn(t.Context(), local.entries()[0], "the peer refuses it for its size"))
	local.pull(cloud)
	equal(t, "at local", local.content(r), "of local")
	counts := local.log.QuarantineCounts()
	equal(t, "set aside still", counts[sync.Unencodable], 1)
	cloud.pull(local)
	local.pull(cloud) // the cloud has it by now, and sends what it has
	equal(t, "at the cloud", cloud.content(r), "of local")
}

// S:42, S:52. What this version does not know is kept as it came until it does.
func TestEntryIsTriedAgainAfterAnHourOrUnderAnotherVersion(t *testing.T) {
	_, cloud := pair(t)
	cloud.write(func(tx *sqlite.Tx) error {
		h, err := cloud.log.AddTx(tx, "scheduled_messages", "ann")
		must(t, err)
		_, err = tx.Exec(`INSERT INTO scheduled_messages (`+sync.HeadColumns+`, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'water the plants')`, h.Args()...)
		return err
	})
	r := cloud.add("known")
	for name, c := range map[string]struct {
		ours, theirs string
		later        time.Duration
		taken        int
	}{
		"before the hour":    {"v1", "p1", time.Hour - time.Millisecond, 0},
		"after the hour":     {"v1", "p1", time.Hour, 1},
		"under another ours": {"v2", "p1", 0, 1},
		"under another peer": {"v1", "p2", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			local := newNode(t, "local", 0)
			now := time.UnixMilli(1_800_000_000_000)
			local.now = func() time.Time { return now }
			local.version, local.tables = "v1", []*sync.Table{todosTable(), settingsTable()}
			local.restart()
			local.pull(cloud)
			equal(t, "the known one", local.content(r), "known")
			equal(t, "aside", local.aside(), "malformed scheduled_messages 1-1")
			local.retry("p1") // the page did not say the peer's version
			equal(t, "taken by a version that does not know", local.retry("p1"), 0)
			local.tables, local.version, now = append(local.tables, messagesTable()), c.ours, now.Add(c.later)
			local.restart()
			equal(t, "taken", local.retry(c.theirs), c.taken)
			equal(t, "rows", read[int](local, `SELECT count(*) FROM scheduled_messages WHERE content = 'water the plants'`), c.taken)
			equal(t, "left", local.aside() == "", c.taken == 1)
			settle(t, local, cloud)
			if c.taken == 1 {
				same(t, local, cloud)
			}
		})
	}
}

func TestEntryInQuarantineGivesWayToANewerVersionOnly(t *testing.T) {
	local, _ := pair(t)
	version := func(at int, content any) json.RawMessage {
		return wire(t, map[string]any{"updated_at": at, "content": content})
	}
	stamp := func() int64 { return read[int64](local, `SELECT coalesce(max(updated_at), 0) FROM sync_quarantine`) }
	local.took(version(2000, 5))
	local.skew = time.Minute
	first := read[int64](local, `SELECT at FROM sync_quarantine`)
	local.took(version(2000, 5), version(1000, 6))
	equal(t, "kept", stamp(), 2000)
	equal(t, "entries", read[int](local, `SELECT count(*) FROM sync_quarantine`), 1)
	equal(t, "since", read[int64](local, `SELECT at FROM sync_quarantine`), first)
	local.took(version(3000, 7))
	equal(t, "kept then", stamp(), 3000)
	local.took(version(2500, "good, and older"))
	equal(t, "kept beside an older one", stamp(), 3000)
	equal(t, "stored", local.content(sync.Ref{Origin: 1, ID: 7}), "good, and older")
	local.took(version(4000, "good, and newer"))
	equal(t, "kept beside a newer one", local.aside(), "")
}

// An entry says nothing of which row it is: it is kept by its bytes, once.
func TestEntryWhoseUIDCannotBeReadIsKeptOnceAndCanBeDiscarded(t *testing.T) {
	local, cloud := pair(t)
	a, b := wire(t, map[string]any{"uid": "zz"}), wire(t, map[string]any{"uid": 7, "content": "b"})
	for range 3 {
		local.took(a, b, a)
		local.skew += 2 * time.Hour
		equal(t, "taken", local.retry("p"), 0)
	}
	q, err := local.log.Quarantine(t.Context(), 10)
	must(t, err)
	equal(t, "entries", len(q), 2)
	for _, e := range q {
		must(t, local.quarantined(e.Table, e.UID, local.log.DiscardTx))
	}
	equal(t, "left", local.aside(), "")
	for _, e := range q {
		if err := local.quarantined(e.Table, e.UID, local.log.DiscardTx); !errors.Is(err, sync.ErrNotQuarantined) {
			t.Error(err)
		}
	}
	settle(t, local, cloud)
}

func TestOneEntryIsTriedAgainOnRequest(t *testing.T) {
	local, _ := pair(t)
	table := todosTable()
	for i, c := range table.Columns {
		if c.Name == "content" {
			table.Columns[i].Kind = sync.Integer
		}
	}
	local.tables[0] = table // which reads no text
	local.restart()
	local.took(wire(t, nil), wire(t, map[string]any{"id": 8, "uid": strings.Repeat("e", 32), "updated_by": ""}))
	equal(t, "aside", local.aside(), "malformed todos 1-7, malformed todos 1-8")
	again := func(uid string) (taken bool) {
		t.Helper()
		var u sync.UID
		must(t, u.UnmarshalText([]byte(uid)))
		must(t, local.quarantined("todos", u, func(tx *sqlite.Tx, q sync.Quarantined) (err error) {
			_, taken, err = local.log.RetryOneTx(tx, q)
			return err
		}))
		return taken
	}
	equal(t, "taken before", again("00112233445566778899aabbccddeeff"), false)
	local.tables[0] = todosTable()
	local.restart()
	equal(t, "taken", again("00112233445566778899aabbccddeeff"), true)
	equal(t, "the other", again(strings.Repeat("e", 32)), false)
	equal(t, "aside", local.aside(), "malformed todos 1-8")
	equal(t, "stored", local.content(sync.Ref{Origin: 1, ID: 7}), "milk")
}

// A newer peer allows a value that this file does not: one row of many goes aside.
func TestValueThatTheFileRefusesTakesNoOtherRowWithIt(t *testing.T) {
	local, cloud := pair(t)
	for i, c := range local.tables[0].Columns {
		if c.Name == "done" {
			local.tables[0].Columns[i].Kind = sync.Integer // a newer version counts; the file allows 0 and 1
		}
	}
	local.restart()
	row := func(i, at int, changes map[string]any) json.RawMessage {
		m := map[string]any{"id": i + 1, "uid": sync.KeyedUID(fmt.Sprint(i)), "updated_at": at, "seen": map[string]any{"cloud/1": at}}
		for k, v := range changes {
			m[k] = v
		}
		return wire(t, m)
	}
	local.took(row(3, 900, map[string]any{"updated_by": "local", "seen": map[string]any{"local/1": 900}, "content": "loses"}))
	var all []json.RawMessage
	for i := range 120 {
		all = append(all, row(i, 1000, nil))
	}
	all[10] = row(10, 1000, map[string]any{"done": 5})
	all[99] = row(99, 1000, map[string]any{"done": -1, "content": "secret-canary"})
	local.took(all...)
	equal(t, "stored", read[int](local, `SELECT count(*) FROM todos`), 118)
	equal(t, "aside", local.aside(), "refused todos 1-100, refused todos 1-11")
	q, err := local.log.Quarantine(t.Context(), 10)
	must(t, err)
	for _, e := range q {
		if e.Reason == "" || strings.Contains(e.Reason, "canary") {
			t.Error("reason:", e.Reason)
		}
	}
	equal(t, "conflicts of a chunk that was stored row by row", read[int](local, `SELECT count(*) FROM facts`), 1)
	local.skew = time.Hour
	equal(t, "taken later", local.retry(""), 0)
	local.took(row(10, 2000, map[string]any{"done": 1}))
	equal(t, "aside after a newer version", local.aside(), "refused todos 1-100")
	settle(t, local, cloud)
}

// A page in which one row comes twice, two rows have one key, or one row has two
// keys: whatever the order, it is taken and ends the same.
func TestHostileDuplicatesInOnePageEndTheSame(t *testing.T) {
	uid := func(c string) string { return strings.Repeat(c, 32) }
	for name, page := range map[string][]json.RawMessage{
		"two versions of a row": {
			wire(t, map[string]any{"updated_at": 1000, "content": "a"}),
			wire(t, map[string]any{"updated_at": 2000, "content": "b", "seen": map[string]any{"cloud/1": 2000}}),
		},
		"one version twice": {wire(t, nil), wire(t, nil)},
		"one stamp, two contents": {
			wire(t, map[string]any{"content": "a"}), wire(t, map[string]any{"content": "b"}),
		},
		"a row and its tombstone": {
			wire(t, nil), wire(t, map[string]any{"updated_at": 2000, "deleted_at": 2000, "seen": map[string]any{"cloud/1": 2000}}),
		},
		"one row under two keys": {
			wire(t, map[string]any{"id": 7, "content": "a"}),
			wire(t, map[string]any{"id": 9, "content": "b", "updated_at": 2000, "seen": map[string]any{"cloud/1": 2000}}),
		},
		"one row under three keys": {
			wire(t, map[string]any{"id": 7}), wire(t, map[string]any{"id": 9}), wire(t, map[string]any{"origin": 0, "id": 3}),
		},
		"two rows and another under both their keys": {
			wire(t, map[string]any{"id": 7, "uid": uid("a")}), wire(t, map[string]any{"id": 8, "uid": uid("b")}), wire(t, map[string]any{"id": 9, "uid": uid("a")}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var first string
			for i, order := range [][]json.RawMessage{page, reversed(page)} {
				local := newNode(t, "local", 0)
				local.took(order...)
				once := local.state()
				local.took(order...)
				equal(t, "after it came again", local.state(), once)
				if i == 0 {
					first = once
				}
				equal(t, "whatever the order", once, first)
				equal(t, "rows", read[int](local, `SELECT count(*) FROM todos WHERE alias_of IS NULL`) > 0, true)
			}
		})
	}
	t.Run("two rows of one key", func(t *testing.T) {
		local := newNode(t, "local", 0)
		local.took(wire(t, map[string]any{"uid": uid("a")}), wire(t, map[string]any{"uid": uid("b")}))
		equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 1)
		equal(t, "aside", local.aside(), "id_reuse todos 1-7")
	})
}

func reversed[T any](s []T) []T {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

// S:56. Whatever letters: the same bytes on both nodes, and one sum.
func TestEveryTextIsTheSameBytesOnBothNodes(t *testing.T) {
	local, cloud := pair(t)
	for _, text := range []string{"e\u0301 is not \u00e9", "\u202eright to left\u202c שלום", strings.Repeat("😀", 16<<10), "\ufeff", "\u0085\u00a0", "\x7f\x1b[31m", "𝒳\U0010ffff"} {
		local.add(text)
		cloud.edit(cloud.add("x"), "notes", text)
	}
	in := strings.Replace(string(wire(t, nil)), "milk", `lone \ud800 surrogate`, 1)
	local.took(json.RawMessage(in))
	settle(t, local, cloud)
	same(t, local, cloud)
	const bytes = `SELECT group_concat(hex(content) || '/' || hex(notes)) FROM (SELECT content, notes FROM todos ORDER BY origin, id)`
	equal(t, "bytes", read[string](cloud, bytes), read[string](local, bytes))
	a, err := local.log.Digest(t.Context(), 0)
	must(t, err)
	b, err := cloud.log.Digest(t.Context(), 0)
	must(t, err)
	equal(t, "sum", a.Tables["todos"], b.Tables["todos"])
	equal(t, "quiet", round(local, cloud), 0)
}

// S:52. Fields that this version keeps without knowing them become columns in the
// version that knows them; to the peer that is no edit.
func TestFieldsOfANewerVersionBecomeColumnsWhenTheyAreKnown(t *testing.T) {
	newer, local := newNode(t, "cloud", 1), newNode(t, "local", 0)
	local.tables[0].Columns = slices.DeleteFunc(todosTable().Columns, func(c sync.Column) bool { return c.Name != "content" })
	local.restart()
	r := newer.add("milk")
	newer.edit(r, "notes", "<2 litres>")
	newer.edit(r, "due_at", 12345)
	newer.edit(r, "done", 1)
	settle(t, local, newer)
	local.took(wire(t, map[string]any{"id": 50, "uid": strings.Repeat("5", 32), "remind": 5, "done": true, "later": "x"}))
	broken := local.broken("\xff")
	local.exec(`UPDATE todos SET extra = '{"later":1,"notes":"of a newer version"}', due_on = '2026-03-29' WHERE id = ? AND origin = 0`, broken.ID)
	const stamps = `SELECT group_concat(seq || ':' || updated_at || ':' || seen) FROM (SELECT * FROM todos ORDER BY seq)`
	before := read[string](local, stamps)
	equal(t, "kept without knowing", read[string](local, `SELECT extra FROM todos WHERE id = ? AND origin = 1`, r.ID), `{"done":true,"due_at":12345,"notes":"<2 litres>"}`)
	local.tables[0] = todosTable()
	for range 2 {
		local.restart()
		equal(t, "as columns", read[string](local, `SELECT notes || due_at || done || (extra IS NULL) FROM todos WHERE id = ? AND origin = 1`, r.ID), "<2 litres>1234511")
		equal(t, "what the columns cannot hold", read[string](local, `SELECT extra || done FROM todos WHERE id = 50`), `{"done":true,"later":"x","remind":5}0`)
		equal(t, "of a row that cannot be read", read[string](local, `SELECT hex(content) || due_on || extra FROM todos WHERE id = ? AND origin = 0`, broken.ID),
			`FF2026-03-29{"later":1,"notes":"of a newer version"}`)
		equal(t, "stamps and places", read[string](local, stamps), before)
	}
	local.exec(`DELETE FROM todos WHERE id = 50`)
	local.edit(r, "content", "oat milk")
	settle(t, local, newer)
	same(t, local, newer)
	equal(t, "content", newer.content(r), "oat milk")
}
