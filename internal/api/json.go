package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// strictJSON is JSON as RFC 8259 wishes it were always written: UTF-8, each name
// once, and no NUL, which files and other programs take for the end of a text.
// The standard decoder lets all three pass, and repairs bytes that are not UTF-8,
// so that what was stored would not be what was sent.
var strictJSON = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(b []byte, v any) error {
		if err := checkJSON(b); err != nil {
			return err
		}
		if err := json.Unmarshal(b, v); err != nil {
			return errors.New("is not JSON of the right shape") // the decoder's own text repeats the input
		}
		return nil
	},
}

func checkJSON(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New("is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	c := checker{d, bytes.Contains(b, []byte("\ufffd")) || bytes.Contains(bytes.ToLower(b), []byte(`\ufffd`))}
	if err := c.value(0); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("has something after the JSON value")
	}
	return nil
}

const maxDepth = 32

// checker walks the tokens of a JSON text.
type checker struct {
	*json.Decoder
	replaced bool // the text has U+FFFD itself, so that finding one proves nothing
}

func (c checker) value(depth int) error {
	t, err := c.Token()
	if err != nil {
		return errors.New("is not JSON")
	}
	if s, ok := t.(string); ok {
		return c.text(s)
	}
	open, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	var names []string // few: no map
	for c.More() {
		if open == '{' {
			if names, err = c.name(names); err != nil {
				return err
			}
		}
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	if _, err := c.Token(); err != nil {
		return errors.New("is not JSON")
	}
	return nil
}

func (c checker) name(before []string) ([]string, error) {
	t, err := c.Token()
	name, ok := t.(string)
	if err != nil || !ok {
		return nil, errors.New("is not JSON")
	}
	if slices.Contains(before, name) {
		return nil, errors.New("names a field twice")
	}
	return append(before, name), c.text(name)
}

// text refuses what the decoder has let pass or repaired.
func (c checker) text(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return errors.New("has a NUL character in it")
	}
	if !c.replaced && strings.ContainsRune(s, utf8.RuneError) {
		return errors.New("has half of a surrogate pair in it")
	}
	return nil
}

// canonical writes a JSON text so that two that mean the same are the same:
// names sorted, no white space.
func canonical(b []byte) ([]byte, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// patched is a field of a merge patch (RFC 7396): not sent, sent as null, or a value.
type patched[T any] struct {
	sent  bool
	value *T
}

// UnmarshalJSON is called only where the field was sent.
func (p *patched[T]) UnmarshalJSON(b []byte) error {
	p.sent = true
	return json.Unmarshal(b, &p.value)
}

// Schema implements huma.SchemaProvider.
func (p patched[T]) Schema(r huma.Registry) *huma.Schema {
	var v T
	s := *huma.SchemaFromType(r, reflect.TypeOf(v))
	s.Nullable = true
	return &s
}

// text is what a Change wants: nil where nothing was sent, empty where null was.
func text(p patched[string]) *string {
	if !p.sent {
		return nil
	}
	if p.value == nil {
		return new(string)
	}
	return p.value
}

func operationID(method, path string) string {
	return strings.ToLower(method) + strings.NewReplacer("/v1", "", "/", "-", "{", "", "}", "").Replace(path)
}
