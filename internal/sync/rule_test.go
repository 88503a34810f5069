package sync

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// version draws one of few versions of one row, so that equal stamps are common.
func version(t *rapid.T) Row {
	r := Row{Table: "todos", Head: Head{
		Ref: Ref{1, 7}, UID: UID{1}, Owner: "ann", CreatedAt: 1,
		UpdatedAt: rapid.Int64Range(1, 3).Draw(t, "updated_at"),
		UpdatedBy: rapid.SampledFrom([]string{"cloud", "local"}).Draw(t, "updated_by"),
		Seen:      nothingSeen,
	}}
	if rapid.Bool().Draw(t, "deleted") {
		at := rapid.Int64Range(1, 2).Draw(t, "deleted_at")
		r.DeletedAt = &at
	}
	r.Fields = []Field{{"content", quote(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "content"))}}
	return r
}

// E06, S:15. The rule orders versions: any set of them has one that wins over the
// others, whoever compares them and in whatever order.
func TestRuleIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := version(t), version(t), version(t)
		if newer(a, a) {
			t.Fatal("a version is newer than itself")
		}
		if newer(a, b) && newer(b, a) {
			t.Fatal("each is newer than the other")
		}
		if !newer(a, b) && !newer(b, a) && a.hash() != b.hash() {
			t.Fatal("two versions that differ are alike to the rule: each node would keep its own")
		}
		if newer(a, b) && newer(b, c) && !newer(a, c) {
			t.Fatal("a > b > c, and not a > c")
		}
	})
}

// E06. The larger time decides, then the larger name; S:15: only then the content.
func TestRuleComparesTimeThenNameThenContent(t *testing.T) {
	row := func(at int64, by, content string) Row {
		return Row{Head: Head{Ref: Ref{1, 7}, UpdatedAt: at, UpdatedBy: by}, Fields: []Field{{"content", quote(content)}}}
	}
	low, high := "x", "y" // by their hashes, whatever these are
	if newer(row(1, "cloud", low), row(1, "cloud", high)) {
		low, high = high, low
	}
	for _, c := range []struct {
		name         string
		winner, over Row
	}{
		{"time over name and content", row(2, "cloud", low), row(1, "local", high)},
		{"name over content", row(1, "local", low), row(1, "cloud", high)},
		{"content", row(1, "cloud", high), row(1, "cloud", low)},
	} {
		if !newer(c.winner, c.over) || newer(c.over, c.winner) {
			t.Error(c.name)
		}
	}
}

// Whatever spells a value otherwise on its way, such as a proxy or another encoder,
// the row is the same row.
func TestHashIsOfWhatARowSaysAndNotOfItsSpelling(t *testing.T) {
	table := &Table{Name: "todos", Columns: []Column{{Name: "content"}, {Name: "done", Kind: Bool}, {Name: "notes"}, {Name: "due_at", Kind: Integer, Null: true}}}
	table.prepare()
	const head = `"table":"todos","origin":1,"id":7,"uid":"00112233445566778899aabbccddeeff","owner":"ann","created_at":1,"updated_at":1,"updated_by":"cloud"`
	hash := func(fields string) [32]byte {
		var r Row
		if err := json.Unmarshal([]byte(`{`+head+`,`+fields+`}`), &r); err != nil {
			t.Fatal(fields, err)
		}
		var err error
		if r.Fields, err = table.canonical(r.Fields); err != nil {
			t.Fatal(fields, err)
		}
		return r.hash()
	}
	for _, c := range [][2]string{
		{`"content":"a<b>&c"`, `"content":"a\u003cb\u003e\u0026c"`},
		{`"content":"é 😀"`, `"content":"\u00e9 \ud83d\ude00"`},
		{"\"content\":\"a\u2028b\"", `"content":"a\u2028b"`},
		{`"content":"a\u007fb/"`, "\"content\":\"a\x7fb\\/\""},
		{`"content":"a","done":false,"notes":"","due_at":null`, `"content":"a"`},
		{`"content":"a","new":{"x":"<","y":[1,2]}`, `"new" : { "x" : "\u003c" , "y" : [ 1 , 2 ] }, "content":"a"`},
		{`"content":"a","seen":{"cloud/1":5}`, `"content":"a"`},
	} {
		if hash(c[0]) != hash(c[1]) {
			t.Errorf("%s and %s differ", c[0], c[1])
		}
	}
	for _, c := range [][2]string{
		{`"content":"a"`, `"content":"b"`},
		{`"content":"a","done":true`, `"content":"a"`},
		{`"content":"a","due_at":0`, `"content":"a"`},
		{`"content":"a","new":1`, `"content":"a","new":2`},
		{`"content":"a","new":""`, `"content":"a"`},
	} {
		if hash(c[0]) == hash(c[1]) {
			t.Errorf("%s and %s are alike", c[0], c[1])
		}
	}
}

func TestWeightCountsCharactersAndNotTheirEscapes(t *testing.T) {
	for _, s := range []string{"", "plain", "<&>", "\n\n\n", `"quoted"`, "\x01\x02", "a\u2028b", "日本語", `back\slash`, "😀"} {
		if w := weight(quote(s)); w != len(s)+2 {
			t.Errorf("%q weighs %d", s, w)
		}
	}
	if w := weight(quote("a\n\"b")); w != 4+2 {
		t.Error(w)
	}
}
