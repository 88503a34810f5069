package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/config"
	"tandem/internal/pairing"
)

const newPassword = "another password"

func TestANodeThatForgetsItsPeerLetsItInNoMore(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed midway: ", killed), func(t *testing.T) {
			inPair(t, func(t *testing.T, b *bubble) {
				secret, rows := strings.TrimSpace(secretOf(b.cloud)), b.alike()
				forget := func() {
					survived(func() {
						_, err := b.cloud.node.unpair(t.Context(), struct{}{})
						if b.cloud.isOn() {
							must(t, err)
						}
					})
				}
				if killed {
					b.cloud.diesAt("unpair.locked", forget)
					equal(t, "the secret opens, cut off", b.opens(secret), false)
				}
				for range 2 { // done twice, it is done once
					forget()
					equal(t, "the secret opens", b.opens(secret), false)
					equal(t, "what the cloud has read of home", fmt.Sprint(b.cloud.rows(`SELECT peer FROM sync_cursors`)), "[]")
				}
				b.home.add("alone")
				settle(time.Minute)
				equal(t, "home is told", b.home.node.client.Status().Code, "peer_refused")
				equal(t, "the cloud keeps all", fmt.Sprint(b.cloud.rows(tables)), fmt.Sprint(rows))
				must(t, b.pairs("nobody is asked"))
				healed()
				b.login()
				equal(t, "after pairing again", strings.Contains(b.cloud.todos(), "alone"), true)
				b.alike()
				b.quiet()
			})
		})
	}
}

// The cloud is gone for good: home becomes where accounts live, with all that they are.
func TestHomeGoesOnAloneWhenTheCloudIsGoneForGood(t *testing.T) {
	inPair(t, func(t *testing.T, b *bubble) {
		want := b.home.todos()
		b.cloud.kill()
		b.home.refusesAccounts(t)
		done, err := b.home.node.unpair(t.Context(), struct{}{})
		must(t, err)
		equal(t, "what is said", done, pairing.Unpaired{Peer: "cloud", Home: true})
		b.home.off()
		b.home.config.Peer = config.Peer{}
		b.home.on()
		for _, as := range [][2]string{{demoEmail, demoPassword}, {bob, homesPassword}, {cyn, demoPassword}} {
			if b.home.enter(as[0], as[1]) == "" {
				t.Errorf("%s cannot log in", as[0])
			}
		}
		b.home.login()
		equal(t, "Ada's todos", b.home.todos(), want)
		generation, err := b.home.node.users.Generation(t.Context())
		must(t, err)
		_, err = b.home.node.userFor(t.Context(), userRequest{"password", cyn, newPassword})
		must(t, err)
		if b.home.enter(cyn, newPassword) == "" || b.home.enter(cyn, demoPassword) != "" {
			t.Error("home does not have the say over accounts")
		}
		now, err := b.home.node.users.Generation(t.Context())
		must(t, err)
		equal(t, "its own generation", strings.Split(now, "/")[0] == strings.Split(generation, "/")[0] && now != generation, true)
		b.home.register("new-phone")
		b.home.remind(map[string]any{"content": "feed the cat", "trigger_at": "2000-01-01T00:30:00Z"})
		settle(time.Hour)
		if !strings.Contains(b.rang(), "00:30:00 new-phone: feed the cat") {
			t.Errorf("it rang %s", b.rang())
		}
	})
}

// refusesAccounts checks that accounts live elsewhere.
func (m *machine) refusesAccounts(t *testing.T) {
	t.Helper()
	if _, err := m.node.userFor(t.Context(), userRequest{"password", cyn, newPassword}); err == nil || !strings.Contains(err.Error(), "accounts_live_elsewhere") {
		t.Errorf("a change to accounts at %s: %v", m.config.Node.Name, err)
	}
}

// lost has the machine's disk die, and another one of its name begin from nothing.
func (m *machine) lost() {
	m.Helper()
	m.kill()
	must(m, os.RemoveAll(m.config.Node.Data))
	must(m, os.Remove(m.config.Peer.TokenFile))
	m.on()
}

// A new cloud in the place of a dead one has by pairing all that home has: accounts,
// rows, phones.
func TestADeadCloudIsReplaced(t *testing.T) {
	for _, initialised := range []bool{false, true} {
		t.Run(fmt.Sprint("it has an admin already: ", initialised), func(t *testing.T) {
			inPair(t, func(t *testing.T, b *bubble) {
				b.home.do(http.MethodDelete, "/v1/todos/"+b.home.add("deleted"), nil, nil)
				settle(time.Second)
				want := b.home.contents()
				b.cloud.lost()
				password := demoPassword
				if initialised {
					password = newPassword
					b.cloud.people(newPassword, "zoe@example.org", demoEmail) // under another id
					b.cloud.token = b.cloud.enter(demoEmail, newPassword)
					b.cloud.add("at the new cloud")
				}
				settle(time.Minute)
				must(t, b.pairs(demoPassword))
				healed()
				healed()
				for _, m := range []*machine{b.home, b.cloud} {
					m.token = m.enter(demoEmail, password)
					got := m.contents()
					if initialised {
						equal(t, "a todo of the new cloud at "+m.config.Node.Name, strings.Contains(got, "at the new cloud"), true)
						got = strings.Join(strings.Fields(strings.Replace(got, "at the new cloud", "", 1)), " ")
					}
					equal(t, "Ada's todos at "+m.config.Node.Name, got, want)
					equal(t, "phones at "+m.config.Node.Name, m.phones(), "phone")
					for _, as := range [][2]string{{bob, homesPassword}, {cyn, demoPassword}} {
						if m.enter(as[0], as[1]) == "" {
							t.Errorf("%s cannot log in at %s", as[0], m.config.Node.Name)
						}
					}
				}
				b.home.refusesAccounts(t)
				b.cloud.add("after it")
				settle(time.Second)
				equal(t, "at home", strings.Contains(b.home.contents(), "after it"), true)
				b.alike()
				b.quiet()
			})
		})
	}
}

func TestADeadHomeIsReplaced(t *testing.T) {
	inPair(t, func(t *testing.T, b *bubble) {
		want := b.cloud.contents()
		b.home.lost()
		settle(time.Minute)
		b.home.refused(http.MethodPost, "/v1/auth/login", adasLogin, http.StatusServiceUnavailable, "accounts_not_here_yet")
		must(t, b.pairs("nobody is asked"))
		healed()
		b.login()
		equal(t, "home", b.home.contents(), want)
		equal(t, "phones", b.home.phones(), "phone")
		ref := b.home.add("after it")
		settle(time.Second)
		equal(t, "the cloud", strings.Contains(b.cloud.todos(), ref+" after it"), true)
		equal(t, "nothing was replaced", strings.Contains(b.cloud.contents(), want) || len(b.cloud.contents()) > len(want), true)
		b.alike()
		b.quiet()
		settle(time.Hour)
		if strings.Count(b.rang(), "call May") != 1 {
			t.Errorf("it rang %s", b.rang())
		}
	})
}

func TestUnpairOfANodeThatIsAloneSaysSo(t *testing.T) {
	t.Parallel()
	env, _ := inhabited(t)
	verb(t, env, "", "unpair").exits(t, exitFailed, "names no peer")
	verb(t, env, "", "pair", "--rotate").exits(t, exitFailed, "names no peer")
	verb(t, env, "", "pair", strings.Repeat("b", pairing.CodeLength)).exits(t, exitFailed, "names no peer")
}

// Two processes and an operator with two terminals.
func TestTheVerbsMakeAPairOfTwoProcesses(t *testing.T) {
	t.Parallel()
	w := barePair(t, t.TempDir())
	var lines []string
	for _, p := range []*process{w.home, w.cloud} {
		p.env = append(p.env, "TANDEM_PEER_TOKEN_FILE="+filepath.Join(t.TempDir(), "peer.token"))
	}
	verb(t, w.cloud.env, "", "pair").exits(t, exitFailed, "Start it", "tandem serve")
	w.cloud.start()
	_, _, err := ask[initAnswer](t.Context(), w.cloud.dir, "init", initRequest{demoEmail, demoPassword})
	must(t, err)
	apart, _ := alone(t)
	apart = append(apart, "TANDEM_NODE_NAME=home", "TANDEM_NODE_DATA="+w.home.dir)
	verb(t, apart, homesPassword+"\n", "init", "--email", demoEmail, "--password-stdin").exits(t, exitOK)
	w.home.start()

	verb(t, w.home.env, "", "pair").exits(t, exitUsage, "origin 1")
	verb(t, w.home.env, "", "pair", "bcdf").exits(t, exitUsage, "32 letters")
	verb(t, w.home.env, "", "pair", "--rotate", "bcdf").exits(t, exitUsage, "needs no code")
	verb(t, append(w.home.env, "TANDEM_PEER_TOKEN_FILE=", "TANDEM_PEER_TOKEN="+bubbleSecret), "", "pair", strings.Repeat("b", pairing.CodeLength)).exits(t, exitConfig, "peer.token")
	verb(t, w.home.env, "", "pair", strings.Repeat("b", pairing.CodeLength)).exits(t, exitFailed, "wrong, or was used")

	said := verb(t, w.cloud.env, "", "pair")
	said.exits(t, exitOK, "At home, until ", "  tandem pair --config FILE ")
	for _, line := range strings.Split(said.out, "\n") {
		if code, ok := strings.CutPrefix(line, "  tandem pair --config FILE "); ok {
			lines = append(lines, code)
		}
	}
	code := lines[0]
	verb(t, w.cloud.env, "", "pair", code).exits(t, exitFailed, "does not call")
	verb(t, w.home.env, demoPassword+"\n", "pair", "--password-stdin", code).exits(t, exitFailed, "Nothing was changed", demoEmail)
	typed := strings.Split(strings.ToUpper(code), "-")
	s := verb(t, w.home.env, homesPassword+"\n", append([]string{"pair", "--password-stdin"}, typed...)...)
	s.exits(t, exitOK, demoEmail+" has an account at both nodes", "Paired with cloud")
	verb(t, w.home.env, "", "pair", code).exits(t, exitFailed, "wrong, or was used")
	must(t, w.home.login(t.Context()))
	must(t, w.cloud.login(t.Context()))
	_, err = w.home.post("/v1/todos", "one", map[string]string{"content": "from home"})
	must(t, err)
	eventually(t, w.alike)
	verb(t, w.home.env, "", "pair", "--rotate").exits(t, exitOK, "is a new one")
	_, err = w.cloud.post("/v1/todos", "two", map[string]string{"content": "from the cloud"})
	must(t, err)
	eventually(t, w.alike)
	w.home.terminates() // and without the process
	verb(t, w.home.env, "", "pair", "--rotate").exits(t, exitOK, "is a new one")
	w.home.start()
	_, err = w.cloud.post("/v1/todos", "three", map[string]string{"content": "from the cloud again"})
	must(t, err)
	eventually(t, w.alike)
	verb(t, w.home.env, "", "unpair").exits(t, exitOK, "cloud is forgotten", "Take the section peer out", "the accounts live here")
}
