// Package fcm is the push channel to phones and browsers through Firebase Cloud
// Messaging. The Firebase client retries by itself and hides what it was
// answered; here it gets exactly one post per attempt, and the verdict comes
// from the HTTP answer rather than from the client's errors.
package fcm

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	firebase "firebase.google.com/go/v4"
	"firebase.google.com/go/v4/messaging"
	"google.golang.org/api/option"

	"tandem/internal/fault"
	"tandem/internal/push"
)

// Options say which project sends, and how it logs in. Their form is for package
// config to check; what the key file holds is checked here.
type Options struct {
	CredentialsFile string            // a service account's key file; empty only beside an Endpoint
	ProjectID       string            // empty: the one the key file names
	Endpoint        string            // base URL of a stand-in, without /v1 or a slash at its end; empty: Google's
	Transport       http.RoundTripper // carries messages and logins
	Log             *slog.Logger
}

// Channel sends through one project. It holds no state but the access token.
type Channel struct {
	client *messaging.Client
}

// New reads the credentials and makes no call. What is wrong with them is a fault
// with the code fcm_config, which names the field.
func New(ctx context.Context, o Options) (*Channel, error) {
	account, project, err := o.login()
	if err != nil {
		return nil, err
	}
	wire := &once{base: o.Transport}
	if account == nil {
		o.Log.Warn("push goes out without a login, as only a stand-in takes it", "endpoint", o.Endpoint)
	} else {
		wire.tokens = newTokens(account, o.Transport)
	}
	// The client is handed a finished http.Client and so attaches no login of its
	// own: once does, since only it can tie the fetch of a token to Send's context
	// and drop a token that was refused.
	opts := []option.ClientOption{option.WithHTTPClient(&http.Client{Transport: wire})}
	if o.Endpoint != "" {
		opts = append(opts, option.WithEndpoint(o.Endpoint+"/v1"))
	}
	app, err := firebase.NewApp(ctx, &firebase.Config{ProjectID: project}, opts...)
	if err != nil {
		return nil, fault.New(fault.Invalid, "fcm_config", "%v", err)
	}
	client, err := app.Messaging(ctx)
	if err != nil {
		return nil, fault.New(fault.Invalid, "fcm_config", "%v", err)
	}
	return &Channel{client: client}, nil
}

// Name implements push.Channel.
func (*Channel) Name() string { return "fcm" }

// Send implements push.Channel: one post, and before it at most one fetch of an
// access token, both bounded by ctx. The id is FCM's, such as "projects/p/messages/0:1".
func (c *Channel) Send(ctx context.Context, to push.Target, m push.Message) (string, error) {
	a := &attempt{}
	id, err := c.client.Send(context.WithValue(ctx, attemptKey{}, a), compose(to, m, time.Now()))
	switch {
	case a.failure != nil:
		return "", a.failure
	case !a.began: // the client itself refused the message; a retry would meet the same
		return "", &push.Failure{Verdict: push.Rejected, Code: "invalid_message", Cause: err}
	case a.answer.accepted() && err == nil && id != "":
		return nameOf(id), nil
	}
	return "", judge(a.answer)
}

// longestName is well above the names that FCM gives, projects/…/messages/….
const longestName = 512

// nameOf is what is kept of the name that FCM gave a message: nothing of one that no
// row could hold. The message was taken whatever it is called.
func nameOf(id string) string {
	if len(id) > longestName || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return id
}
