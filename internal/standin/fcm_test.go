package standin_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/internal/standin"
)

const sendPath = "http://fcm.test/v1/projects/standin/messages:send"

// sendRaw posts a body to FCM and returns the status and the answer.
func sendRaw(t *testing.T, far http.Handler, url, body string) (int, string) {
	t.Helper()
	resp, err := (&http.Client{Transport: standin.Transport(far)}).Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

func message(token, fireID string) string {
	return fmt.Sprintf(`{"message": {"token": %q, "data": {"fire_id": %q}, "android": {"ttl": "60s", "priority": "high"}}}`, token, fireID)
}

func TestFCMKeepsTheRealLimits(t *testing.T) {
	refused := map[string]string{
		"no JSON":             `hello`,
		"no token":            `{"message": {"data": {}}}`,
		"a topic":             `{"message": {"token": "t", "topic": "news"}}`,
		"an unknown field":    `{"message": {"token": "t", "sound": "loud"}}`,
		"a number as data":    `{"message": {"token": "t", "data": {"n": 1}}}`,
		"a reserved key":      `{"message": {"token": "t", "data": {"google.x": "1"}}}`,
		"too much data":       `{"message": {"token": "t", "data": {"k": "` + strings.Repeat("a", 4096) + `"}}}`,
		"a ttl in fractions":  `{"message": {"token": "t", "android": {"ttl": "1.5s"}}}`,
		"a ttl of five weeks": `{"message": {"token": "t", "android": {"ttl": "3024000s"}}}`,
		"a made-up priority":  `{"message": {"token": "t", "android": {"priority": "urgent"}}}`,
		"a long collapse id":  `{"message": {"token": "t", "apns": {"headers": {"apns-collapse-id": "` + strings.Repeat("a", 65) + `"}}}}`,
		"too much for Apple":  `{"message": {"token": "t", "apns": {"payload": {"aps": {"alert": "` + strings.Repeat("a", 4096) + `"}}}}}`,
	}
	for name, body := range refused {
		t.Run(name, func(t *testing.T) {
			far := standin.NewFCM("standin")
			if status, answer := sendRaw(t, far, sendPath, body); status != 400 || !strings.Contains(answer, "INVALID_ARGUMENT") {
				t.Errorf("%d %s", status, answer)
			}
			if len(far.Messages()) != 0 || far.Posts("") != 1 {
				t.Errorf("%d accepted, %d posts", len(far.Messages()), far.Posts(""))
			}
		})
	}
	far := standin.NewFCM("standin")
	if status, answer := sendRaw(t, far, strings.Replace(sendPath, "standin", "other", 1), message("t", "f")); status != 404 || strings.Contains(answer, "FcmError") {
		t.Errorf("another project: %d %s", status, answer)
	}
	if status, _ := sendRaw(t, far, sendPath, `{"validate_only": true, "message": {"token": "t"}}`); status != 200 || len(far.Messages()) != 0 {
		t.Errorf("a dry run: %d, %d accepted", status, len(far.Messages()))
	}
}

func TestFCMFailsOnCommand(t *testing.T) {
	far := standin.NewFCM("standin")
	status := func(token string) int {
		s, _ := sendRaw(t, far, sendPath, message(token, "f"))
		return s
	}
	far.Fail("a", standin.InternalError, standin.Quota(time.Minute))
	far.Fail("", standin.HTML(502))
	far.FailAlways("b", standin.Unregistered)
	for i, want := range []struct {
		token  string
		status int
	}{{"a", 500}, {"c", 502}, {"a", 429}, {"a", 200}, {"b", 404}, {"b", 404}, {"c", 200}} {
		if got := status(want.token); got != want.status {
			t.Errorf("call %d, to %s: %d, want %d", i, want.token, got, want.status)
		}
	}
	far.Heal()
	if got := status("b"); got != 200 {
		t.Errorf("healed: %d", got)
	}
	if far.Posts("a") != 3 || far.Posts("") != 8 || len(far.Messages()) != 3 {
		t.Errorf("%d, %d, %d", far.Posts("a"), far.Posts(""), len(far.Messages()))
	}
}

func TestScreenShowsTheNewestOfEachFire(t *testing.T) {
	far := standin.NewFCM("standin")
	for _, m := range [][2]string{{"t", "f1"}, {"t", "f2"}, {"other", "f1"}, {"t", "f1"}} {
		sendRaw(t, far, sendPath, message(m[0], m[1]))
	}
	var shown []string
	for _, m := range far.Screen("t") {
		shown = append(shown, m.Data["fire_id"]+" "+m.Name)
	}
	want := "f2 projects/standin/messages/0:2, f1 projects/standin/messages/0:4"
	if got := strings.Join(shown, ", "); got != want {
		t.Errorf("shows %s, want %s", got, want)
	}
}
