package pairing

import (
	"strings"
	"testing"
	"time"
)

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestACodeIsGoodOnceForTenMinutes(t *testing.T) {
	var c codes
	equal(t, "no code before any was made", c.admit("", noon), false)
	code, until := c.open(noon)
	equal(t, "until", until, noon.Add(10*time.Minute))
	equal(t, "in its last moment", c.admit(code, until.Add(-time.Nanosecond)), true)
	equal(t, "after it", c.admit(code, until), false)
	equal(t, "spent", c.spend(code, noon), true)
	equal(t, "spent twice", c.spend(code, noon), false)
	equal(t, "asked about after that", c.admit(code, noon), false)
}

func TestFiveWrongTriesVoidACode(t *testing.T) {
	var c codes
	code, _ := c.open(noon)
	wrong := strings.Repeat("b", CodeLength)
	for range CodeTries - 1 {
		equal(t, "a wrong one", c.admit(wrong, noon), false)
	}
	equal(t, "with one try left", c.admit(code, noon), true)
	equal(t, "a wrong one", c.spend(wrong, noon), false)
	equal(t, "with none left", c.admit(code, noon), false)
}

func TestAnotherCodeVoidsTheOneBefore(t *testing.T) {
	var c codes
	first, _ := c.open(noon)
	second, _ := c.open(noon)
	equal(t, "the first", c.admit(first, noon), false)
	equal(t, "the second", c.admit(second, noon), true)
}

func TestACodeIsReadHoweverItIsTyped(t *testing.T) {
	var c codes
	code, _ := c.open(noon)
	for _, typed := range []string{code, Spell(code), strings.ToUpper(Spell(code)), strings.ReplaceAll(Spell(code), "-", " ") + " "} {
		got, ok := ReadCode(typed)
		equal(t, typed, got, code)
		equal(t, typed+" is one", ok, true)
	}
	for _, typed := range []string{"", code[1:], code + "b", "a" + code[1:], strings.Repeat("é", CodeLength/2)} {
		if _, ok := ReadCode(typed); ok {
			t.Errorf("%q is taken for a code", typed)
		}
	}
}
