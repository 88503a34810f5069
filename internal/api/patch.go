package api

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

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

// or is what a Change wants: nil where nothing was sent, and none where null was.
func (p patched[T]) or(none T) *T {
	if p.sent && p.value == nil {
		return &none
	}
	return p.value
}
