package fcm_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tandem/internal/push"
	"tandem/internal/standin"
)

// deliver sends to a fresh stand-in and returns what arrived.
func deliver(t *testing.T, to push.Target, m push.Message) standin.FCMMessage {
	t.Helper()
	far := standin.NewFCM("standin")
	c, _, _ := dial(t, far)
	succeed(t, c, to, m)
	return far.Messages()[0]
}

func TestAndroidGetsDataOnly(t *testing.T) {
	m := notice
	m.Notes = []string{"late, was due 08:30", "2 earlier missed"}
	got := deliver(t, phone, m)
	if got.Notification != nil || got.Android.Notification != nil || got.Android.CollapseKey != "" {
		t.Errorf("this collapses on a phone that is off: %+v", got)
	}
	want := map[string]string{
		"fire_id": m.FireID, "title": "Reminder", "body": "water the ficus",
		"notes": "late, was due 08:30\n2 earlier missed", "due_at": "2026-05-06T08:30:00Z",
	}
	for k, v := range want {
		if got.Data[k] != v {
			t.Errorf("%s is %q, want %q", k, got.Data[k], v)
		}
	}
	if len(got.Data) != len(want) {
		t.Errorf("data %v", got.Data)
	}
	if got.Android.Priority != "high" { // R:C8
		t.Errorf("priority %q", got.Android.Priority)
	}
}

func TestTTLIsTheMessagesAndNeverZero(t *testing.T) { // R:C9
	for ttl, want := range map[time.Duration]string{
		24 * time.Hour:            "86400s",
		4 * time.Hour:             "14400s",
		90*time.Second + 1:        "90s",
		0:                         "60s",
		-time.Hour:                "60s",
		100 * 24 * time.Hour:      "2419200s",
		4*time.Hour - time.Minute: "14340s",
	} {
		m := notice
		m.TTL = ttl
		if got := deliver(t, phone, m).Android.TTL; got != want {
			t.Errorf("%v: %q, want %q", ttl, got, want)
		}
	}
}

func TestAppleGetsAnAlertThatReplacesItself(t *testing.T) { // R:C1, R:C9
	synctest.Test(t, func(t *testing.T) {
		m := notice
		m.Notes = []string{"sent again after a restart"}
		got := deliver(t, push.Target{Address: "apple-token", Platform: "ios"}, m)
		expires := strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 10)
		for header, want := range map[string]string{
			"apns-collapse-id": m.FireID, "apns-expiration": expires, "apns-priority": "10", "apns-push-type": "alert",
		} {
			if got.APNS.Headers[header] != want {
				t.Errorf("%s is %q, want %q", header, got.APNS.Headers[header], want)
			}
		}
		aps := got.APNS.Payload["aps"].(map[string]any)
		alert := aps["alert"].(map[string]any)
		if alert["title"] != "Reminder" || alert["body"] != "water the ficus\nsent again after a restart" || aps["sound"] == nil {
			t.Errorf("%v", aps)
		}
		if got.Data["fire_id"] != m.FireID {
			t.Errorf("data %v", got.Data)
		}
	})
}

func TestCollapseIDsOfLongFiresStayApart(t *testing.T) {
	apple := push.Target{Address: "apple-token", Platform: "ios"}
	far := standin.NewFCM("standin")
	c, _, _ := dial(t, far)
	for _, end := range []string{"a", "b"} {
		m := notice
		m.FireID = strings.Repeat("x", 80) + end
		succeed(t, c, apple, m)
	}
	if n := len(far.Screen(apple.Address)); n != 2 {
		t.Errorf("the phone shows %d of 2", n)
	}
}

func TestBrowserGetsData(t *testing.T) {
	got := deliver(t, push.Target{Address: "browser-token", Platform: "web"}, notice)
	if got.Notification != nil || got.Webpush.Notification != nil || got.Data["body"] != notice.Body {
		t.Errorf("%+v", got)
	}
	if got.Webpush.Headers["TTL"] != "86400" || got.Webpush.Headers["Urgency"] != "high" {
		t.Errorf("%v", got.Webpush.Headers)
	}
}

// The stand-in refuses what is over 4,096 bytes, as the real services do.
func TestAnyTextFitsAndIsCutAtARune(t *testing.T) {
	far := standin.NewFCM("standin")
	c, _, _ := dial(t, far)
	text := rapid.OneOf(
		rapid.StringN(0, 60, -1),
		rapid.Map(rapid.IntRange(0, 6000), func(n int) string { return strings.Repeat("a", n) }),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("ü", n) }),
		rapid.Map(rapid.IntRange(0, 2000), func(n int) string { return strings.Repeat("😀", n) }),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("\"\n<\u2028\x01", n) }),
		rapid.Just("broken \xff\xfe bytes"),
	)
	rapid.Check(t, func(r *rapid.T) {
		m := push.Message{
			FireID: notice.FireID, TTL: time.Hour,
			Title: text.Draw(r, "title"), Body: text.Draw(r, "body"),
			Notes: rapid.SliceOfN(text, 0, 3).Draw(r, "notes"),
		}
		to := push.Target{Address: "t", Platform: rapid.SampledFrom([]string{"android", "ios", "web", ""}).Draw(r, "platform")}
		if _, err := c.Send(t.Context(), to, m); err != nil {
			r.Fatal(err)
		}
		all := far.Messages()
		got := all[len(all)-1]
		if to.Platform == "ios" {
			return
		}
		body, cut := strings.CutSuffix(got.Data["body"], "…")
		sum := 0
		for k, v := range got.Data {
			sum += len(k) + len(v)
		}
		valid := strings.ToValidUTF8(m.Body, "\uFFFD")
		switch {
		case !utf8.ValidString(body):
			r.Fatalf("cut within a rune: %q", body)
		case cut && !strings.HasPrefix(valid, body), !cut && body != valid && got.Data["body"] != valid:
			r.Fatal("the body is not the beginning of the text")
		case sum > 4096:
			r.Fatalf("%d bytes", sum)
		}
	})
}

func TestBodyIsCutNoSoonerThanItMust(t *testing.T) {
	m := notice
	m.Body = strings.Repeat("ü", 4096)
	got := deliver(t, phone, m)
	sum := 0
	for k, v := range got.Data {
		sum += len(k) + len(v)
	}
	if sum < 4000 || sum > 4096 {
		t.Errorf("%d of 4096 bytes used", sum)
	}
	m.Body = strings.Repeat("a", 3500)
	if got := deliver(t, phone, m); got.Data["body"] != m.Body {
		t.Error("a body that fits was cut")
	}
}
