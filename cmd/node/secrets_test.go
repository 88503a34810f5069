package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/standin"
	"tandem/internal/when"
)

// canaries are texts that no verb may say and no node may log, whatever goes wrong.
var canaries = map[string]string{
	"the peer secret":     "canary-of-the-peer-secret-0123456789-0123456789",
	"the bot's token":     "424242:canary-of-the-bot-0123456789",
	"the bot's secret":    "canary-of-the-bot-0123456789",
	"a password":          "canary of a password",
	"a wrong password":    "canary of a wrong password",
	"a device token":      "canary-of-a-device-token",
	"a reminder":          "canary of a reminder",
	"a todo":              "canary of a todo",
	"a private key":       "canary-of-a-private-key",
	"a secret misspelled": "canary-too-short",
}

// silent checks that none of the canaries is in what somebody may read.
func silent(t testing.TB, where, text string) {
	t.Helper()
	for what, canary := range canaries {
		if strings.Contains(text, canary) {
			t.Errorf("%s holds %s:\n%s", where, what, text)
		}
	}
}

func TestNoSecretAndNothingPrivateIsSaidOrLogged(t *testing.T) {
	t.Parallel()
	w := barePair(t, t.TempDir())
	w.telegram = standin.NewTelegram(canaries["the bot's token"])
	for _, p := range []*process{w.home, w.cloud} {
		p.env = append(p.env, "TANDEM_PEER_TOKEN_FILE=", "TANDEM_PEER_TOKEN="+canaries["the peer secret"],
			"TANDEM_PUSH_TELEGRAM_TOKEN="+canaries["the bot's token"], "TANDEM_PUSH_TELEGRAM_ENDPOINT="+serve(t, w.telegram))
	}
	run := func(p *process, in string, args ...string) {
		t.Helper()
		s := verb(t, p.env, in, args...)
		silent(t, strings.Join(args, " "), s.out+s.err)
	}
	w.cloud.start()
	run(w.cloud, canaries["a password"]+"\n", "init", "--email", demoEmail, "--password-stdin")
	run(w.cloud, canaries["a password"]+"\n", "init", "--email", demoEmail, "--password-stdin")
	w.home.start()
	login := func(password string) (token string) {
		var session struct{ Token string }
		eventually(t, func() error {
			err := w.home.call(t.Context(), http.MethodPost, "/v1/auth/login", map[string]string{"email": demoEmail, "password": password}, &session)
			if password == canaries["a wrong password"] && err != nil && strings.Contains(err.Error(), "wrong_credentials") {
				return nil
			}
			return err
		})
		return session.Token
	}
	w.home.token = login(canaries["a password"])
	login(canaries["a wrong password"])

	// Everything fails in every way there is.
	w.fcm.Fail("", standin.AcceptThenCut, standin.InvalidArgument, standin.Unregistered, standin.SenderMismatch)
	w.fcm.FailAlways("", standin.HTML(502))
	w.telegram.Fail(0, standin.AcceptThenTear, standin.HTML(502), standin.Redirect("http://127.0.0.1:1/elsewhere"), standin.Blocked)
	for i := range 4 {
		phone := map[string]string{"token": fmt.Sprint(canaries["a device token"], i), "platform": "android", "device_id": fmt.Sprint("ada-", i)}
		must(t, w.home.call(t.Context(), http.MethodPost, "/v1/push-tokens", phone, nil))
		body := map[string]string{"content": canaries["a reminder"], "trigger_at": when.Format(time.Now().Add(1500 * time.Millisecond))}
		must(t, w.home.call(t.Context(), http.MethodPost, "/v1/scheduled-messages", body, nil))
	}
	must(t, w.home.call(t.Context(), http.MethodPost, "/v1/todos", map[string]string{"content": canaries["a todo"]}, nil))
	eventually(t, func() error {
		if n := w.telegram.Calls("sendMessage"); n < 4 {
			return fmt.Errorf("Telegram was asked %d times", n)
		}
		return nil
	})
	w.link.cut()
	for _, p := range []*process{w.home, w.cloud} {
		run(p, "", "doctor")
		run(p, "", "doctor", "--json")
		run(p, "", "backup", filepath.Join(t.TempDir(), "copy"))
		run(p, "", "serve")
		run(p, "", "version")
		for _, v := range []string{"", "serve", "init", "demo", "next", "backup", "doctor", "version"} {
			run(p, "", strings.Fields(v+" --help")...)
		}
	}
	w.home.terminates()
	w.cloud.terminates()
	for _, p := range []*process{w.home, w.cloud} {
		if said := string(p.said()); !strings.Contains(said, "is ready at") {
			t.Errorf("the log holds %q", said)
		} else {
			silent(t, "the log", said)
			if strings.Contains(said, w.home.token) {
				t.Error("the log holds a session's token")
			}
		}
		run(p, "", "doctor") // of files without a node
	}
}

// A value that is refused may be a secret in the wrong place.
func TestNoFaultOfTheConfigurationRepeatsASecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	key, err := json.Marshal(map[string]string{"type": "service_account", "project_id": "p", "client_email": "a@b", "private_key": canaries["a private key"]})
	must(t, err)
	env, _ := alone(t)
	for name, more := range map[string][]string{
		"a bad key file":   {"TANDEM_PUSH_FCM_CREDENTIALS_FILE=" + write("key.json", string(key))},
		"a short secret":   {"TANDEM_PEER_NAME=cloud", "TANDEM_PEER_URL=http://127.0.0.1:1", "TANDEM_PEER_TOKEN=" + canaries["a secret misspelled"]},
		"in a file":        {"TANDEM_PEER_NAME=cloud", "TANDEM_PEER_URL=http://127.0.0.1:1", "TANDEM_PEER_TOKEN_FILE=" + write("peer.token", canaries["a secret misspelled"])},
		"in the wrong key": {"TANDEM_HTTP_LISTEN=" + canaries["the peer secret"], "TANDEM_PEER_URL=" + canaries["the bot's token"], "TANDEM_SCHEDULER_MODE=" + canaries["a secret misspelled"]},
		"as a chat":        {"TANDEM_PUSH_TELEGRAM_CHAT_ID=" + canaries["the bot's token"]},
		"in an endpoint":   {"TANDEM_PUSH_TELEGRAM_ENDPOINT=" + canaries["the bot's token"]},
	} {
		for _, args := range [][]string{{"serve"}, {"doctor"}, {"init", "--email", demoEmail, "--password-stdin"}} {
			s := verb(t, append(env, more...), canaries["a password"], args...)
			silent(t, name+", "+args[0], s.out+s.err)
		}
	}
	file := write("node.yaml", "node: {name: alone, origin: 0, data: x}\npeer: {token:"+canaries["a secret misspelled"]+"}\npush: {telegram: {token: *"+canaries["a secret misspelled"]+"}}\n")
	s := verb(t, nil, "", "serve", "--config", file)
	s.exits(t, exitConfig)
	silent(t, "the fault", s.err)
}
