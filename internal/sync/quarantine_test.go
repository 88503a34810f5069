package sync_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tandem/internal/sync"
)

// setsAside offers a page with a bad entry between two good ones, and wants the bad
// one set aside, the good ones stored and the cursor moved.
func setsAside(t *testing.T, n *node, bad json.RawMessage) {
	t.Helper()
	n.exec(`DELETE FROM sync_quarantine`)
	n.exec(`DELETE FROM todos`)
	n.exec(`DELETE FROM sync_cursors`)
	before := wire(t, map[string]any{"id": 1, "uid": "ffffffffffffffffffffffffffffffff"})
	after := wire(t, map[string]any{"id": 2, "uid": "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"})
	at, err := n.log.Apply(t.Context(), "cloud", "", "c.1.t", entries(before, bad, after))
	must(t, err)
	equal(t, "cursor", at, "c.1.t")
	equal(t, "rows", read[int](n, `SELECT count(*) FROM todos`), 2)
	equal(t, "facts", read[int](n, `SELECT count(*) FROM facts`), 0)
	q, err := n.log.Quarantine(t.Context(), 10)
	must(t, err)
	if len(q) != 1 || q[0].Kind != sync.Malformed || q[0].Reason == "" {
		t.Fatalf("set aside: %+v", q)
	}
	counts := n.log.QuarantineCounts()
	equal(t, "count", counts[sync.Malformed], 1)
}

// S:42. One entry that cannot be taken keeps no other away.
func TestAnEntryThatCannotBeReadIsSetAside(t *testing.T) {
	local, _ := pair(t)
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	sound := string(wire(t, nil))
	with := func(from, to string) json.RawMessage {
		if !strings.Contains(sound, from) {
			t.Fatal(from)
		}
		return raw(strings.Replace(sound, from, to, 1))
	}
	change := func(name string, v any) json.RawMessage { return wire(t, map[string]any{name: v}) }
	for name, bad := range map[string]json.RawMessage{
		"HTML":                        raw(`<html><body>502 Bad Gateway</body></html>`),
		"nothing":                     raw(``),
		"null":                        raw(`null`),
		"an array":                    raw(`[1]`),
		"a string":                    raw(`"row"`),
		"an object cut short":         raw(sound[:len(sound)-5]),
		"two objects":                 raw(sound + sound),
		"an empty object":             raw(`{}`),
		"an unknown table":            change("table", "users"),
		"SQL for a table":             change("table", "todos; DROP TABLE todos"),
		"no table":                    change("table", nil),
		"a table that is no string":   change("table", 7),
		"no origin":                   change("origin", nil),
		"null for the origin":         with(`"origin":1`, `"origin":null`),
		"an origin of nobody":         change("origin", 2),
		"an origin as a string":       change("origin", "1"),
		"no id":                       change("id", nil),
		"id 0":                        change("id", 0),
		"a negative id":               change("id", -1),
		"a fraction for the id":       change("id", 1.5),
		"an id beyond 64 bits":        with(`"id":7`, `"id":9223372036854775808`),
		"an id as an exponent":        with(`"id":7`, `"id":1e3`),
		"no uid":                      change("uid", nil),
		"a uid of zeros":              change("uid", strings.Repeat("0", 32)),
		"a short uid":                 change("uid", "0011"),
		"a uid that is not hex":       change("uid", strings.Repeat("z", 32)),
		"no owner":                    change("owner", nil),
		"an owner with NUL":           change("owner", "ann\x00"),
		"an owner without end":        change("owner", strings.Repeat("x", 1000)),
		"no stamp":                    change("updated_at", nil),
		"a stamp of 0":                change("updated_at", 0),
		"an id that no count reaches": with(`"id":7`, `"id":9223372036854775807`),
		"a stamp beyond all years":    with(`"updated_at":1000`, `"updated_at":9223372036854775807`),
		"a stamp of the year 9999":    change("updated_at", 253402300799999),
		"a stamp just too late":       change("updated_at", lastStamp+1),
		"due in the year 10000":       change("due_at", 253402300800000),
		"due before the year 1":       change("due_at", -62135596800001),
		"a stamp as text":             change("updated_at", "2026-01-01T00:00:00Z"),
		"no writer":                   change("updated_by", nil),
		"a writer with NUL":           change("updated_by", "clo\x00ud"),
		"made before time":            change("created_at", -5),
		"deleted at no time":          change("deleted_at", "yesterday"),
		"seen that is no object":      change("seen", []int{1}),
		"seen with text":              change("seen", map[string]any{"cloud/1": "x"}),
		"seen beyond 64 bits":         with(`"cloud/1":1000`, `"cloud/1":99999999999999999999`),
		"a number for a text":         change("content", 5),
		"an object for a text":        change("content", map[string]any{"a": 1}),
		"NUL in a text":               change("content", "a\x00b"),
		"a text for a number":         change("due_at", "soon"),
		"a fraction for a number":     change("due_at", 1.5),
		"a number beyond 64 bits":     with(`"content":"milk"`, `"due_at":-9223372036854775809`),
		"a bool for a number":         change("due_at", true),
		"a number for a bool":         change("done", 1),
		"a text for a bool":           change("done", "true"),
		"a row that is too large":     change("content", strings.Repeat("x", 300<<10)),
		"an unknown field too large":  change("later", strings.Repeat("x", 300<<10)),
		"many fields too large": func() json.RawMessage {
			m := map[string]any{}
			for i := range 300 {
				m[fmt.Sprint("f", i)] = strings.Repeat("x", 1<<10)
			}
			return wire(t, m)
		}(),
		"a member twice":               with(`"id":7`, `"id":7,"id":8`),
		"a field twice":                with(`"content":"milk"`, `"content":"milk","content":"bread"`),
		"a member twice alike":         with(`"id":7`, `"id":7,"id":7`),
		"a name spelled twice":         with(`"content":"milk"`, `"content":"milk","c\u006fntent":"bread"`),
		"another case":                 with(`"origin"`, `"Origin"`),
		"another case of a table":      with(`"table"`, `"TABLE"`),
		"letters that are no UTF-8":    with(`milk`, "mi\xfflk"),
		"a field's name no UTF-8":      with(`"content":"milk"`, "\"con\xfftent\":1"),
		"a fact of nothing":            raw(`{"table":"facts"}`),
		"a fact without a body":        raw(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","kind":"fired","subject":"f","owner":"ann","node":"cloud","at":5}`),
		"a fact without a kind":        raw(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","subject":"f","owner":"ann","node":"cloud","at":5,"body":1}`),
		"a fact without a node":        raw(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","kind":"fired","subject":"f","owner":"ann","at":5,"body":1}`),
		"a fact at no time":            raw(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","kind":"fired","subject":"f","owner":"ann","node":"cloud","body":1}`),
		"a fact at the end of time":    raw(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","kind":"fired","subject":"f","owner":"ann","node":"cloud","at":253402300799999,"body":1}`),
		"a fact at text":               raw(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","kind":"fired","subject":"f","owner":"ann","node":"cloud","at":"now","body":1}`),
		"a fact twice":                 raw(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","kind":"fired","kind":"fired","subject":"f","owner":"ann","node":"cloud","at":5,"body":1}`),
		"a fact about NUL":             raw(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","kind":"fired","subject":"f\u0000","owner":"ann","node":"cloud","at":5,"body":1}`),
		"a fact that is too large":     raw(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","kind":"fired","subject":"f","owner":"ann","node":"cloud","at":5,"body":"` + strings.Repeat("x", 300<<10) + `"}`),
		"a fact whose uid is a number": raw(`{"table":"facts","uid":7,"kind":"fired","subject":"f","owner":"ann","node":"cloud","at":5,"body":1}`),
	} {
		t.Run(name, func(t *testing.T) { setsAside(t, local, bad) })
	}
}

func TestSoundRowIsNotRefused(t *testing.T) {
	for name, good := range map[string]json.RawMessage{
		"as it is":                       wire(t, nil),
		"with nulls":                     json.RawMessage(strings.Replace(string(wire(t, nil)), `"content":"milk"`, `"content":null,"due_at":null,"later":null,"deleted_at":null`, 1)),
		"without fields":                 wire(t, map[string]any{"content": nil, "seen": nil, "created_at": nil}),
		"a tombstone that names nobody":  wire(t, map[string]any{"content": nil, "owner": nil, "deleted_at": 1000}),
		"with the largest numbers":       json.RawMessage(strings.Replace(string(wire(t, nil)), `"id":7`, `"id":4503599627370496,"later":-9223372036854775808,"due_at":253402300799999`, 1)),
		"due before the calendar":        wire(t, map[string]any{"due_at": -62135596800000}),
		"written as late as any":         wire(t, map[string]any{"updated_at": lastStamp}),
		"with all a person may write":    wire(t, map[string]any{"content": strings.Repeat("\x01", 64<<10), "notes": strings.Repeat("<", 128<<10)}),
		"with the longest text of emoji": wire(t, map[string]any{"content": strings.Repeat("😀", 16<<10), "notes": strings.Repeat(`"\`, 64<<10)}),
		"of next year":                   wire(t, map[string]any{"updated_at": 1_900_000_000_000}),
	} {
		t.Run(name, func(t *testing.T) {
			local, cloud := pair(t)
			at, err := local.log.Apply(t.Context(), "cloud", "", "c.1.t", entries(good))
			must(t, err)
			equal(t, "cursor", at, "c.1.t")
			equal(t, "rows", read[int](local, `SELECT count(*) FROM todos`), 1)
			settle(t, local, cloud)
			same(t, local, cloud)
		})
	}
}

// S:56, S:57, S:63. What people wrote, and what might be a secret, is in no reason.
func TestReasonDoesNotQuoteTheEntry(t *testing.T) {
	const canary = "canary-7f3a"
	local, _ := pair(t)
	all := entries(
		wire(t, map[string]any{"content": []string{canary}}),
		wire(t, map[string]any{"due_at": canary}),
		wire(t, map[string]any{"done": canary}),
		wire(t, map[string]any{"content": canary + "\x00"}),
		wire(t, map[string]any{"updated_at": canary}),
		wire(t, map[string]any{"uid": canary}),
		wire(t, map[string]any{"content": strings.Repeat(canary, 30_000)}),
		json.RawMessage(canary),
		json.RawMessage(`{"`+canary+`":`),
	)
	for _, bad := range all {
		_, err := local.log.Apply(t.Context(), "cloud", "", "c", entries(bad))
		must(t, err)
		q, err := local.log.Quarantine(t.Context(), 100)
		must(t, err)
		if len(q) == 0 || strings.Contains(fmt.Sprintf("%+v", q[len(q)-1].Reason), canary) {
			t.Errorf("%.80s: %+v", bad, q)
		}
	}
}

// Whatever bytes stand for an entry: it is set aside or stored, and what is stored
// can be served again.
func TestNoEntryBreaksTheLog(t *testing.T) {
	local, cloud := pair(t)
	rapid.Check(t, func(rt *rapid.T) {
		entry := []byte(wire(t, map[string]any{"id": rapid.IntRange(1, 3).Draw(rt, "id"), "later": map[string]any{"a": []any{1, "x"}}}))
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			at := rapid.IntRange(0, len(entry)-1).Draw(rt, "at")
			switch rapid.IntRange(0, 2).Draw(rt, "how") {
			case 0:
				entry[at] = rapid.Byte().Draw(rt, "byte")
			case 1:
				entry = append(entry[:at], entry[at+1:]...)
			case 2:
				entry = append(entry[:at], append([]byte(rapid.SampledFrom([]string{`"`, `\`, `{`, `}`, `,`, `null`, `1e999`, "\x00", `\u0000`, `\ud800`, "\xff"}).Draw(rt, "insert")), entry[at:]...)...)
			}
		}
		if _, err := local.log.Apply(t.Context(), "x", "", "", entries(entry)); err != nil {
			rt.Fatalf("%q: %v", entry, err)
		}
		settle(t, local, cloud)
	})
	same(t, local, cloud)
}
