package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is text that must not be shown. Every verb of fmt, slog, and every
// encoder that knows encoding.TextMarshaler prints a placeholder, or nothing
// where there is no secret; string(s) is the one way to the text.
type Secret string

// String returns the placeholder.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[secret]"
}

// Format prints the placeholder whatever the verb, %#v and %x included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue logs the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText encodes the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
