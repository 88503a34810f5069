package sync

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// members returns the members of a JSON object by name. An object that names one
// of them twice says two things and is refused, as is one that is not UTF-8:
// encoding/json would take the last, and put other letters in.
func members(object []byte) ([]Field, error) {
	if !utf8.Valid(object) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	all := make([]Field, 0, 20)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // the decoder allows nothing else here
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		all = append(all, Field{name, v})
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something after the object")
	}
	slices.SortFunc(all, byName)
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			return nil, fmt.Errorf("two members %.40q", all[i].Name)
		}
	}
	return all, nil
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
			var s string
			_ = json.Unmarshal(v[i:end], &s) // it is part of a value that was read
			out = append(out, quote(s)...)
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
	var b bytes.Buffer
	b.Grow(len(s) + 3)
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
