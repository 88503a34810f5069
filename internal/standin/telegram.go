package standin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// longestText is Telegram's limit for a message, in UTF-16 code units.
const longestText = 4096

// Telegram plays the Bot API for one bot.
type Telegram struct {
	token  string
	faults faults

	mu    sync.Mutex
	calls map[string]int // by method
	sent  []TelegramMessage
}

// TelegramMessage is a message that reached a chat.
type TelegramMessage struct {
	ID       int
	Chat     int64
	Text     string
	Entities []TelegramEntity
	At       time.Time
}

// TelegramEntity marks a part of a text; offset and length count UTF-16 units.
type TelegramEntity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

// NewTelegram returns a Telegram that knows one bot, by its token.
func NewTelegram(token string) *Telegram {
	return &Telegram{token: token, calls: map[string]int{}}
}

// Fail makes the next messages to a chat, or to any if it is 0, end in these
// faults, one each.
func (t *Telegram) Fail(chat int64, faults ...Fault) { t.faults.queue(chatKey(chat), faults) }

// FailAlways makes every message to a chat, or to any if it is 0, end in this
// fault until Heal.
func (t *Telegram) FailAlways(chat int64, fault Fault) { t.faults.keep(chatKey(chat), fault) }

// Heal forgets all faults.
func (t *Telegram) Heal() { t.faults.heal() }

func chatKey(chat int64) string {
	if chat == 0 {
		return ""
	}
	return strconv.FormatInt(chat, 10)
}

// Calls counts the calls of a method that arrived, those refused included.
func (t *Telegram) Calls(method string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[method]
}

// Messages returns what reached any chat, in order of arrival.
func (t *Telegram) Messages() []TelegramMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.sent)
}

// ServeHTTP implements http.Handler.
func (t *Telegram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bot, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	t.count(method)
	switch {
	case !strings.HasPrefix(r.URL.Path, "/bot"), !strings.Contains(bot, ":"):
		TelegramError(http.StatusNotFound, "Not Found").answer(w, r)
	case bot != t.token:
		TelegramError(http.StatusUnauthorized, "Unauthorized").answer(w, r)
	case method == "getMe":
		id, _, _ := strings.Cut(t.token, ":")
		number, _ := strconv.ParseInt(id, 10, 64)
		telegramResult(w, map[string]any{"id": number, "is_bot": true, "first_name": "Stand-in", "username": "standin_bot"})
	case method == "sendMessage":
		t.sendMessage(w, r)
	default:
		TelegramError(http.StatusNotFound, "Not Found").answer(w, r)
	}
}

func (t *Telegram) count(method string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[method]++
}

func (t *Telegram) sendMessage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	chat, _ := strconv.ParseInt(r.PostFormValue("chat_id"), 10, 64)
	m := TelegramMessage{Chat: chat, Text: r.PostFormValue("text")}
	if wrong := m.read(r); wrong != "" {
		TelegramError(http.StatusBadRequest, "Bad Request: "+wrong).answer(w, r)
		return
	}
	fault, failing := t.faults.next(chatKey(chat))
	if failing && !fault.accept {
		fault.answer(w, r)
		return
	}
	m = t.accept(m)
	if failing {
		fault.answer(w, r)
		return
	}
	telegramResult(w, map[string]any{
		"message_id": m.ID, "date": m.At.Unix(), "text": m.Text,
		"chat": map[string]any{"id": m.Chat, "type": "private"},
	})
}

// read takes the entities, and says in Telegram's words what is wrong with the message.
func (m *TelegramMessage) read(r *http.Request) string {
	units := len(utf16.Encode([]rune(m.Text)))
	switch {
	case m.Chat == 0:
		return "chat_id is empty"
	case !utf8.ValidString(m.Text):
		return "strings must be encoded in UTF-8"
	case strings.TrimSpace(m.Text) == "":
		return "message text is empty"
	case units > longestText:
		return "message is too long"
	case r.PostFormValue("parse_mode") != "":
		return "this stand-in takes plain text only"
	}
	if list := r.PostFormValue("entities"); list != "" {
		if json.Unmarshal([]byte(list), &m.Entities) != nil {
			return "can't parse entities"
		}
	}
	for _, e := range m.Entities {
		if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > units {
			return "entity outside of the text"
		}
	}
	return ""
}

func (t *Telegram) accept(m TelegramMessage) TelegramMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.ID, m.At = len(t.sent)+1, time.Now()
	t.sent = append(t.sent, m)
	return m
}
