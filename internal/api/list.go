package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"tandem/internal/fault"
	"tandem/internal/sync"
)

var errBadCursor = fault.New(fault.Malformed, "invalid_cursor", "This cursor does not belong to this list. Begin again without one.")

const maxList = 200

// ListInput is what each list takes.
type ListInput struct {
	Limit  int    `query:"limit" minimum:"1" default:"50" doc:"How many at most; more than 200 is taken as 200"`
	Cursor string `query:"cursor" maxLength:"200" doc:"next_cursor of the page before, with the same filter"`
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
const (
	placeSize = 8 + 1 + 8
	sealSize  = 12
)

func (a *api) seal(place []byte, list ...string) []byte {
	m := hmac.New(sha256.New, a.cursors)
	m.Write(place)
	m.Write([]byte(strings.Join(list, "\x00")))
	return m.Sum(nil)[:sealSize]
}

func (a *api) cursor(p sync.Place, list ...string) string {
	b := make([]byte, 0, placeSize+sealSize)
	b = binary.BigEndian.AppendUint64(b, uint64(p.CreatedAt))
	b = append(b, byte(p.Origin))
	b = binary.BigEndian.AppendUint64(b, uint64(p.ID))
	return base64.RawURLEncoding.EncodeToString(append(b, a.seal(b, list...)...))
}

// place undoes cursor for the same list; an empty cursor is the start.
func (a *api) place(cursor string, list ...string) (sync.Place, error) {
	if cursor == "" {
		return sync.Place{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != placeSize+sealSize || !hmac.Equal(b[placeSize:], a.seal(b[:placeSize], list...)) {
		return sync.Place{}, errBadCursor
	}
	return sync.Place{
		CreatedAt: int64(binary.BigEndian.Uint64(b)),
		Ref:       sync.Ref{Origin: int64(b[8]), ID: int64(binary.BigEndian.Uint64(b[9:]))},
	}, nil
}

// page makes rows, of which one more than limit was asked for, a page.
func page[R, T any](a *api, rows []R, limit int, show func(R) T, place func(R) sync.Place, list ...string) *listOutput[T] {
	out := &listOutput[T]{Body: listBody[T]{Items: make([]T, 0, min(len(rows), limit))}}
	for i, r := range rows {
		if i == limit {
			out.Body.NextCursor = a.cursor(place(rows[i-1]), list...)
			break
		}
		out.Body.Items = append(out.Body.Items, show(r))
	}
	return out
}
