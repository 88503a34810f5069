package standin_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tandem/internal/standin"
)

const botToken = "123456:AA-test"

// say calls a method of the Bot API and returns the status and the answer.
func say(t *testing.T, far *standin.Telegram, token, method string, form url.Values) (int, string) {
	t.Helper()
	resp, err := (&http.Client{Transport: standin.Transport(far)}).PostForm("https://telegram.test/bot"+token+"/"+method, form)
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

func TestTelegramKeepsTheRealLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		form   url.Values
		status int
		says   string
	}{
		{"4,096 units", url.Values{"text": {strings.Repeat("😀", 2048)}}, 200, `"message_id":1`},
		{"4,097 units", url.Values{"text": {strings.Repeat("😀", 2048) + "a"}}, 400, "message is too long"},
		{"nothing", url.Values{"text": {" \n"}}, 400, "text is empty"},
		{"broken bytes", url.Values{"text": {"\xff"}}, 400, "UTF-8"},
		{"no chat", url.Values{"text": {"a"}, "chat_id": {""}}, 400, "chat_id is empty"},
		{"an entity", url.Values{"text": {"😀"}, "entities": {`[{"type":"bold","offset":0,"length":2}]`}}, 200, `"ok":true`},
		{"an entity past the end", url.Values{"text": {"😀"}, "entities": {`[{"type":"bold","offset":1,"length":2}]`}}, 400, "entity"},
		{"junk for entities", url.Values{"text": {"a"}, "entities": {`bold`}}, 400, "entities"},
	} {
		t.Run(c.name, func(t *testing.T) {
			far := standin.NewTelegram(botToken)
			if c.form.Get("chat_id") == "" && c.name != "no chat" {
				c.form.Set("chat_id", "7")
			}
			status, answer := say(t, far, botToken, "sendMessage", c.form)
			if status != c.status || !strings.Contains(answer, c.says) {
				t.Errorf("%d %s", status, answer)
			}
			if accepted := len(far.Messages()) == 1; accepted != (c.status == 200) {
				t.Errorf("accepted: %v", accepted)
			}
		})
	}
}

func TestTelegramKnowsOneBot(t *testing.T) {
	far := standin.NewTelegram(botToken)
	for _, c := range []struct {
		token, method string
		status        int
		says          string
	}{
		{botToken, "getMe", 200, `"id":123456`},
		{"123456:other", "getMe", 401, "Unauthorized"},
		{"junk", "getMe", 404, "Not Found"},
		{botToken, "fly", 404, "Not Found"},
	} {
		if status, answer := say(t, far, c.token, c.method, nil); status != c.status || !strings.Contains(answer, c.says) {
			t.Errorf("%s %s: %d %s", c.token, c.method, status, answer)
		}
	}
}

func TestTelegramFailsOnCommandAndCountsOn(t *testing.T) {
	far := standin.NewTelegram(botToken)
	send := func(chat string) (int, string) {
		return say(t, far, botToken, "sendMessage", url.Values{"chat_id": {chat}, "text": {"a"}})
	}
	far.Fail(7, standin.Blocked)
	if status, _ := send("8"); status != 200 {
		t.Errorf("another chat: %d", status)
	}
	if status, answer := send("7"); status != 403 || !strings.Contains(answer, `"error_code":403`) {
		t.Errorf("%d %s", status, answer)
	}
	if _, answer := send("7"); !strings.Contains(answer, `"message_id":2`) {
		t.Error(answer)
	}
	far.FailAlways(0, standin.Flood(51e9))
	if status, answer := send("8"); status != 429 || !strings.Contains(answer, `"retry_after":51`) {
		t.Errorf("%d %s", status, answer)
	}
	far.Heal()
	send("8")
	if far.Calls("sendMessage") != 5 || len(far.Messages()) != 3 {
		t.Errorf("%d calls, %d messages", far.Calls("sendMessage"), len(far.Messages()))
	}
}
