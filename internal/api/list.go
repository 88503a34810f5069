package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"tandem/internal/fault"
	"tandem/internal/sync"
)

var errBadCursor = fault.New(fault.Malformed, "invalid_cursor", "This cursor does not belong to this list. Begin again without one.")

const maxList = 200

// ListInput is what each list takes.
type ListInput struct {
	Limit  int    `query:"limit" minimum:"1" default:"50" doc:"How many at most; more than 200 is taken as 200"`
	Cursor string `query:"cursor" doc:"next_cursor of the page before, with the same filter"`
}

func (in ListInput) limit() int { return min(in.Limit, maxList) }

// listBody is a page. NextCursor is absent at the end.
type listBody[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty"`
}

type listOutput[T any] struct {
	Body listBody[T]
}

// A cursor is the place of the last row, sealed together with whose list it is
// and by what filter: taken elsewhere it would skip rows without a word.
const sealSize = 12

func (a *api) seal(place []byte, list []string) []byte {
	m := hmac.New(sha256.New, a.cursors)
	for _, part := range append(list, string(place)) {
		m.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		m.Write([]byte(part))
	}
	return m.Sum(nil)[:sealSize]
}

func (a *api) cursor(place []byte, list []string) string {
	return base64.RawURLEncoding.EncodeToString(append(a.seal(place, list), place...))
}

// place undoes cursor for the same list; an empty cursor is the start, and nil.
func (a *api) place(cursor string, list []string) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) <= sealSize || !hmac.Equal(b[:sealSize], a.seal(b[sealSize:], list)) {
		return nil, errBadCursor
	}
	return b[sealSize:], nil
}

// rowPlace is place where the list is of rows.
func (a *api) rowPlace(cursor string, list []string) (sync.Place, error) {
	b, err := a.place(cursor, list)
	if b == nil {
		return sync.Place{}, err
	}
	return sync.Place{
		CreatedAt: int64(binary.BigEndian.Uint64(b)),
		Ref:       sync.Ref{Origin: int64(b[8]), ID: int64(binary.BigEndian.Uint64(b[9:]))},
	}, nil
}

func placeOf(h sync.Head) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(h.CreatedAt))
	return binary.BigEndian.AppendUint64(append(b, byte(h.Origin)), uint64(h.ID))
}

// page makes rows, of which one more than limit was asked for, a page.
func page[R, T any](a *api, rows []R, limit int, show func(R) T, place func(R) []byte, list []string) *listOutput[T] {
	out := &listOutput[T]{Body: listBody[T]{Items: make([]T, 0, min(len(rows), limit))}}
	for i, r := range rows {
		if i == limit {
			out.Body.NextCursor = a.cursor(place(rows[i-1]), list)
			break
		}
		out.Body.Items = append(out.Body.Items, show(r))
	}
	return out
}
