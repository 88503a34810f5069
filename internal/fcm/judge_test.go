package fcm_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/push"
	"tandem/internal/standin"
)

func TestVerdicts(t *testing.T) {
	cases := []struct {
		name    string
		fault   standin.Fault
		verdict push.Verdict
		code    string
		wait    time.Duration
		maybe   bool // it may have been taken
	}{
		{"R:C4 UNREGISTERED", standin.Unregistered, push.Unregistered, "UNREGISTERED", 0, false},
		{"R:C4 bare 404", standin.NotFound, push.Retry, "NOT_FOUND", 0, false},
		{"R:C4 INVALID_ARGUMENT", standin.InvalidArgument, push.Rejected, "INVALID_ARGUMENT", 0, false},
		{"R:C4 SENDER_ID_MISMATCH", standin.SenderMismatch, push.Misconfig, "SENDER_ID_MISMATCH", 0, false},
		{"R:C4 503", standin.Unavailable(0), push.Retry, "UNAVAILABLE", 0, false},
		{"R:C2 503 that names a wait", standin.Unavailable(2 * time.Minute), push.Throttled, "UNAVAILABLE", 2 * time.Minute, false},
		{"R:C2 429 that names a wait", standin.Quota(time.Minute), push.Throttled, "QUOTA_EXCEEDED", time.Minute, false},
		{"R:C2 429", standin.Quota(0), push.Throttled, "QUOTA_EXCEEDED", 0, false},
		{"500", standin.InternalError, push.Retry, "INTERNAL", 0, false},
		{"401", standin.Unauthenticated, push.Misconfig, "UNAUTHENTICATED", 0, false},
		{"403", standin.Forbidden, push.Misconfig, "PERMISSION_DENIED", 0, false},
		{"THIRD_PARTY_AUTH_ERROR", standin.ThirdPartyAuth, push.Misconfig, "THIRD_PARTY_AUTH_ERROR", 0, false},
		{"HTML 200", standin.HTML(200), push.Retry, "unreadable_answer", 0, true},
		{"HTML 400", standin.HTML(400), push.Retry, "400", 0, false},
		{"HTML 401", standin.HTML(401), push.Retry, "401", 0, false},
		{"HTML 403", standin.HTML(403), push.Retry, "403", 0, false},
		{"HTML 404", standin.HTML(404), push.Retry, "NOT_FOUND", 0, false},
		{"HTML 502", standin.HTML(502), push.Retry, "502", 0, true},
		{"a redirect", standin.Redirect("http://elsewhere.test/"), push.Retry, "307", 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			far := standin.NewFCM("standin")
			far.Fail(phone.Address, c.fault)
			channel, _, _ := dial(t, far)
			f := fail(t, channel, phone, notice)
			if f.Verdict != c.verdict || f.Code != c.code || f.RetryAfter != c.wait || f.MaybeTaken != c.maybe {
				t.Errorf("%+v", f)
			}
			if len(far.Messages()) != 0 {
				t.Error("accepted")
			}
		})
	}
}

// Answers no stand-in gives, each of which might cost an address or claim a delivery.
func TestOddAnswersDecideNothing(t *testing.T) {
	const detail = `"details": [{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "UNREGISTERED"}]`
	cases := []struct {
		name, body string
		status     int
		code       string
		maybe      bool // it may have been taken
	}{
		{"UNREGISTERED with 500", `{"error": {"status": "INTERNAL", ` + detail + `}}`, 500, "UNREGISTERED", false},
		{"UNREGISTERED in another's detail", `{"error": {"status": "NOT_FOUND", "details": [{"@type": "x/y", "errorCode": "UNREGISTERED"}]}}`, 404, "NOT_FOUND", false},
		{"UNREGISTERED as the status", `{"error": {"status": "UNREGISTERED"}}`, 404, "NOT_FOUND", false},
		{"200 without a name", `{}`, 200, "unreadable_answer", true},
		{"200 with an empty name", `{"name": ""}`, 200, "unreadable_answer", true},
		{"200 with a list", `[]`, 200, "unreadable_answer", true},
		{"200 cut within JSON", `{"name": "proj`, 200, "unreadable_answer", true},
		{"204", ``, 204, "unreadable_answer", true},
		{"504", `{"error": {"status": "DEADLINE_EXCEEDED"}}`, 504, "DEADLINE_EXCEEDED", true},
		{"502 of a proxy", `bad gateway`, 502, "502", true},
		{"400 of a proxy", `bad request`, 400, "400", false},
		{"a word that is none", `{"error": {"status": "device-token-1"}}`, 409, "409", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			channel, _, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				w.Write([]byte(c.body))
			}))
			if f := fail(t, channel, phone, notice); f.Verdict != push.Retry || f.Code != c.code || f.MaybeTaken != c.maybe {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestRetryAfterIsReadInEachForm(t *testing.T) { // R:C2
	synctest.Test(t, func(t *testing.T) {
		in90s := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
		past := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
		for header, want := range map[string]time.Duration{
			"": 0, "0": 0, "7": 7 * time.Second, "-7": 0, "soon": 0,
			in90s: 90 * time.Second, past: 0,
			"9223372036854775807": 24 * time.Hour,
		} {
			channel, _, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", header)
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			if f := fail(t, channel, phone, notice); f.Verdict != push.Throttled || f.RetryAfter != want {
				t.Errorf("Retry-After %q: %+v", header, f)
			}
		}
	})
}
