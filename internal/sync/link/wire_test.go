package link

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRowsComeOutAsTheyWentIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []json.RawMessage
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			row, err := json.Marshal(map[string]any{
				rapid.String().Draw(t, "name"): rapid.SampledFrom([]any{1, -1.5e9, true, nil, "", `\`, `"`, `\\"`, "[{", []any{}, map[string]any{"a": []int{1}}}).Draw(t, "value"),
				"content":                      rapid.String().Draw(t, "content"),
			})
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row)
		}
		sent := Offer{From: rapid.String().Draw(t, "from"), To: "t", More: rapid.Bool().Draw(t, "more")}
		b, err := joinRows(rows, sent)
		if err != nil || !json.Valid(b) {
			t.Fatalf("%s: %v", b, err)
		}
		var got Offer
		back, err := splitRows(b, &got)
		// The standard library's own reading is the yardstick.
		var want struct {
			Offer
			Rows []json.RawMessage
		}
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if err != nil || got != want.Offer || fmt.Sprintf("%q", back) != fmt.Sprintf("%q", rows) || len(back) != len(want.Rows) {
			t.Fatalf("%s\n%q\n%+v %v", b, back, got, err)
		}
	})
}

func TestRowsAreFoundWhereverTheyStand(t *testing.T) {
	for _, s := range []string{
		`{"rows":[{"a":1},2],"from":"x"}`,
		`{"from":"x","rows":[{"a":1},2]}`,
		" \n{ \"from\" : \"x\" , \t\"rows\" : [ {\"a\":1} , 2 ] }\r\n",
		`{"new":{"rows":[7,"]"]},"from":"x","rows":[{"a":1},2],"newer":["rows"]}`,
	} {
		var o Offer
		rows, err := splitRows([]byte(s), &o)
		if err != nil || fmt.Sprintf("%s", rows) != `[{"a":1} 2]` || o.From != "x" {
			t.Errorf("%s: %s %+v %v", s, rows, o, err)
		}
	}
}

func TestWhatHasNoRowsIsRefused(t *testing.T) {
	for _, s := range []string{
		"", " ", "null", "7", `"x"`, "[]", "{", "{}", `{"a"`, `{"a":`, `{"a":1`, `{"a":1}`, `{"a":1,}`, `{"rows"`, `{"rows":`, `{"rows":[`, `{"rows":[1`,
		`{"rows":[1,`, `{"rows":[1,]`, `{"rows":[1]`, `{"rows":[1]]`, `{"rows":[1]}}`, `{"rows":[1]}x`, `{"rows":[1],"from":7}`, `{"rows":7}`, `{"rows":null}`,
		`{"rows":{}}`, `{"rows":["]}`, `{"rows":["\"]}`, `{"rows":[,]}`, `{"rows":[1 2]}`, `{"rows":[1]}{"rows":[2]}`, `<html>`, `{rows:[]}`, `{"from":"a"b,"rows":[]}`,
	} {
		var o Offer
		if rows, err := splitRows([]byte(s), &o); err == nil {
			t.Errorf("%s: %q", s, rows)
		}
	}
}

// Whatever comes: no crash, and what is taken for a row lies within what came.
func TestNoBytesBreakThePage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(`{"from":"x","rows":[{"a":"b\\"},[1,2],"c"],"to":{"d":[]}}`)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				b[at] = rapid.Byte().Draw(t, "byte")
			case 1:
				b = append(b[:at], b[at+1:]...)
			case 2:
				b = b[:at+1]
			}
		}
		var o Offer
		rows, err := splitRows(b, &o)
		for _, r := range rows {
			if err == nil && !strings.Contains(string(b), string(r)) {
				t.Fatalf("%q: %q", b, r)
			}
		}
	})
}

// A row that is wrong within stays one row: the log sets it aside, and the others
// are taken.
func TestBrokenRowLeavesItsNeighboursWhole(t *testing.T) {
	for _, bad := range []string{`{"a":}`, `{"a" 1}`, `[}`, `{]`, `nonsense`, "\"a\x00b\"", "{\"a\":\"\xff\"}", `{"a":1,"a":2}`, `-`} {
		var o Offer
		rows, err := splitRows([]byte(`{"rows":[{"id":1},`+bad+`,{"id":2}],"from":"x"}`), &o)
		if err != nil || len(rows) != 3 || string(rows[0]) != `{"id":1}` || string(rows[1]) != bad || string(rows[2]) != `{"id":2}` {
			t.Errorf("%s: %q %v", bad, rows, err)
		}
	}
}
