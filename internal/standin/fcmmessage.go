package standin

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// FCMMessage is a message as it arrived at FCM.
type FCMMessage struct {
	Name string    `json:"-"` // the id FCM gave it
	At   time.Time `json:"-"` // when it was accepted

	Token        string            `json:"token"`
	Topic        string            `json:"topic"`
	Condition    string            `json:"condition"`
	Data         map[string]string `json:"data"`
	Notification json.RawMessage   `json:"notification"`
	Android      FCMAndroid        `json:"android"`
	APNS         FCMApple          `json:"apns"`
	Webpush      FCMWeb            `json:"webpush"`
	Options      json.RawMessage   `json:"fcm_options"`
}

// FCMAndroid is the part for Android. TTL is as on the wire, such as "86400s".
type FCMAndroid struct {
	CollapseKey  string            `json:"collapse_key"`
	Priority     string            `json:"priority"`
	TTL          string            `json:"ttl"`
	Package      string            `json:"restricted_package_name"`
	Data         map[string]string `json:"data"`
	Notification json.RawMessage   `json:"notification"`
	Options      json.RawMessage   `json:"fcm_options"`
	DirectBootOK bool              `json:"direct_boot_ok"`
}

// FCMApple is the part for Apple's devices.
type FCMApple struct {
	Headers      map[string]string `json:"headers"`
	Payload      map[string]any    `json:"payload"`
	Options      json.RawMessage   `json:"fcm_options"`
	LiveActivity string            `json:"live_activity_token"`
}

// FCMWeb is the part for browsers.
type FCMWeb struct {
	Headers      map[string]string `json:"headers"`
	Data         map[string]string `json:"data"`
	Notification json.RawMessage   `json:"notification"`
	Options      json.RawMessage   `json:"fcm_options"`
}

// Limits of the real service: bytes of payload, bytes of Apple's collapse id,
// and how long a message may wait for its phone.
const (
	fcmPayload  = 4096
	apnsPayload = 4096
	collapseID  = 64
	longestTTL  = 28 * 24 * 60 * 60
)

// tag is what a second message must repeat to take the first one's place.
func (m FCMMessage) tag() string {
	for _, tag := range []string{m.APNS.Headers["apns-collapse-id"], m.Data["fire_id"]} {
		if tag != "" {
			return tag
		}
	}
	return m.Name
}

// parseFCM reads a send's body; wrong names the field that the real service
// would refuse, and is empty if there is none.
func parseFCM(body []byte) (m FCMMessage, dry bool, wrong string) {
	var request struct {
		DryRun  bool       `json:"validate_only"`
		Message FCMMessage `json:"message"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		return request.Message, request.DryRun, "message"
	}
	return request.Message, request.DryRun, request.Message.wrong()
}

func (m FCMMessage) wrong() string {
	switch {
	case m.Token == "" || m.Topic != "" || m.Condition != "":
		return "message.token"
	case reservedKey(m.Data), weigh(m.Data) > fcmPayload:
		return "message.data"
	case !validTTL(m.Android.TTL):
		return "message.android.ttl"
	case m.Android.Priority != "" && m.Android.Priority != "high" && m.Android.Priority != "normal":
		return "message.android.priority"
	case len(m.APNS.Headers["apns-collapse-id"]) > collapseID:
		return "message.apns.headers"
	case m.APNS.Payload != nil && weighJSON(m.APNS.Payload)+weighJSON(m.Data) > apnsPayload:
		return "message.apns.payload"
	}
	return ""
}

// weigh counts as FCM says it does: keys and values.
func weigh(data map[string]string) int {
	sum := 0
	for k, v := range data {
		sum += len(k) + len(v)
	}
	return sum
}

// weighJSON counts what Apple gets, where < is one byte.
func weighJSON(v any) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(v)
	return b.Len() - len("\n")
}

func reservedKey(data map[string]string) bool {
	for k := range data {
		if k == "from" || k == "message_type" || strings.HasPrefix(k, "gcm") || strings.HasPrefix(k, "google") {
			return true
		}
	}
	return false
}

func validTTL(ttl string) bool {
	seconds, isDuration := strings.CutSuffix(ttl, "s")
	n, err := strconv.Atoi(seconds)
	return ttl == "" || isDuration && err == nil && n >= 0 && n <= longestTTL
}
