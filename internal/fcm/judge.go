package fcm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tandem/internal/push"
)

// longestWait keeps an absurd Retry-After from overflowing.
const longestWait = 24 * time.Hour

// judge says what an answer that is no acceptance means for the next attempt.
//
// Only FCM's own word UNREGISTERED gives an address up: a bare 404 is as likely
// a wrong project. A 503 that names a wait speaks for the service rather than
// for this message, and so throttles the channel; without one the message is
// retried alone. A page of HTML is some gateway's, and decides nothing.
func judge(a answer) *push.Failure {
	if a.err != nil {
		f := unanswered(a.err)
		f.MaybeTaken = a.maybeTaken
		return f
	}
	canonical, code := a.words()
	f := &push.Failure{
		Verdict: push.Retry, Code: cmp.Or(code, canonical, strconv.Itoa(a.status)),
		RetryAfter: retryAfter(a.header, time.Now()),
		Cause:      fmt.Errorf("FCM answered %d", a.status),

		// An acceptance that cannot be read, or a gateway that FCM did not answer in time.
		MaybeTaken: a.accepted() || a.status/100 == 5 && (code+canonical == "" || a.status == http.StatusGatewayTimeout),
	}
	switch {
	case a.status == http.StatusTooManyRequests, code == "QUOTA_EXCEEDED":
		f.Verdict = push.Throttled
	case a.status == http.StatusServiceUnavailable && f.RetryAfter > 0:
		f.Verdict = push.Throttled
	case a.status/100 != 4, a.html():
		// The service, or the way to it, is unwell.
	case code == "UNREGISTERED":
		f.Verdict = push.Unregistered
	case code == "SENDER_ID_MISMATCH", code == "THIRD_PARTY_AUTH_ERROR", code == "APNS_AUTH_ERROR",
		a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		f.Verdict = push.Misconfig
	case code == "INVALID_ARGUMENT", code == "" && canonical == "INVALID_ARGUMENT":
		f.Verdict = push.Rejected
	}
	if a.accepted() {
		f.Code = "unreadable_answer"
	}
	if a.status == http.StatusNotFound && f.Verdict == push.Retry {
		f.Code = "NOT_FOUND"
	}
	return f
}

// unanswered is the failure of an attempt that got no whole HTTP answer. Err comes
// from below the client and the URL, so it names hosts at most.
func unanswered(err error) *push.Failure {
	f := &push.Failure{Verdict: push.Retry, Code: "network", Cause: err}
	if n, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && n.Timeout() {
		f.Code = "timeout"
	} else if errors.Is(err, context.Canceled) {
		f.Code = "cancelled"
	}
	return f
}

// word is the shape of a Google error name. Anything else that stands in its
// place might be a text or a token, and is not repeated.
var word = regexp.MustCompile(`^[A-Z_]{1,40}$`)

// words returns Google's canonical status and FCM's own code, each empty if the
// answer has none.
func (a answer) words() (canonical, code string) {
	var body struct {
		Error struct {
			Status  string `json:"status"`
			Details []struct {
				Type string `json:"@type"`
				Code string `json:"errorCode"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body, &body) != nil {
		return "", ""
	}
	for _, d := range body.Error.Details {
		if strings.HasSuffix(d.Type, "/google.firebase.fcm.v1.FcmError") && word.MatchString(d.Code) {
			code = d.Code
		}
	}
	if word.MatchString(body.Error.Status) {
		canonical = body.Error.Status
	}
	return canonical, code
}

func (a answer) html() bool {
	return strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("<"))
}

// retryAfter reads the header in both its forms; 0 if it is absent, past or unreadable.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	var wait time.Duration
	if seconds, err := strconv.ParseInt(v, 10, 64); err == nil {
		wait = time.Duration(min(seconds, int64(longestWait/time.Second))) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), longestWait)
}
