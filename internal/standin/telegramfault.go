package standin

import (
	"net/http"
	"time"
)

// Blocked is Telegram's answer when the person has blocked the bot.
var Blocked = TelegramError(http.StatusForbidden, "Forbidden: bot was blocked by the user")

// TelegramError answers with one of the Bot API's own errors.
func TelegramError(code int, description string) Fault {
	return jsonFault(code, 0, map[string]any{"ok": false, "error_code": code, "description": description})
}

// Flood is Telegram's 429, which names its wait in the body.
func Flood(after time.Duration) Fault {
	return jsonFault(http.StatusTooManyRequests, 0, map[string]any{
		"ok": false, "error_code": http.StatusTooManyRequests, "description": "Too Many Requests",
		"parameters": map[string]any{"retry_after": int(after / time.Second)},
	})
}

func telegramResult(w http.ResponseWriter, result any) {
	writeJSON(w, http.StatusOK, map[string]any{"ok": true, "result": result})
}
