package sync_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

func (n *node) digest(cutoff int64) sync.Digest {
	n.t.Helper()
	d, err := n.log.Digest(context.Background(), cutoff)
	must(n.t, err)
	return d
}

func (n *node) buckets(table string) map[int64]sync.Sum {
	n.t.Helper()
	b, err := n.log.Buckets(context.Background(), table, 0)
	must(n.t, err)
	return b
}

// bucket is a whole bucket, in as many answers as it takes.
func (n *node) bucket(table string, b, cutoff int64) (all []json.RawMessage) {
	n.t.Helper()
	for after, more := "", true; more; more = after != "" {
		var some []json.RawMessage
		var err error
		some, after, err = n.log.Bucket(context.Background(), table, b, cutoff, after)
		must(n.t, err)
		all = append(all, some...)
	}
	return all
}

// bucketOf is where an entry belongs, and what of it must be the same on both nodes.
func bucketOf(t testing.TB, raw json.RawMessage) (place, text string) {
	t.Helper()
	var e map[string]any
	must(t, json.Unmarshal(raw, &e))
	uid, err := hex.DecodeString(e["uid"].(string))
	must(t, err)
	bucket := int64(uid[0])
	if e["table"] != sync.FactsTable {
		bucket = int64(e["origin"].(float64))<<48 + int64(e["id"].(float64))/256
	}
	delete(e, "seen")
	if e["deleted_at"] != nil {
		maps.DeleteFunc(e, func(name string, _ any) bool {
			return !slices.Contains([]string{"table", "origin", "id", "uid", "updated_at", "updated_by", "deleted_at", "alias_of"}, name)
		})
	}
	b, err := json.Marshal(e)
	must(t, err)
	return fmt.Sprint(e["table"], " ", bucket), string(b)
}

// canonicalState is all that a node has, bucket by bucket, as the log serves it.
func (n *node) canonicalState() map[string]string {
	n.t.Helper()
	texts := map[string][]string{}
	for _, raw := range n.entries() {
		place, text := bucketOf(n.t, raw)
		texts[place] = append(texts[place], text)
	}
	state := map[string]string{}
	for place, all := range texts {
		slices.Sort(all)
		state[place] = strings.Join(all, "\n")
	}
	return state
}

// allBuckets is every bucket of a node by the name that canonicalState gives it.
func (n *node) allBuckets() map[string]sync.Sum {
	n.t.Helper()
	all := map[string]sync.Sum{}
	for _, table := range []string{"todos", "scheduled_messages", "settings", sync.FactsTable} {
		for b, s := range n.buckets(table) {
			all[fmt.Sprint(table, " ", b)] = s
		}
	}
	return all
}

// differ are the keys under which two maps do not have the same.
func differ[V comparable](a, b map[string]V) string {
	var keys []string
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}

// tamper changes a node behind the log's back, as a bug or a bad disk would.
func tamper(rt *rapid.T, n *node) {
	k := rapid.Int64Range(0, 3).Draw(rt, "row")
	one := ` WHERE rowid = (SELECT rowid FROM todos ORDER BY origin, id LIMIT 1 OFFSET ?)`
	switch rapid.SampledFrom([]string{"text", "notes", "gone", "moved", "owner", "fact", "no fact"}).Draw(rt, "how") {
	case "text":
		n.exec(`UPDATE todos SET content = content || '.'`+one, k)
	case "notes":
		n.exec(`UPDATE todos SET notes = ?`+one, rapid.SampledFrom([]string{"", "x", "<y>"}).Draw(rt, "notes"), k)
	case "gone":
		n.exec(`DELETE FROM todos`+one, k)
	case "moved":
		n.exec(`UPDATE OR IGNORE todos SET id = id + 256 * ?`+one, rapid.Int64Range(1, 1<<40).Draw(rt, "by"), k)
	case "owner":
		n.exec(`UPDATE todos SET owner = 'ben'`+one, k)
	case "fact":
		n.exec(`UPDATE facts SET at = at + 1 WHERE uid = (SELECT uid FROM facts ORDER BY uid LIMIT 1 OFFSET ?)`, k)
	case "no fact":
		n.exec(`DELETE FROM facts WHERE uid = (SELECT uid FROM facts ORDER BY uid LIMIT 1 OFFSET ?)`, k)
	}
}

// tryPull is pull between nodes of which one may have been tampered with.
func (n *node) tryPull(from *node) {
	n.t.Helper()
	for p := n.page(from); len(p.Entries) > 0 && n.apply(from, p) == nil; p = n.page(from) {
	}
}

func TestSumsAreTheSameExactlyWhereTheEntriesAre(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rt)
		rt.Repeat(map[string]func(*rapid.T){
			"add":  w.add,
			"edit": w.edit,
			"fact": func(*rapid.T) { w.nodes[w.pick()].fact("fired", fmt.Sprint("f", len(w.refs)), w.text()) },
			"pull": func(*rapid.T) { i := w.pick(); w.nodes[i].tryPull(w.nodes[1-i]) },
			"both": func(*rapid.T) {
				for i := range 4 {
					w.nodes[i%2].tryPull(w.nodes[1-i%2])
				}
			},
			"tamper":  func(rt *rapid.T) { tamper(rt, w.nodes[w.pick()]) },
			"compare": func(*rapid.T) { w.compareSums() },
		})
		w.compareSums()
	})
}

func (w *world) compareSums() {
	a, b := w.nodes[0], w.nodes[1]
	x, y := a.canonicalState(), b.canonicalState()
	if got, want := differ(a.allBuckets(), b.allBuckets()), differ(x, y); got != want {
		w.rt.Fatalf("buckets that differ:\n got %s\nwant %s", got, want)
	}
	if same := maps.Equal(a.digest(0).Tables, b.digest(0).Tables); same != maps.Equal(x, y) {
		w.rt.Fatalf("the digests are equal: %v", same)
	}
}

// S:41, S:9. What the log lost without a trace is found in its bucket.
func TestDifferenceIsInItsBucketAndNowhereElse(t *testing.T) {
	const inThird = 2*256 + 44 // an id of the third bucket
	for name, c := range map[string]struct{ query, want string }{
		"a changed byte": {`UPDATE todos SET content = 'm' WHERE id = 540`, "todos 2"},
		"a missing row":  {`DELETE FROM todos WHERE id = 540`, "todos 2"},
		"a moved key":    {`UPDATE todos SET id = 1000 WHERE id = 540`, "todos 2, todos 3"},
		"another origin": {`UPDATE todos SET origin = 1 WHERE id = 540`, "todos 2, todos 281474976710658"},
		"a deleted row":  {`UPDATE todos SET deleted_at = 1 WHERE id = 540`, "todos 2"},
		"a lost fact":    {`DELETE FROM facts WHERE subject = 'f1'`, fmt.Sprint("facts ", sync.KeyedUID("fired", "f1", "local", "")[0])},
		"nothing":        {`UPDATE todos SET seen = '{"x":1}' WHERE id = 540`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			local, cloud := pair(t)
			local.many(inThird, 0)
			local.fact("fired", "f1", "x")
			local.fact("fired", "f2", "x")
			settle(t, local, cloud)
			equal(t, "what differs before", differ(local.allBuckets(), cloud.allBuckets()), "")
			cloud.exec(c.query)
			equal(t, "what differs", differ(local.allBuckets(), cloud.allBuckets()), c.want)
			equal(t, "digest", maps.Equal(local.digest(0).Tables, cloud.digest(0).Tables), c.want == "")
		})
	}
}

func TestBucketBringsBackWhatWasLost(t *testing.T) {
	local, cloud := pair(t)
	local.many(600, 0)
	local.remove(sync.Ref{Origin: 0, ID: 300})
	local.write(func(tx *sqlite.Tx) error {
		for i := range 1500 { // a few in each of 256 buckets
			if _, err := local.log.FactTx(tx, "fired", fmt.Sprint("f", i), "ann", "", i); err != nil {
				return err
			}
		}
		return nil
	})
	settle(t, local, cloud)
	cloud.exec(`DELETE FROM todos WHERE id BETWEEN 290 AND 310`)
	cloud.exec(`DELETE FROM facts`)
	for _, table := range []string{"todos", sync.FactsTable} {
		theirs := cloud.buckets(table)
		for b, s := range local.buckets(table) {
			if s == theirs[b] {
				continue
			}
			lost := local.bucket(table, b, 0)
			equal(t, "entries", int64(len(lost)), s.Count)
			_, err := cloud.log.Apply(t.Context(), "local", "", "", lost)
			must(t, err)
		}
	}
	same(t, local, cloud)
	equal(t, "what differs", differ(local.allBuckets(), cloud.allBuckets()), "")
}

// S:57. The peer never has such a row, and the rest must compare without it.
func TestRowThatCannotBeSentIsInNoSum(t *testing.T) {
	n := newNode(t, "local", 0)
	n.many(3, 0)
	n.fact("fired", "f1", "x")
	sound := n.allBuckets()
	n.exec(`INSERT INTO scheduled_messages (origin, id, uid, owner, created_at, updated_at, seq, content, args)
		VALUES (0, 1, randomblob(16), 'ann', 1, 1, 1001, 'x', '{')`)
	n.exec(`INSERT INTO todos (origin, id, uid, owner, created_at, updated_at, seq, content) VALUES (0, 9, randomblob(16), 'ann', 1, 1, 1000, CAST(x'61ff' AS TEXT))`)
	n.exec(`INSERT INTO facts (uid, seq, kind, subject, owner, node, at, body) VALUES (randomblob(16), 1002, 'fired', 'f', 'ann', 'local', 1, '{')`)
	n.exec(`INSERT INTO facts (uid, seq, kind, subject, owner, node, at, body) VALUES (x'01', 1003, 'fired', 'f', 'ann', 'local', 1, '{}')`)
	n.exec(`INSERT INTO facts (uid, seq, kind, subject, owner, node, at, body) VALUES (x'', 1004, 'fired', 'f', 'ann', 'local', 1, '{}')`)
	equal(t, "what differs", differ(n.allBuckets(), sound), "")
	equal(t, "messages", n.digest(0).Tables["scheduled_messages"], sync.Sum{})
	entries := n.bucket("scheduled_messages", 0, 0)
	equal(t, "entries of its bucket", len(entries), 0)
}

func TestFactsFromBeforeTheCutoffAreInNoSum(t *testing.T) {
	n := newNode(t, "local", 0)
	day := int64(24 * time.Hour / time.Millisecond)
	for i, at := range []int64{3*day - 1, 3 * day, 3*day + 1} {
		n.now = func() time.Time { return time.UnixMilli(at) }
		n.fact("fired", fmt.Sprint("f", i), "x")
	}
	for cutoff, want := range map[int64]int64{0: 3, 3 * day: 2, 4 * day: 0} {
		equal(t, fmt.Sprint("facts since ", cutoff), n.digest(cutoff).Tables[sync.FactsTable].Count, want)
		buckets, err := n.log.Buckets(t.Context(), sync.FactsTable, cutoff)
		must(t, err)
		entries := 0
		for b := range buckets {
			entries += len(n.bucket(sync.FactsTable, b, cutoff))
		}
		equal(t, fmt.Sprint("entries since ", cutoff), int64(entries), want)
	}
}

// busy is a context within which something happens while a read goes on.
type busy struct {
	context.Context
	reads int
	do    func(read int)
}

func (b *busy) Err() error {
	b.reads++
	b.do(b.reads)
	return b.Context.Err()
}

// touch changes todos, each in a new place in the log.
func (n *node) touch(set string, ids []int) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error {
		for _, id := range ids {
			var h sync.Head
			n.log.EditTx(tx, &h)
			if _, err := tx.Exec(`UPDATE todos SET seq = ?, `+set+` WHERE id = ?`, h.Seq, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// What is written while the log is added up, in many reads, is in the sums as it
// is at the end, or not at all.
func TestWritesDuringADigestAreInItWholly(t *testing.T) {
	for writes, until := range map[int]int{1: 30, 40: 60} { // few enough for one last look, and too many
		n := newNode(t, "local", 0)
		n.many(2300, 0)
		for i := range 10 {
			n.fact("fired", fmt.Sprint("f", i), "x")
		}
		ctx := &busy{Context: t.Context()}
		ctx.do = func(read int) {
			if read > until {
				return
			}
			var edited, moved []int
			for i := range writes {
				edited = append(edited, (read*7+i*111)%2300+1)
				moved = append(moved, read*3+i*256%2300+2)
			}
			n.touch(`content = content || '.'`, edited)
			if read%16 == 0 {
				n.touch(`id = id + 9000`, moved)
				n.fact("fired", fmt.Sprint("new ", read), "x")
			}
		}
		d, err := n.log.Digest(ctx, 0)
		must(t, err)
		if ctx.reads <= until {
			t.Errorf("%d looks at the context: it never was quiet", ctx.reads)
		}
		quiet := n.digest(0)
		equal(t, "end", d.End, quiet.End)
		equal(t, "what differs", fmt.Sprint(d.Tables), fmt.Sprint(quiet.Tables))
	}
}

func TestDigestOfWhatIsNotThere(t *testing.T) {
	n := newNode(t, "local", 0)
	d := n.digest(0)
	equal(t, "digest of nothing", fmt.Sprint(d), "{0 map[facts:{0 0} scheduled_messages:{0 0} settings:{0 0} todos:{0 0}]}")
	equal(t, "buckets of nothing", len(n.allBuckets()), 0)
	for _, bucket := range []int64{-1, 5, 1 << 48, 1 << 62} {
		equal(t, "entries", len(n.bucket("todos", bucket, 0)), 0)
	}
	for _, table := range []string{"", "users", "todos; DROP TABLE todos"} {
		_, err := n.log.Buckets(t.Context(), table, 0)
		_, _, err2 := n.log.Bucket(t.Context(), table, 0, 0, "")
		if !errors.Is(err, sync.ErrNoTable) || !errors.Is(err2, sync.ErrNoTable) {
			t.Errorf("table %q: %v, %v", table, err, err2)
		}
	}
	ended, end := context.WithCancel(t.Context())
	n.many(100, 0)
	end()
	if _, err := n.log.Digest(ended, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A reader of JSON may keep 53 bits of a number only.
func TestSumCrossesAsText(t *testing.T) {
	in := sync.Sum{Count: 2, Hash: 1<<64 - 1}
	b, err := json.Marshal(in)
	must(t, err)
	equal(t, "JSON", string(b), `{"count":2,"hash":"18446744073709551615"}`)
	var out sync.Sum
	must(t, json.Unmarshal(b, &out))
	equal(t, "read again", out, in)
}

// BenchmarkDigest is one row of a log that is added up.
func BenchmarkDigest(b *testing.B) {
	n := newNode(b, "local", 0)
	rows := 0
	for round := range 100 {
		made, _ := full(b, round)
		_, err := n.log.Apply(b.Context(), "cloud", "", "", made)
		must(b, err)
		rows += len(made)
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += rows {
		equal(b, "rows", n.digest(0).Tables["todos"].Count, int64(rows))
	}
}

// A bucket of large rows comes in parts. What is written or deleted between two of them
// makes none of the others come twice or not at all.
func TestABucketComesInPartsThatEachGoOnAfterTheLast(t *testing.T) {
	n := newNode(t, "local", 0)
	n.many(40, 100_000)
	for i := range 30 {
		n.fact("fired", fmt.Sprint("f", i), "x")
	}
	var seen []string
	parts := 0
	for after, more := "", true; more; more = after != "" {
		some, next, err := n.log.Bucket(t.Context(), "todos", 0, 0, after)
		must(t, err)
		size := 0
		for _, e := range some {
			var ref sync.Ref
			must(t, json.Unmarshal(e, &ref))
			seen = append(seen, ref.String())
			size += len(e)
		}
		if size > sync.PageBytes {
			t.Errorf("a part of %d bytes", size)
		}
		if after = next; parts == 0 {
			n.exec(`DELETE FROM todos WHERE id IN (2, 3)`) // which it has sent already
		}
		parts++
	}
	equal(t, "parts", parts, 4)
	var want []string
	for id := range int64(40) {
		want = append(want, sync.Ref{ID: id + 1}.String())
	}
	equal(t, "rows", fmt.Sprint(seen), fmt.Sprint(want))

	for _, bad := range []string{"0-256", "1-1", "0-0", "x", "0-1 ", strings.Repeat("0", 32)} {
		if _, _, err := n.log.Bucket(t.Context(), "todos", 0, 0, bad); !errors.Is(err, sync.ErrBadPage) {
			t.Errorf("after %q: %v", bad, err)
		}
	}
	for _, bad := range []string{"0-1", "00", strings.Repeat("f", 32)} {
		if _, _, err := n.log.Bucket(t.Context(), sync.FactsTable, 0, 0, bad); !errors.Is(err, sync.ErrBadPage) {
			t.Errorf("facts after %q: %v", bad, err)
		}
	}
	for b, sum := range n.buckets(sync.FactsTable) {
		all := n.bucket(sync.FactsTable, b, 0)
		equal(t, "facts", int64(len(all)), sum.Count)
		var first struct{ UID string }
		must(t, json.Unmarshal(all[0], &first))
		rest, next, err := n.log.Bucket(t.Context(), sync.FactsTable, b, 0, first.UID)
		must(t, err)
		equal(t, "after the first fact", fmt.Sprint(len(rest), next), fmt.Sprint(sum.Count-1, ""))
	}
}
