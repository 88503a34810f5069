package telegram

import (
	"strings"
	"unicode/utf8"

	"tandem/internal/push"
)

// limit is the longest text Telegram takes, in UTF-16 code units, as it counts.
const limit = 4096

// rendered is a notice as plain text. No parse_mode is ever set, so whatever a
// person wrote arrives as written.
type rendered struct {
	body  string
	title string // the part of body in bold: its beginning, without spaces at the ends
}

// render puts the title, the body and each note on lines of their own. A title
// that only repeats how the body begins, cut or whole, is not said twice.
func render(m push.Message) rendered {
	title, text := clean(m.Title), clean(m.Body)
	if start := strings.TrimSuffix(title, "…"); strings.HasPrefix(text, start) {
		title = clean(start)
	} else {
		text = title + "\n" + text
	}
	for _, note := range m.Notes {
		text += "\n" + clean(note)
	}
	return rendered{body: strings.TrimSpace(text), title: title}
}

// clean is s as Telegram takes it: in UTF-8, no space around it.
func clean(s string) string { return strings.TrimSpace(strings.ToValidUTF8(s, string(utf8.RuneError))) }

// boldIn returns how many units at the start of part i stand in bold; only the
// first part begins with the title.
func (r rendered) boldIn(parts []string, i int) int {
	if i > 0 {
		return 0
	}
	return min(units(r.title), units(strings.TrimSpace(parts[0])))
}

// units counts s as Telegram does, in UTF-16 code units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += width(r)
	}
	return n
}

func width(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}
