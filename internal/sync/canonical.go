package sync

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

func byName(a, b Field) int { return strings.Compare(a.Name, b.Name) }

// canonical spells a JSON value in one way: without white space, and each string
// with the fewest escapes. What one node encodes and the other encodes again must
// be the same bytes, or a row would seem to differ from itself.
func canonical(v json.RawMessage) json.RawMessage {
	if len(v) == 0 || isCanonical(v) {
		return v
	}
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

// isCanonical reports whether a value is surely spelled so: no list, and a string
// without anything that can be spelled in two ways.
func isCanonical(v json.RawMessage) bool {
	if v[0] == '{' || v[0] == '[' {
		return false
	}
	return bytes.IndexByte(v, '\\') < 0 && !bytes.Contains(v, []byte("\u2028")) && !bytes.Contains(v, []byte("\u2029"))
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
func quote(s string) json.RawMessage { return appendText(make([]byte, 0, len(s)+2), s) }

// appendText is quote at the end of b.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendUnusual(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendUnusual is appendText for what is not ASCII, or takes an escape.
func appendUnusual(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD") // as the other node will read it
	}
	if !strings.ContainsFunc(s, escaped) {
		return append(append(append(b, '"'), s...), '"')
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string encodes
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// escaped reports whether encoding/json writes r otherwise than it is.
func escaped(r rune) bool {
	return r < ' ' || r == '"' || r == '\\' || r == '\u2028' || r == '\u2029'
}
