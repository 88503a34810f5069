// Package letters carries between the nodes what must cross once and act once, such
// as a message that is given to one of them and thought about at the other. A letter
// is kept in the outbox of its sender until its reader has acked it, and known by its
// key to the reader. Rows and facts, which are the same on both nodes and merge, are
// package sync's; notices to people are package push's.
//
// Each node is both. In an exchange it hands over what is Oldest, and Receive takes what
// the other hands over; the keys that this returns go with the next call to the other's
// Acked. A reader that finds out that its file was put back has OfferAgain called.
package letters

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"tandem/internal/fault"
)

// What one letter may hold, in bytes.
const (
	MaxName = 200       // its key, owner and kind, each
	MaxBody = 256 << 10 // its body without white space and needless escapes
)

// Letter is something to be done at the other node.
type Letter struct {
	Key   string          `json:"key"`   // names it for ever, and follows from what it is about
	Owner string          `json:"owner"` // the account's id; letters of one owner are applied in their order
	Kind  string          `json:"kind"`
	Body  json.RawMessage `json:"body"`

	flaw error // what kept it from being read
}

// ErrMalformed refuses a letter that the other node would refuse, or that is not one.
var ErrMalformed = fault.New(fault.Malformed, "letter_malformed", "A letter between the nodes could not be read.")

// UnmarshalJSON never fails: what is wrong with one letter is no reason to refuse
// those beside it. Receive parks one that could not be read.
func (l *Letter) UnmarshalJSON(b []byte) error {
	var all struct{ Key, Owner, Kind, Body json.RawMessage }
	*l = Letter{}
	if json.Unmarshal(b, &all) != nil {
		l.flaw = errors.New("not an object")
		return nil
	}
	l.Body = all.Body
	for _, m := range []struct {
		name string
		raw  json.RawMessage
		dest *string
	}{{"key", all.Key, &l.Key}, {"owner", all.Owner, &l.Owner}, {"kind", all.Kind, &l.Kind}} {
		if json.Unmarshal(m.raw, m.dest) != nil { // the decoder's own text would repeat the input
			l.flaw = fmt.Errorf("%s: not a string", m.name)
		}
	}
	return nil
}

// check returns what is wrong with a letter, by the same measure at both nodes.
func (l Letter) check() error {
	if l.flaw != nil {
		return ErrMalformed.Because(l.flaw)
	}
	for _, m := range []struct{ name, text string }{{"key", l.Key}, {"owner", l.Owner}, {"kind", l.Kind}} {
		switch {
		case m.text == "" || len(m.text) > MaxName:
			return ErrMalformed.Because(fmt.Errorf("%s: %d bytes; 1 to %d", m.name, len(m.text), MaxName))
		case !utf8.ValidString(m.text), strings.IndexByte(m.text, 0) >= 0:
			return ErrMalformed.Because(fmt.Errorf("%s: not plain text", m.name))
		}
	}
	if !json.Valid(l.Body) || !utf8.Valid(l.Body) {
		return ErrMalformed.Because(errors.New("body: not JSON in UTF-8"))
	}
	switch size, nul := measure(l.Body); {
	case nul:
		return ErrMalformed.Because(errors.New("body: a NUL character"))
	case size > MaxBody:
		return ErrMalformed.Because(fmt.Errorf("body: %d bytes; at most %d", size, MaxBody))
	}
	return nil
}

// measure is the size of a JSON value by what it says, whatever the white space and
// the escapes that it gained on its way, and whether a NUL is in it.
func measure(v json.RawMessage) (size int, nul bool) {
	text := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			text = !text
			size++
		case c == '\\' && v[i+1] == 'u':
			if v[i+2] == '0' && v[i+3] == '0' {
				size++
				nul = nul || v[i+4] == '0' && v[i+5] == '0'
			} else {
				size += 2 // at least, of a letter of two bytes or half of one of four
			}
			i += 5
		case c == '\\':
			size++
			i++
		case text || c > ' ':
			size++
		}
	}
	return size, nul
}
