package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"
)

// Whatever text is written as JSON, in any spelling of its characters, is read as it
// was meant; one character spoiled in it is found.
func TestEachSpellingOfATextIsReadAsItWasMeant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runes := rapid.SliceOfN(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\\\"u0dD8/\n\u2028\ufffd😀"))), 0, 20).Draw(t, "runes")
		var b bytes.Buffer
		b.WriteString(`{"a": ["`)
		for _, r := range runes {
			spell(&b, r, rapid.IntRange(0, 2).Draw(t, "how"))
		}
		at := b.Len()
		b.WriteString(`", {}]}`)
		meant := string(runes)
		err := checkJSON(b.Bytes(), 5)
		if strings.Contains(meant, "\x00") {
			if err == nil {
				t.Fatalf("a NUL in %q", b.Bytes())
			}
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", b.Bytes(), err)
		}
		var got map[string][]any
		if err := unmarshal(b.Bytes(), &got); err != nil || got["a"][0] != meant {
			t.Fatalf("%q: %v %v, want %q", b.Bytes(), got, err, meant)
		}
		for _, bad := range []string{`\ud800`, `\udfff`, `\u0000`, "\xff", "\x01", `\x`} {
			spoiled := b.String()[:at] + bad + b.String()[at:]
			if checkJSON([]byte(spoiled), 5) == nil {
				t.Fatalf("%q passes", spoiled)
			}
		}
	})
}

// spell writes a character as it is, or escaped in one of two ways.
func spell(b *bytes.Buffer, r rune, how int) {
	plain, _ := json.Marshal(string(r))
	if how == 0 || r == 0 {
		b.Write(bytes.Trim(plain, `"`)[:len(plain)-2])
		return
	}
	units := []rune{r}
	if r > 0xffff {
		r -= 0x10000
		units = []rune{0xd800 + r>>10, 0xdc00 + r&0x3ff}
	}
	for _, u := range units {
		const digits = "0123456789abcdef"
		hex := string([]byte{digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15]})
		if how == 2 {
			hex = strings.ToUpper(hex)
		}
		b.WriteString(`\u` + hex)
	}
}

// worked is the CPU time of this process, which a busy machine does not stretch.
func worked() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano())
}

// The work is in proportion to the body, whatever is in it.
func TestABodyMadeToKeepTheNodeBusy(t *testing.T) {
	var names strings.Builder
	for i := range maxNames - 1 {
		names.WriteString(`"` + strings.Repeat("x", 5000) + strconv.Itoa(i) + `":0,`)
	}
	for name, body := range map[string]string{
		"names":   `{` + names.String() + `"a":0}`,
		"lists":   `[` + strings.Repeat(`[],`, maxBody/3) + `[]]`,
		"escapes": `"` + strings.Repeat(`\ud83d\ude00`, maxBody/12) + `"`,
		"numbers": `[` + strings.Repeat(`1,`, maxBody/2) + `1]`,
		"a digit": strings.Repeat(`1`, maxBody),
	} {
		start := worked()
		if err := checkJSON([]byte(body), bodyDepth); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := worked() - start; took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	if err := checkJSON([]byte(`{`+names.String()+`"a":0, "b":0}`), bodyDepth); err == nil {
		t.Error("more names than one object may have")
	}
}

func TestDepthIsCounted(t *testing.T) {
	for depth := range 4 {
		for body, is := range map[string]int{`1`: 0, `[]`: 1, `{"a": 1}`: 1, `[{}]`: 2, `{"a": {"b": []}}`: 3, `[1, [2], 3]`: 2} {
			equal(t, body, checkJSON([]byte(body), depth) == nil, is <= depth)
		}
	}
}

// A caller that has gone is no bug: huma panics for an error of the writer.
func TestAnAnswerToNobody(t *testing.T) {
	var none bytes.Buffer
	if err := format.Marshal(broken{}, map[string]int{"a": 1}); err != nil {
		t.Errorf("a caller that has gone is an error: %v", err)
	}
	if err := format.Marshal(&none, func() {}); err == nil {
		t.Error("what cannot be written is no error")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, iotest.ErrTimeout }
