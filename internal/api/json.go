package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// How deep JSON may be nested, and how many names one object may have.
const (
	bodyDepth = 32
	maxNames  = 200
)

// format is how huma reads and writes. What it reads has passed checkJSON.
var format = huma.Format{
	Marshal:   func(w io.Writer, v any) error { return huma.DefaultJSONFormat.Marshal(deaf{w}, v) },
	Unmarshal: unmarshal,
}

// deaf drops the error of a caller that has gone. Huma would panic for it, as it
// does for a value that cannot be written.
type deaf struct{ io.Writer }

func (d deaf) Write(b []byte) (int, error) {
	_, _ = d.Writer.Write(b)
	return len(b), nil
}

func unmarshal(b []byte, v any) error {
	if json.Unmarshal(b, v) != nil {
		return errors.New("is not JSON of the right shape") // the decoder's own text repeats the input
	}
	return nil
}

// checkJSON holds a text to JSON as RFC 8259 wishes it were always written: UTF-8,
// each name once, no half of a surrogate pair, and no NUL, which files and other
// programs take for the end of a text. The standard decoder lets all of these pass
// and repairs some, so that what was stored would not be what was sent.
func checkJSON(b []byte, depth int) error {
	switch {
	case !utf8.Valid(b):
		return errors.New("is not valid UTF-8")
	case bytes.HasPrefix(b, []byte("\ufeff")):
		return errors.New("begins with a byte order mark, which JSON does not have")
	}
	if err := checkEscapes(b); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := checkValue(d, depth); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("has something after the JSON value")
	}
	return nil
}

// checkEscapes looks at each \u. It need not know where strings begin: elsewhere a
// backslash is not JSON.
func checkEscapes(b []byte) error {
	high := false // the escape just before was the first half of a pair
	for {
		i := bytes.IndexByte(b, '\\')
		if high && i != 0 {
			return errHalf
		}
		if i < 0 || i+1 == len(b) {
			return nil
		}
		unit, ok := codeUnit(b[i+1:])
		low := ok && 0xdc00 <= unit && unit <= 0xdfff
		switch {
		case high != low:
			return errHalf
		case ok && unit == 0:
			return errors.New("has a NUL character in it")
		}
		high = ok && 0xd800 <= unit && unit <= 0xdbff
		b = b[i+2:]
		if ok {
			b = b[4:]
		}
	}
}

var errHalf = errors.New("has half of a surrogate pair in it")

// codeUnit reads what follows the backslash of a \u escape.
func codeUnit(b []byte) (uint64, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(b[1:5]), 16, 16)
	return unit, err == nil
}

func checkValue(d *json.Decoder, depth int) error {
	t, err := d.Token()
	if err != nil {
		return errors.New("is not JSON")
	}
	open, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	if depth == 0 {
		return errors.New("is nested too deep")
	}
	var names []string
	for d.More() {
		if open == '{' {
			t, err := d.Token()
			name, ok := t.(string)
			if err != nil || !ok {
				return errors.New("is not JSON")
			}
			if names = append(names, name); len(names) > maxNames {
				return errors.New("has too many fields")
			}
		}
		if err := checkValue(d, depth-1); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("is not JSON")
	}
	slices.Sort(names)
	if len(slices.Compact(names)) < len(names) {
		return errors.New("names a field twice")
	}
	return nil
}
