package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"tandem/internal/push"
)

// longestAnswer is far more than Telegram says to a message.
const longestAnswer = 1 << 20

// wire carries one call. It is no http.Client: that would follow a redirect, with
// the token in the path, and put the URL into every error.
type wire struct {
	ctx   context.Context
	base  http.RoundTripper
	token string

	status int // of the whole answer; 0: none came
	header http.Header
	err    error // why none came

	maybeTaken bool // beside err: Telegram may have taken the message
}

// errUnread ends the library's part of a call whose outcome the wire knows better.
var errUnread = errors.New("no answer of the Bot API")

// Do implements the library's HTTPClient. It hands on only what the Bot API itself said.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	resp, maybeTaken, err := push.Post(w.base, r.WithContext(w.ctx))
	if err != nil {
		w.err, w.maybeTaken = w.redact(err), maybeTaken
		return nil, errUnread
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
	if err != nil {
		w.err, w.maybeTaken = w.redact(fmt.Errorf("the answer broke off: %w", err)), true
		return nil, errUnread
	}
	w.status, w.header = resp.StatusCode, resp.Header
	var said struct {
		OK        bool `json:"ok"`
		ErrorCode int  `json:"error_code"`
	}
	err = json.Unmarshal(body, &said)
	yes := said.OK && w.status == http.StatusOK
	no := !said.OK && said.ErrorCode != 0
	if err != nil || !yes && !no {
		return nil, errUnread
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// failure is the outcome of a call in which the Bot API said neither yes nor no.
// A page of HTML, a redirect and a gateway's error are all something between us
// and Telegram: they decide nothing about the chat or the token.
func (w *wire) failure() *push.Failure {
	switch {
	case w.err == nil && w.status == 0:
		return &push.Failure{Verdict: push.Misconfig, Code: "bad_request_url", Cause: errors.New("endpoint and token make no URL")}
	case w.err != nil:
		return &push.Failure{Verdict: push.Retry, Code: codeOf(w.err), MaybeTaken: w.maybeTaken, Cause: w.err}
	case w.status == http.StatusOK:
		return &push.Failure{Verdict: push.Retry, Code: "unreadable_answer", MaybeTaken: true, Cause: errUnread}
	}
	f := &push.Failure{
		Verdict: push.Retry, Code: strconv.Itoa(w.status),
		MaybeTaken: w.status/100 == 5, // a gateway may have passed it on
		Cause:      fmt.Errorf("HTTP %d, and no answer of the Bot API", w.status),
	}
	if w.status == http.StatusTooManyRequests { // from a gateway, which speaks in headers
		seconds, _ := strconv.Atoi(w.header.Get("Retry-After"))
		f.Verdict, f.RetryAfter = push.Throttled, wait(seconds)
	}
	return f
}

// wait reads a number of seconds from the far end; an absurd one must not overflow.
func wait(seconds int) time.Duration {
	return time.Duration(min(max(seconds, 0), 24*60*60)) * time.Second
}

// judge reads a refusal by the Bot API. Its description stays out of the failure:
// it may quote the text.
func judge(e *tgbotapi.Error) *push.Failure {
	f := &push.Failure{
		Verdict: push.Retry, Code: strconv.Itoa(e.Code),
		RetryAfter: wait(e.RetryAfter),
		Cause:      fmt.Errorf("the Bot API refused with %d", e.Code),
	}
	switch e.Code {
	case http.StatusTooManyRequests:
		f.Verdict = push.Throttled
	case http.StatusForbidden: // blocked, kicked or gone: the link is broken
		f.Verdict = push.Unregistered
	case http.StatusUnauthorized, http.StatusNotFound:
		f.Verdict = push.Misconfig
	case http.StatusBadRequest:
		f.Verdict = push.Rejected
	}
	return f
}

func codeOf(err error) string {
	n, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), ok && n.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "network"
}

// redact returns err if its text is free of the token. A transport that wraps the
// URL is unwrapped; an error that quotes what the far end said is replaced, since
// a far end may repeat the path.
func (w *wire) redact(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	_, secret, _ := strings.Cut(w.token, ":")
	text := err.Error()
	if !strings.Contains(text, w.token) && (secret == "" || !strings.Contains(text, secret)) {
		return err
	}
	return errors.New("a network error that quotes the bot's token")
}
