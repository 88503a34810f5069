package telegram

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// split cuts text into parts of at most room units, in order. It cuts after a
// line if one ends in the second half of a part, else after a space there, else
// between two characters as a person sees them. Parts that show nothing are left
// out, since Telegram refuses them; apart from those the parts make up text.
func split(text string, room int) []string {
	var parts []string
	for text != "" {
		n := cut(text, room)
		if part := text[:n]; strings.TrimSpace(part) != "" {
			parts = append(parts, part)
		}
		text = text[n:]
	}
	return parts
}

// cut returns the length in bytes of the first part of text.
func cut(text string, room int) int {
	used, end := 0, 0
	line, space := 0, 0
	for end < len(text) {
		n := cluster(text[end:])
		used += units(text[end : end+n])
		if used > room {
			return cmp.Or(line, space, end, within(text, room))
		}
		end += n
		if used <= room/2 {
			continue
		}
		switch text[end-1] {
		case '\n':
			line = end
		case ' ', '\t':
			space = end
		}
	}
	return end
}

// within is for a character wider than a whole part: as many of its runes as fit.
func within(text string, room int) int {
	used := 0
	for i, r := range text {
		if used += width(r); used > room {
			return i
		}
	}
	return len(text)
}

// The runes that glue others together.
const (
	joiner       = '\u200D'
	firstTone    = '\U0001F3FB'
	lastTone     = '\U0001F3FF'
	firstFlag    = '\U0001F1E6'
	lastFlag     = '\U0001F1FF'
	firstTagRune = '\U000E0020'
	lastTagRune  = '\U000E007F'
)

// cluster returns the length in bytes of the first character of s as a person
// sees it: a rune with its accents, skin tone, variation and joined runes, a pair
// of flag letters, or CR LF. It knows the emoji and the marks, not every script's rules.
func cluster(s string) int {
	first, n := utf8.DecodeRuneInString(s)
	if first == '\r' && strings.HasPrefix(s[n:], "\n") {
		return n + 1
	}
	if second, m := utf8.DecodeRuneInString(s[n:]); isFlag(first) && isFlag(second) {
		n += m
	}
	for n < len(s) {
		r, m := utf8.DecodeRuneInString(s[n:])
		switch {
		case r == joiner:
			n += m
			_, m = utf8.DecodeRuneInString(s[n:])
			n += m
		case extends(r):
			n += m
		default:
			return n
		}
	}
	return n
}

func isFlag(r rune) bool { return r >= firstFlag && r <= lastFlag }

func extends(r rune) bool {
	return unicode.Is(unicode.M, r) || r >= firstTone && r <= lastTone || r >= firstTagRune && r <= lastTagRune
}
