package sync

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// members returns the members of a JSON object by name. An object that names one
// of them twice says two things and is refused, as is one that is not UTF-8:
// encoding/json would take the last, and put other letters in.
func members(object []byte) ([]Field, error) {
	switch {
	case !utf8.Valid(object):
		return nil, errors.New("not UTF-8")
	case !json.Valid(object):
		return nil, errors.New("not JSON")
	}
	i := space(object, 0)
	if object[i] != '{' {
		return nil, errors.New("not an object")
	}
	all := make([]Field, 0, 20)
	for i = space(object, i+1); object[i] != '}'; { // what is valid needs no more looking at
		end := valueEnd(object, i)
		name := unquote(object[i:end])
		i = space(object, space(object, end)+1) // over the colon
		end = valueEnd(object, i)
		all = append(all, Field{name, object[i:end:end]})
		if i = space(object, end); object[i] == ',' {
			i = space(object, i+1)
		}
	}
	slices.SortFunc(all, byName)
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			return nil, fmt.Errorf("two members %.40q", all[i].Name)
		}
	}
	return all, nil
}

// space returns where what is not white space goes on from i.
func space(v []byte, i int) int {
	for v[i] == ' ' || v[i] == '\t' || v[i] == '\n' || v[i] == '\r' {
		i++
	}
	return i
}

// valueEnd returns where the value that begins at i ends.
func valueEnd(v []byte, i int) int {
	for depth := 0; ; {
		switch v[i] {
		case '"':
			i = stringEnd(v, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default:
			i++
		}
		if depth == 0 && endsValue(v, i) {
			return i
		}
	}
}

// endsValue reports whether a value outside all brackets is over at i.
func endsValue(v []byte, i int) bool {
	return i == len(v) || strings.IndexByte(" \t\n\r,:}]", v[i]) >= 0
}

// unquote reads a valid JSON string.
func unquote(v []byte) string {
	if inner := v[1 : len(v)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(v, &s)
	return s
}

func byName(a, b Field) int { return strings.Compare(a.Name, b.Name) }

// canonical spells a JSON value in one way: without white space, and each string
// with the fewest escapes. What one node encodes and the other encodes again must
// be the same bytes, or a row would seem to differ from itself.
func canonical(v json.RawMessage) json.RawMessage {
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); {
		switch v[i] {
		case ' ', '\t', '\n', '\r':
			i++
		case '"':
			end := stringEnd(v, i)
			out = append(out, quote(unquote(v[i:end]))...)
			i = end
		default:
			out = append(out, v[i])
			i++
		}
	}
	return out
}

// stringEnd returns where the string that begins at i ends.
func stringEnd(v json.RawMessage, i int) int {
	for i++; i < len(v); i++ {
		switch v[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(v)
}

// weight is the size of a canonical value by what it says: an escape is a
// character, as it was for whoever limited the text.
func weight(v json.RawMessage) int {
	n := len(v)
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' {
			continue
		}
		i++
		n--
		switch {
		case bytes.HasPrefix(v[i:], []byte("u00")):
			n -= 4 // six bytes for one
		case bytes.HasPrefix(v[i:], []byte("u")):
			n -= 2 // six bytes for three
		}
	}
	return n
}

// quote writes s as JSON without the escapes that only HTML needs.
func quote(s string) json.RawMessage {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD") // as the other node will read it
	}
	if !strings.ContainsFunc(s, escaped) {
		return append(append(append(make([]byte, 0, len(s)+2), '"'), s...), '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// escaped reports whether encoding/json writes r otherwise than it is.
func escaped(r rune) bool {
	return r < ' ' || r == '"' || r == '\\' || r == '\u2028' || r == '\u2029'
}
