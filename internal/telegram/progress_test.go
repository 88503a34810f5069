package telegram_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/internal/push"
	"tandem/internal/standin"
)

// long is a notice of three parts.
var long = push.Message{FireID: "f1", Body: strings.Repeat("a", 4096) + strings.Repeat("b", 4096) + "c"}

// failAt makes the nth call to far end in fault.
func failAt(far *standin.Telegram, n int, fault standin.Fault) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if far.Calls("sendMessage") == n-1 {
			far.Fail(0, fault)
		}
		far.ServeHTTP(w, r)
	})
}

// initials is what reached the chats, each part by its first letter.
func initials(far *standin.Telegram) string {
	var s strings.Builder
	for _, text := range texts(far) {
		s.WriteString(text[:1])
	}
	return s.String()
}

func TestFloodControlDoesNotRepeatTheFirstParts(t *testing.T) { // R:D3, R:D11
	far := standin.NewTelegram(token)
	calls := 0
	b, _ := dial(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls > 0 && calls%2 == 0 { // one message, then a refusal, and so on
			far.Fail(0, standin.Flood(time.Second))
		}
		far.ServeHTTP(w, r)
	}))
	for range 2 {
		if f := fail(t, b, chat, long); f.Verdict != push.Throttled {
			t.Fatalf("%+v", f)
		}
	}
	late := long
	late.Notes = []string{"late, was due 08:30"} // a note at the end repeats no earlier part
	if ids := succeed(t, b, chat, late); ids != "1,2,3" {
		t.Errorf("ids %s", ids)
	}
	if got := texts(far); initials(far) != "abc" || got[2] != "c\nlate, was due 08:30" {
		t.Errorf("%s reached the chat", initials(far))
	}
	calls = -10
	succeed(t, b, chat, late) // as for a nag: the same words for the same fire
	if initials(far) != "abcabc" {
		t.Errorf("%s reached the chat; a finished fire still holds parts back", initials(far))
	}
}

func TestFailedPartIsRetriedAndNothingIsLost(t *testing.T) { // R:D3
	for _, c := range []struct {
		name  string
		fault standin.Fault
		want  string
	}{
		{"500", standin.TelegramError(500, "Internal"), "abc"},
		{"the answer lost", standin.AcceptThenCut, "abbc"}, // it may have been lost on the way there
		{"HTML 502", standin.HTML(502), "abc"},
		{"refused for good", standin.TelegramError(400, "Bad Request"), "aabc"}, // whoever tries again starts again
	} {
		t.Run(c.name, func(t *testing.T) {
			far := standin.NewTelegram(token)
			b, _ := dial(failAt(far, 2, c.fault))
			fail(t, b, chat, long)
			succeed(t, b, chat, long)
			if got := initials(far); got != c.want {
				t.Errorf("%s reached the chat, want %s", got, c.want)
			}
		})
	}
}

func TestRestartRepeatsAnUnfinishedTextFromItsBeginning(t *testing.T) { // R:D3, killed midway
	far := standin.NewTelegram(token)
	b, _ := dial(failAt(far, 3, standin.Blocked))
	fail(t, b, chat, long)
	b, _ = dial(far)
	succeed(t, b, chat, long)
	if got := initials(far); got != "ababc" {
		t.Errorf("%s reached the chat", got)
	}
}

func TestProgressIsPerChatAndFire(t *testing.T) {
	far := standin.NewTelegram(token)
	b, _ := dial(failAt(far, 2, standin.Flood(time.Second)))
	fail(t, b, chat, long)
	other := long
	other.FireID = "f2"
	succeed(t, b, chat, other)
	succeed(t, b, push.Target{Address: "43"}, long)
	if got := initials(far); got != "aabcabc" {
		t.Errorf("%s reached the chats", got)
	}
}

func TestUnfinishedFiresGoOnSideBySide(t *testing.T) {
	far := standin.NewTelegram(token)
	b, _ := dial(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := far.Calls("sendMessage"); n == 1 || n == 3 {
			far.Fail(0, standin.Flood(time.Second))
		}
		far.ServeHTTP(w, r)
	}))
	other := long
	other.FireID = "f2"
	fail(t, b, chat, long)
	fail(t, b, chat, other)
	succeed(t, b, chat, long)
	succeed(t, b, chat, other)
	if got := initials(far); got != "aabcbc" {
		t.Errorf("%s reached the chat", got)
	}
}

func TestOtherWordsForTheSameFireAreAllSent(t *testing.T) {
	far := standin.NewTelegram(token)
	b, _ := dial(failAt(far, 2, standin.Flood(time.Second)))
	fail(t, b, chat, long)
	succeed(t, b, chat, push.Message{FireID: "f1", Body: "done elsewhere"})
	if got := initials(far); got != "ad" {
		t.Errorf("%s reached the chat", got)
	}
}
