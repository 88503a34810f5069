package telegram_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"tandem/internal/push"
	"tandem/internal/standin"
)

// texts returns what reached the chat, in order.
func texts(far *standin.Telegram) []string {
	var all []string
	for _, m := range far.Messages() {
		all = append(all, m.Text)
	}
	return all
}

func TestTextArrivesAsWritten(t *testing.T) {
	for _, text := range []string{
		`C:\new_file (1)`,                   // R:D2
		`buy_milk *now* <x> [y](`,           // R:D6
		`immich_server, <a@b.c>, **`,        // R:D6
		strings.Repeat("&", 4000),           // R:D4
		"50% off %s & café \u202e naïve 👍🏽", // and what a format or a form might eat
	} {
		far := standin.NewTelegram(token)
		b, _ := dial(far)
		succeed(t, b, chat, push.Message{FireID: "f1", Body: text})
		if got := texts(far); len(got) != 1 || got[0] != text {
			t.Errorf("%q arrived as %q", text, got)
		}
		succeed(t, b, chat, push.Message{FireID: "f2", Title: text, Body: "x"})
		if got := texts(far)[1]; got != text+"\nx" {
			t.Errorf("the title %q arrived as %q", text, got)
		}
	}
}

func TestTitleIsNotSaidTwice(t *testing.T) {
	for _, c := range []struct {
		title, body, text string
		bold              int
	}{
		{"Pay rent", "Pay rent", "Pay rent", 8},
		{"Pay rent…", "Pay rent before noon", "Pay rent before noon", 8},
		{"Pay 👍🏽", "before noon", "Pay 👍🏽\nbefore noon", 8}, // in UTF-16 units
		{"  ", "before noon", "before noon", 0},
		{"Pay rent", "", "Pay rent", 8},
	} {
		far := standin.NewTelegram(token)
		b, _ := dial(far)
		succeed(t, b, chat, push.Message{Title: c.title, Body: c.body})
		got := far.Messages()[0]
		bold := 0
		for _, e := range got.Entities {
			bold += e.Length
		}
		if got.Text != c.text || bold != c.bold {
			t.Errorf("%q, %q: %q with %d units in bold", c.title, c.body, got.Text, bold)
		}
	}
}

func TestLongTextGoesOutInParts(t *testing.T) { // R:D3
	for _, c := range []struct {
		name, text string
		parts      int
	}{
		{"4,096", strings.Repeat("a", 4096), 1},
		{"4,097", strings.Repeat("a", 4097), 2},
		{"10,000", strings.Repeat("a", 10000), 3},
		{"4,096 emoji", strings.Repeat("😀", 4096), 2},
		{"skin tones, off by one", "a" + strings.Repeat("👍🏽", 2048), 3},
		{"families, off by one", "a" + strings.Repeat("👨‍👩‍👧", 1000), 2},
		{"flags, off by one", "a" + strings.Repeat("🇳🇿", 2000), 2},
		{"accents", strings.Repeat("e\u0301", 3000), 2},
		{"one endless character", "e" + strings.Repeat("\u0301", 5000), 2},
		{"lines", strings.Repeat(strings.Repeat("a", 99)+"\n", 60), 2},
		{"emptiness within", "a" + strings.Repeat("\n", 9000) + "b", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			far := standin.NewTelegram(token)
			b, _ := dial(far)
			ids := succeed(t, b, chat, push.Message{FireID: "f1", Body: c.text})
			got := texts(far)
			if len(got) != c.parts || len(strings.Split(ids, ",")) != c.parts {
				t.Errorf("%d parts with the ids %s, want %d", len(got), ids, c.parts)
			}
			if c.name != "emptiness within" && strings.Join(got, "") != strings.TrimSpace(c.text) {
				t.Error("the parts do not make up the text")
			}
			for _, part := range got[1:] {
				if first := []rune(part)[0]; first >= '\U0001F3FB' && first <= '\U0001F3FF' || first == '\u200D' {
					t.Errorf("a part begins in the middle of an emoji: %q", part[:20])
				}
			}
		})
	}
}

func TestFlagsAndFamiliesStayWhole(t *testing.T) { // R:D3
	for _, whole := range []string{"👍🏽", "👨‍👩‍👧", "🇳🇿", "é", "1️⃣", "🏴󠁧󠁢󠁷󠁬󠁳󠁿", "😀"} {
		for _, shift := range []string{"", "a", "aa", "aaa"} {
			far := standin.NewTelegram(token)
			b, _ := dial(far)
			succeed(t, b, chat, push.Message{Body: shift + strings.Repeat(whole, 3000)})
			for i, part := range texts(far) {
				if i == 0 {
					part = strings.TrimPrefix(part, shift)
				}
				if strings.ReplaceAll(part, whole, "") != "" {
					t.Errorf("%s was cut", whole)
				}
			}
		}
	}
}

func TestPartsEndWithALineOrAWordIfTheyCan(t *testing.T) {
	far := standin.NewTelegram(token)
	b, _ := dial(far)
	succeed(t, b, chat, push.Message{Body: strings.Repeat("word ", 700) + "\n" + strings.Repeat("word ", 900)})
	got := texts(far)
	if !strings.HasSuffix(got[0], "\n") || !strings.HasSuffix(got[1], "word ") || len(got) != 3 {
		t.Errorf("%d parts", len(got))
	}
}

func TestAnyTextArrivesWhole(t *testing.T) { // R:D3
	piece := rapid.SampledFrom([]string{"a", " ", "\n", "\r\n", "😀", "👍🏽", "👨‍👩‍👧", "🇳🇿", "é", "\u200D", "\u0301", "\xff", "\x00"})
	rapid.Check(t, func(r *rapid.T) {
		var text strings.Builder
		for _, run := range rapid.SliceOfN(piece, 1, 8).Draw(r, "runs") {
			text.WriteString(strings.Repeat(run, rapid.IntRange(1, 3000).Draw(r, "times")))
		}
		far := standin.NewTelegram(token)
		b, _ := dial(far)
		_, err := b.Send(t.Context(), chat, push.Message{FireID: "f1", Body: text.String()})
		want := strings.Fields(strings.ToValidUTF8(text.String(), "\uFFFD"))
		if f, refused := errors.AsType[*push.Failure](err); refused && (f.Code != "no_text" || len(want) > 0) {
			r.Fatal(err)
		}
		got := texts(far)
		for _, part := range got {
			if n := len(utf16.Encode([]rune(part))); n > 4096 {
				r.Fatalf("%d units", n)
			}
		}
		if strings.Join(strings.Fields(strings.Join(got, "")), "") != strings.Join(want, "") {
			r.Fatal("something got lost")
		}
	})
}
