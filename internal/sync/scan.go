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

// Pages are large and mostly plain: this reader checks an entry (RFC 8259) and takes
// it apart in one pass, and leaves what a value says to whoever wants it.

var (
	errNotJSON   = errors.New("not JSON")
	errNotUTF8   = errors.New("not UTF-8")
	errNotObject = errors.New("not an object")
)

// maxDepth bounds how deep a value may nest.
const maxDepth = 100

// members returns the members of a JSON object by name. An object that names one
// of them twice says two things and is refused, as is one that is not UTF-8:
// encoding/json would take the last, and put other letters in.
func members(object []byte) ([]Field, error) {
	all, err := unsorted(nil, object)
	if err != nil {
		return nil, err
	}
	return all, sortFields(all)
}

// unsorted adds the members to all in the order in which they stand, some of them
// perhaps twice.
func unsorted(all []Field, object []byte) ([]Field, error) {
	if !utf8.Valid(object) {
		return nil, errNotUTF8
	}
	all, end, err := objectAt(all, object, space(object, 0))
	if err == nil && space(object, end) != len(object) {
		err = errNotJSON
	}
	return all, err
}

// sortFields sorts by name, and refuses two of one name.
func sortFields(all []Field) error {
	if !slices.IsSortedFunc(all, byName) {
		slices.SortFunc(all, byName)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			return fmt.Errorf("two members %.40q", all[i].Name)
		}
	}
	return nil
}

// objectAt adds the members of the object that begins at i, and returns where it ends.
func objectAt(all []Field, b []byte, i int) ([]Field, int, error) {
	if i == len(b) || b[i] != '{' {
		if end := valueEnd(b, i, 0); end < 0 {
			return nil, 0, errNotJSON
		}
		return nil, 0, errNotObject
	}
	all = slices.Grow(all, 20)
	i = space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return all, i + 1, nil
	}
	for i < len(b) {
		name := i
		colon := nameEnd(b, i)
		if colon < 0 {
			return nil, 0, errNotJSON
		}
		value := space(b, colon+1)
		end := valueEnd(b, value, 1)
		if end < 0 {
			return nil, 0, errNotJSON
		}
		all = append(all, Field{nameOf(b[name:stringEnd(b, name)]), b[value:end:end]})
		if i = space(b, end); i < len(b) && b[i] == '}' {
			return all, i + 1, nil
		}
		if i == len(b) || b[i] != ',' {
			return nil, 0, errNotJSON
		}
		i = space(b, i+1)
	}
	return nil, 0, errNotJSON
}

// space returns where what is not white space goes on from i.
func space(v []byte, i int) int {
	for i < len(v) && (v[i] == ' ' || v[i] == '\t' || v[i] == '\n' || v[i] == '\r') {
		i++
	}
	return i
}

// nameEnd returns where the colon stands after the name that begins at i; below 0:
// there is none.
func nameEnd(v []byte, i int) int {
	end := stringEnd(v, i)
	if end < 0 {
		return -1
	}
	if end = space(v, end); end == len(v) || v[end] != ':' {
		return -1
	}
	return end
}

// valueEnd returns where the value that begins at i ends; below 0: it is not JSON.
func valueEnd(v []byte, i, depth int) int {
	if i >= len(v) || depth > maxDepth {
		return -1
	}
	switch c := v[i]; {
	case c == '"':
		return stringEnd(v, i)
	case c == '{':
		return listEnd(v, i, '}', depth)
	case c == '[':
		return listEnd(v, i, ']', depth)
	case c == '-' || c >= '0' && c <= '9':
		return numberEnd(v, i)
	}
	for _, word := range []string{"true", "false", "null"} {
		if len(v)-i >= len(word) && string(v[i:i+len(word)]) == word {
			return i + len(word)
		}
	}
	return -1
}

// listEnd is valueEnd for an object or an array.
func listEnd(v []byte, i int, close byte, depth int) int {
	i = space(v, i+1)
	if i < len(v) && v[i] == close {
		return i + 1
	}
	for i < len(v) {
		if close == '}' {
			if i = nameEnd(v, i); i < 0 {
				return -1
			}
			i = space(v, i+1)
		}
		if i = valueEnd(v, i, depth+1); i < 0 {
			return -1
		}
		if i = space(v, i); i < len(v) && v[i] == close {
			return i + 1
		}
		if i == len(v) || v[i] != ',' {
			return -1
		}
		i = space(v, i+1)
	}
	return -1
}

// stringEnd is valueEnd for a string.
func stringEnd(v []byte, i int) int {
	if i >= len(v) || v[i] != '"' {
		return -1
	}
	for i++; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c != '\\':
		case i+1 == len(v):
			return -1
		case v[i+1] == 'u':
			if i+5 >= len(v) || !hexadecimal(v[i+2:i+6]) {
				return -1
			}
			i += 5
		case strings.IndexByte(`"\/bfnrt`, v[i+1]) < 0:
			return -1
		default:
			i++
		}
	}
	return -1
}

func hexadecimal(v []byte) bool {
	for _, c := range v {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

// numberEnd is valueEnd for a number.
func numberEnd(v []byte, i int) int {
	if v[i] == '-' {
		i++
	}
	first := i
	if i = digits(v, i); i == first || v[first] == '0' && i > first+1 {
		return -1
	}
	if i < len(v) && v[i] == '.' {
		point := i + 1
		if i = digits(v, point); i == point {
			return -1
		}
	}
	if i < len(v) && (v[i] == 'e' || v[i] == 'E') {
		i++
		if i < len(v) && (v[i] == '+' || v[i] == '-') {
			i++
		}
		exponent := i
		if i = digits(v, i); i == exponent {
			return -1
		}
	}
	return i
}

func digits(v []byte, i int) int {
	for i < len(v) && v[i] >= '0' && v[i] <= '9' {
		i++
	}
	return i
}

var (
	errNotText    = errors.New("not a string")
	errNotInteger = errors.New("not a whole number of 64 bits")
	errNotPlain   = errors.New("not plain text")
)

// text reads a value that must be a string.
func text(v []byte) (string, error) {
	if v[0] != '"' {
		return "", errNotText
	}
	return unquote(v), nil
}

// integer reads a value that must be a whole number, written without a fraction or an
// exponent.
func integer(v []byte) (n int64, err error) {
	digits := bytes.TrimPrefix(v, []byte("-"))
	if len(digits) == 0 || len(digits) > 19 {
		return 0, errNotInteger
	}
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, errNotInteger
		}
		u = u*10 + uint64(c-'0')
	}
	negative := len(digits) < len(v)
	if u > 1<<63 || u == 1<<63 && !negative {
		return 0, errNotInteger
	}
	if negative {
		return -int64(u), nil
	}
	return int64(u), nil
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

// nameOf is unquote for a name, of which there are few: those that are known are
// not made anew for each row.
func nameOf(v []byte) string {
	if s, ok := names[string(v[1:len(v)-1])]; ok {
		return s
	}
	return unquote(v)
}

// names are those of the heads of rows and facts, and of the fields that are most.
var names = func() map[string]string {
	all := map[string]string{}
	for _, s := range strings.Fields(`table origin id uid owner created_at updated_at updated_by deleted_at alias_of seen
		kind subject node at body content due_at due_on tz done notes remind action enabled trigger_at cron_expr rrule`) {
		all[s] = s
	}
	return all
}()
