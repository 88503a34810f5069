package fcm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"firebase.google.com/go/v4/messaging"

	"tandem/internal/push"
)

// Limits in bytes. FCM counts keys and values; Apple and the browsers' services
// count JSON, to which FCM adds fields of its own. Everything here is measured
// as JSON, which is never less.
const (
	payloadLimit = 4096 // of FCM, Apple and web push alike
	envelope     = 400  // what FCM adds on the way to Apple or a browser
	titleLimit   = 256
	notesLimit   = 512
	collapseID   = 64 // of Apple
)

// The bounds of a TTL: 0 would drop the message if the phone sleeps, and FCM
// keeps none for more than four weeks.
const (
	shortestTTL = time.Minute
	longestTTL  = 28 * 24 * time.Hour
)

// compose builds the message for a kind of device. The body gives way so that
// the whole fits; the app fetches the full text.
//
// Android gets data only: notification messages always collapse, and a phone
// that was off would lose all but four reminders. The app shows it under the
// tag fire_id. Apple's devices show the alert themselves, and replace one of the
// same collapse id.
func compose(to push.Target, m push.Message, now time.Time) *messaging.Message {
	data := map[string]string{"fire_id": m.FireID}
	if !m.DueAt.IsZero() {
		data["due_at"] = m.DueAt.UTC().Format(time.RFC3339)
	}
	ttl := min(max(m.TTL, shortestTTL), longestTTL).Truncate(time.Second)
	if to.Platform == "ios" {
		return &messaging.Message{Token: to.Address, Data: data, APNS: apple(m, data, now.Add(ttl))}
	}
	data["title"] = fit(m.Title, titleLimit)
	if len(m.Notes) > 0 {
		data["notes"] = fit(strings.Join(m.Notes, "\n"), notesLimit)
	}
	data["body"] = ""
	if to.Platform == "web" {
		data["body"] = fit(m.Body, payloadLimit-envelope-weigh(data))
		return &messaging.Message{Token: to.Address, Data: data, Webpush: &messaging.WebpushConfig{
			Headers: map[string]string{"TTL": strconv.Itoa(int(ttl / time.Second)), "Urgency": "high"},
		}}
	}
	data["body"] = fit(m.Body, payloadLimit-weigh(data))
	return &messaging.Message{Token: to.Address, Data: data, Android: &messaging.AndroidConfig{Priority: "high", TTL: &ttl}}
}

func apple(m push.Message, data map[string]string, expires time.Time) *messaging.APNSConfig {
	alert := &messaging.ApsAlert{Title: fit(m.Title, titleLimit)}
	if len(m.Notes) > 0 {
		alert.Body = "\n" + fit(strings.Join(m.Notes, "\n"), notesLimit)
	}
	payload := &messaging.APNSPayload{Aps: &messaging.Aps{Alert: alert, Sound: "default"}}
	room := payloadLimit - envelope - weigh(data) - weigh(payload)
	alert.Body = strings.TrimPrefix(fit(m.Body, room)+alert.Body, "\n")
	return &messaging.APNSConfig{
		Payload: payload,
		Headers: map[string]string{
			"apns-push-type":   "alert",
			"apns-priority":    "10",
			"apns-collapse-id": short(m.FireID),
			"apns-expiration":  strconv.FormatInt(expires.Unix(), 10),
		},
	}
}

// short is id as Apple takes it. A cut might give two fires one id, and one would
// hide the other.
func short(id string) string {
	if len(id) <= collapseID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// weigh counts the bytes of v as JSON.
func weigh(v any) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(v)
	return b.Len()
}

// fit cuts s between two runes so that it takes at most room bytes inside a JSON
// string, and ends what it cut with an ellipsis.
func fit(s string, room int) string {
	const ellipsis = "…"
	s = strings.ToValidUTF8(s, "\uFFFD")
	used, cut := 0, 0
	for i, r := range s {
		if used+len(ellipsis) <= room {
			cut = i
		}
		used += cost(r)
	}
	switch {
	case used <= room:
		return s
	case room < len(ellipsis):
		return ""
	}
	return s[:cut] + ellipsis
}

// cost is how many bytes encoding/json writes for r, HTML not escaped.
func cost(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < ' ', r == '\u2028', r == '\u2029':
		return 6
	}
	return utf8.RuneLen(r)
}
