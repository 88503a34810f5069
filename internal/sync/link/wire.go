package link

import (
	"bytes"
	"encoding/json"
	"errors"
)

// What carries rows is put together and taken apart by hand: a row is JSON when it
// leaves the log and is checked by the log that takes it, so to go through the
// whole page once more at each end would be the larger part of the work.

// errShape says no more: the library's own error would repeat what was sent.
var errShape = errors.New("not JSON of the right shape")

// joinRows returns an object with the members of rest, an object with one at least,
// and rows.
func joinRows(rows []json.RawMessage, rest any) ([]byte, error) {
	tail, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	size := len(`{"rows":[],`) + len(tail) + len(rows)
	for _, r := range rows {
		size += len(r)
	}
	b := append(make([]byte, 0, size), `{"rows":[`...)
	for i, r := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	return append(append(b, `],`...), tail[1:]...), nil
}

// splitRows undoes joinRows: it returns the rows, which share b's memory, and reads
// the other members into rest. Each row is whatever stands there; what is wrong
// within one is for the log to say.
func splitRows(b []byte, rest any) ([]json.RawMessage, error) {
	s := scanner{b: b}
	if !s.take('{') {
		return nil, errShape
	}
	for {
		name, ok := s.value()
		if !ok || !s.take(':') {
			return nil, errShape
		}
		if string(name) == `"rows"` {
			break
		}
		if _, ok := s.value(); !ok || !s.take(',') {
			return nil, errShape
		}
	}
	s.space()
	from := s.at
	rows, ok := s.list()
	if !ok {
		return nil, errShape
	}
	other := bytes.Join([][]byte{b[:from], b[s.at:]}, []byte("null"))
	if json.Unmarshal(other, rest) != nil {
		return nil, errShape
	}
	return rows, nil
}

// scanner finds where JSON values end. It looks at no more than brackets and quotes.
type scanner struct {
	b  []byte
	at int
}

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\t' || s.b[s.at] == '\n' || s.b[s.at] == '\r') {
		s.at++
	}
}

// take skips c, and reports whether it was there.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.at == len(s.b) || s.b[s.at] != c {
		return false
	}
	s.at++
	return true
}

// list returns the elements of an array.
func (s *scanner) list() (all []json.RawMessage, ok bool) {
	if !s.take('[') {
		return nil, false
	}
	if s.take(']') {
		return nil, true
	}
	for {
		v, ok := s.value()
		if !ok {
			return nil, false
		}
		all = append(all, v)
		if s.take(']') {
			return all, true
		}
		if !s.take(',') {
			return nil, false
		}
	}
}

// value returns the next value, or false where there is none or it has no end.
func (s *scanner) value() ([]byte, bool) {
	s.space()
	from, depth := s.at, 0
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case '"':
			if !s.text() {
				return nil, false
			}
			if depth == 0 {
				return s.b[from:s.at:s.at], true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // of what the value is in
				return s.b[from:s.at:s.at], s.at > from
			}
			if depth--; depth == 0 {
				s.at++
				return s.b[from:s.at:s.at], true
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return s.b[from:s.at:s.at], s.at > from
			}
		}
		s.at++
	}
	return nil, false
}

// text skips a string.
func (s *scanner) text() bool {
	for i := s.at + 1; ; {
		n := bytes.IndexByte(s.b[i:], '"')
		if n < 0 {
			return false
		}
		end := i + n
		escapes := 0
		for end-1-escapes > s.at && s.b[end-1-escapes] == '\\' {
			escapes++
		}
		if i = end + 1; escapes%2 == 0 {
			s.at = i
			return true
		}
	}
}
