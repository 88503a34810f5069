package users

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAnAddressHasOneSpelling(t *testing.T) {
	for typed, want := range map[string]string{
		"  Ada@Example.ORG\n":      "ada@example.org",
		"jose\u0301@example.org":   "jos\u00e9@example.org",
		"\u212Aelvin@example.org":  "kelvin@example.org", // the Kelvin sign
		"ÄRGER@EXAMPLE.ORG":        "ärger@example.org",
		"o'neil+tag@mail.x.co":     "o'neil+tag@mail.x.co",
		"root@localhost":           "root@localhost",
		"\u202fnarrow@example.org": "narrow@example.org",
	} {
		got, ok := normalEmail(typed)
		if !ok || got != want {
			t.Errorf("%q: got %q, %v, want %q", typed, got, ok, want)
		}
	}
}

func TestWhatCannotBeAnAddressIsRefused(t *testing.T) {
	for _, typed := range []string{
		"", "ada", "@example.org", "ada@", "ada@b@c", "a da@example.org", "ada@exam\x00ple.org",
		"ada@exam\xffple.org", "Ada <ada@example.org>", "ada@example.org,bob@example.org x", "zero\u200bwidth@example.org",
		strings.Repeat("a", 250) + "@b.cd",
	} {
		if got, ok := normalEmail(typed); ok {
			t.Errorf("%q was taken as %q", typed, got)
		}
	}
}

func TestSpellingAnAddressTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once, ok := normalEmail(rapid.String().Draw(t, "name") + "@" + rapid.String().Draw(t, "domain"))
		if !ok {
			return
		}
		if twice, ok := normalEmail(once); !ok || twice != once {
			t.Fatalf("%q became %q, %v", once, twice, ok)
		}
	})
	for r := rune(0); r <= 0x1ffff; r++ { // every letter that folds or composes, one by one
		once, ok := normalEmail(string(r) + "@example.org")
		if !ok {
			continue
		}
		if twice, ok := normalEmail(once); !ok || twice != once {
			t.Errorf("%U: %q became %q, %v", r, once, twice, ok)
		}
	}
}

func TestAPasswordIsCountedInCharacters(t *testing.T) {
	for typed, want := range map[string]bool{
		"1234567":                         false,
		"12345678":                        true,
		"密码密码密码密":                         false,
		"密码密码密码密码":                        true,
		strings.Repeat("e\u0301", 8):      true,
		strings.Repeat("e\u0301", 4):      false, // eight code points, four characters
		strings.Repeat("密", 256):          true,
		strings.Repeat("密", 257):          false,
		"        ":                        true, // spaces are characters
		"1234\x005678":                    false,
		"1234\xff5678":                    false,
		strings.Repeat("e\u0301", 256):    true,
		strings.Repeat("x", 8) + "\u200d": true,
	} {
		if got := passwordFits(typed); got != want {
			t.Errorf("%q: got %v", typed, got)
		}
	}
}
