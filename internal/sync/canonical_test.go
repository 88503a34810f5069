package sync

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// value draws any JSON value with texts that are awkward to encode.
func value(depth int) *rapid.Generator[any] {
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("\\\"/<>&\u2028\u2029\x00\x1f\x7f{}[],: é😀\n"))))
	kinds := []*rapid.Generator[any]{
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(text, value(depth-1), 0, 4), func(m map[string]any) any { return m }))
	}
	return rapid.OneOf(kinds...)
}

// spell encodes v in one of the ways in which that may be done.
func spell(t *rapid.T, v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(rapid.Bool().Draw(t, "escape HTML"))
	if rapid.Bool().Draw(t, "indent") {
		e.SetIndent(" \t", "\r\n ")
	}
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func meaning(t *rapid.T, b []byte) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return v
}

func TestMembersAreThoseThatEncodingJSONSees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := spell(t, rapid.MapOfN(rapid.String(), value(2), 0, 6).Draw(t, "object"))
		var want map[string]json.RawMessage
		if err := json.Unmarshal(object, &want); err != nil {
			t.Fatal(err)
		}
		got, err := members(object)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: %d members of %d, %v", object, len(got), len(want), err)
		}
		for _, f := range got {
			if !bytes.Equal(f.Value, want[f.Name]) {
				t.Fatalf("%q: %q is %q, want %q", object, f.Name, f.Value, want[f.Name])
			}
		}
	})
}

func TestCanonicalIsOneSpellingOfTheSameValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		a, b := canonical(spell(t, v)), canonical(spell(t, v))
		if !bytes.Equal(a, b) || !bytes.Equal(a, canonical(a)) {
			t.Fatalf("%q and %q", a, b)
		}
		if !reflect.DeepEqual(meaning(t, a), meaning(t, spell(t, v))) {
			t.Fatalf("%q means something else", a)
		}
	})
}

// What is not UTF-8 in the file is what the other node will read.
func TestQuoteOfBrokenTextIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		q := quote(s)
		var back string
		if err := json.Unmarshal(q, &back); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(quote(back), q) || utf8.ValidString(s) && back != s {
			t.Fatalf("%q, %q, %q", s, q, back)
		}
	})
}
