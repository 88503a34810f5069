package fcm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"tandem/internal/push"
)

// tokenTimeout bounds the fetch of an access token, so that a login that hangs
// leaves a Send with a longer deadline time to say so.
const tokenTimeout = 10 * time.Second

// tokens holds the access token. The library's own source ignores the context
// of whoever waits for it, and keeps a token that was refused until it expires.
type tokens struct {
	account *jwt.Config
	base    http.RoundTripper

	turn chan struct{} // holds one element while someone looks at held or fetches
	held *oauth2.Token
}

func newTokens(account *jwt.Config, base http.RoundTripper) *tokens {
	return &tokens{account: account, base: base, turn: make(chan struct{}, 1)}
}

// take returns a token that is good for some seconds at least, and fetches one
// if need be. Only one caller fetches; the others wait no longer than their ctx.
func (t *tokens) take(ctx context.Context) (*oauth2.Token, *push.Failure) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, unanswered(ctx.Err())
	}
	if t.held.Valid() {
		return t.held, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	wire := &bound{ctx: ctx, base: t.base}
	client := &http.Client{Transport: wire, CheckRedirect: stay}
	token, err := t.account.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)).Token()
	if err != nil || !token.Valid() {
		return nil, judgeLogin(wire)
	}
	t.held = token
	return token, nil
}

// stay shows a redirect as the answer it is: a login is for the host the key file names.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// drop forgets a token that FCM has refused, so that the next attempt logs in
// anew. If ctx ends first the token is kept, and is refused once more.
func (t *tokens) drop(ctx context.Context, refused *oauth2.Token) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return
	}
	if t.held == refused {
		t.held = nil
	}
}

// oauthWord is the shape of an error name such as invalid_grant.
var oauthWord = regexp.MustCompile(`^[a-z_]{1,40}$`)

// judgeLogin says what a login that gave no token means for the message. The
// endpoint's prose stays out: it may quote the assertion.
func judgeLogin(wire *bound) *push.Failure {
	a := wire.answer
	if !wire.began {
		return &push.Failure{Verdict: push.Misconfig, Code: "token_key", Cause: fmt.Errorf("the service account's key cannot sign")}
	}
	if a.err != nil {
		return unanswered(fmt.Errorf("access token: %w", a.err))
	}
	var said struct {
		Error string `json:"error"`
	}
	json.Unmarshal(a.body, &said)
	if !oauthWord.MatchString(said.Error) {
		said.Error = "without a reason"
	}
	f := &push.Failure{
		Verdict: push.Retry, Code: "token_" + strconv.Itoa(a.status),
		RetryAfter: retryAfter(a.header, time.Now()),
		Cause:      fmt.Errorf("the token endpoint answered %d %s", a.status, said.Error),
	}
	switch {
	case a.status == http.StatusTooManyRequests:
		f.Verdict = push.Throttled
	case a.status/100 == 4 && !a.html():
		f.Verdict, f.Code = push.Misconfig, "token_refused"
	}
	return f
}
