package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/internal/config"
	"tandem/internal/pairing"
	"tandem/internal/sync/link"
	"tandem/internal/users"
)

const (
	homesPassword = "the password at home"
	bob           = "bob@example.org"
	cyn           = "cyn@example.org"
)

// inStrangeBubble runs a test with a cloud where Ada and Cyn have accounts, and a
// node at home that was alone until now, with accounts of its own for Ada and Bob,
// and all that Ada does with a node. Each has a secret that the other does not know.
func inStrangeBubble(t *testing.T, test func(*testing.T, *bubble)) {
	t.Helper()
	inNewBubble(t, func(t *testing.T, b *bubble) {
		for _, m := range []*machine{b.home, b.cloud} {
			m.config.Peer.Token, m.config.Peer.TokenFile = "", filepath.Join(m.config.Node.Data, "..", m.config.Node.Name+".token")
		}
		b.cloud.on()
		b.cloud.people(demoPassword, demoEmail, cyn)
		b.cloud.login()
		b.cloud.add("at the cloud")

		peer := b.home.config.Peer
		b.home.config.Peer = config.Peer{}
		b.home.on()
		b.home.people(homesPassword, bob, demoEmail)
		b.home.token = b.home.enter(demoEmail, homesPassword)
		b.home.add("at home")
		b.home.do(http.MethodDelete, "/v1/todos/"+b.home.add("deleted at home"), nil, nil)
		b.home.do(http.MethodPatch, "/v1/me", map[string]any{"tz": "Asia/Tokyo"}, nil)
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:40:00Z"})
		b.home.remind(map[string]any{"content": "rang at home", "trigger_at": "2000-01-01T00:01:00Z"})
		b.home.register("phone")
		b.home.do(http.MethodPost, "/v1/todos", map[string]any{"content": "asked once"}, nil, "Idempotency-Key: one")
		settle(2 * time.Minute)
		b.home.off()
		b.home.config.Peer = peer
		b.home.on()
		settle(2 * time.Minute)
		test(t, b)
	})
}

// people makes accounts of one password at a node where accounts live.
func (m *machine) people(password string, emails ...string) {
	m.Helper()
	hash, err := users.NewHasher(users.Cost{Memory: 8, Passes: 1}).Hash(m.Context(), password)
	must(m, err)
	var all []map[string]any
	for i, email := range emails {
		role := "user"
		if email == demoEmail {
			role = "admin"
		}
		all = append(all, map[string]any{"id": fmt.Sprintf("01%c%011d%012d", "HC"[m.config.Node.Origin], m.starts, i),
			"email": email, "password_hash": hash, "role": role, "password_version": 1, "created_at": 1, "updated_at": 1})
	}
	body, err := json.Marshal(map[string]any{"accounts": all})
	must(m, err)
	must(m, m.node.users.TakeIn(m.Context(), body))
}

// enter logs somebody in and returns the session's token; none where it is refused.
func (m *machine) enter(email, password string) string {
	m.Helper()
	was := m.token
	defer func() { m.token = was }()
	m.token = ""
	status, _, body := m.ask(http.MethodPost, "/v1/auth/login", map[string]string{"email": email, "password": password})
	var session struct{ Token string }
	if status == http.StatusOK {
		must(m, json.Unmarshal(body, &session))
	}
	return session.Token
}

// pairs has the operator carry a code home.
func (b *bubble) pairs(password string) error {
	code, err := b.cloud.node.openPairing(b.Context(), struct{}{})
	if err != nil {
		return err
	}
	_, err = b.home.node.pairJoin(b.Context(), pairing.Request{Code: code.Code, Passwords: map[string]string{demoEmail: password}})
	return err
}

// survived runs what may die with its machine.
func survived(do func()) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	do()
}

// isPair checks that the two are one: each account with all that either node held.
func (b *bubble) isPair() {
	b.Helper()
	healed()
	b.login()
	for _, m := range []*machine{b.home, b.cloud} {
		name := m.config.Node.Name
		list := strings.Split(m.todos(), ", ")
		slices.Sort(list)
		equal(b, "Ada's todos at "+name, strings.Join(list, ", "), "0-1 at home, 0-3 asked once, 1-1 at the cloud")
		equal(b, "phones at "+name, m.phones(), "phone")
		var me struct{ TZ string }
		m.do(http.MethodGet, "/v1/me", nil, &me)
		equal(b, "Ada's zone at "+name, me.TZ, "Asia/Tokyo")
		for _, as := range [][2]string{{bob, homesPassword}, {cyn, demoPassword}} {
			if m.enter(as[0], as[1]) == "" {
				b.Errorf("%s cannot log in at %s", as[0], name)
			}
		}
		equal(b, "Ada's password of before at "+name, m.enter(demoEmail, homesPassword), "")
		equal(b, "owners at "+name, m.owners(), "["+b.ada()+"]")
	}
	_, header, _ := b.home.ask(http.MethodPost, "/v1/todos", map[string]any{"content": "asked once"}, "Idempotency-Key: one")
	equal(b, "the request of before", header.Get("Idempotent-Replayed"), "true")
	equal(b, "the secrets", secretOf(b.home), secretOf(b.cloud))
	b.alike()
	b.quiet()
	settle(time.Until(time.Date(2000, 1, 1, 0, 41, 0, 0, time.UTC)))
	equal(b, "what rang", b.rang(), "00:01:00 phone: rang at home | 00:40:00 phone: call May")
}

// secretOf is what a node's token file holds.
func secretOf(m *machine) string {
	m.Helper()
	text, err := os.ReadFile(m.config.Peer.TokenFile)
	must(m, err)
	fi, err := os.Stat(m.config.Peer.TokenFile)
	must(m, err)
	equal(m, "who may read the secret of "+m.config.Node.Name, fi.Mode().Perm(), 0o600)
	return string(text)
}

func TestTwoNodesThatWereStrangersBecomeAPair(t *testing.T) {
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		equal(t, "before", b.home.node.client.Status().Code, "peer_refused")
		code, err := b.cloud.node.openPairing(t.Context(), struct{}{})
		must(t, err)
		home, cloud := b.home.rows(tables), b.cloud.rows(tables)
		plan, err := b.home.node.pairLook(t.Context(), pairing.Request{Code: code.Code})
		must(t, err)
		equal(t, "the plan", fmt.Sprint(plan), fmt.Sprint(pairing.Plan{Peer: "cloud", Shared: []string{demoEmail}, Going: []string{bob}}))
		for _, passwords := range []map[string]string{nil, {demoEmail: demoPassword}, {demoEmail: ""}, {bob: homesPassword}} {
			if _, err := b.home.node.pairJoin(t.Context(), pairing.Request{Code: code.Code, Passwords: passwords}); err == nil {
				t.Errorf("paired with the passwords %v", passwords)
			}
		}
		settle(time.Minute)
		equal(t, "a look changes nothing at home", fmt.Sprint(b.home.rows(tables)), fmt.Sprint(home))
		equal(t, "a look changes nothing at the cloud", fmt.Sprint(b.cloud.rows(tables)), fmt.Sprint(cloud))
		equal(t, "Bob at the cloud", b.cloud.enter(bob, homesPassword), "")
		_, err = b.home.node.pairJoin(t.Context(), pairing.Request{Code: code.Code, Passwords: map[string]string{demoEmail: homesPassword}})
		must(t, err)
		b.isPair()
		b.home.off()
		b.cloud.off()
		for _, m := range []*machine{b.home, b.cloud} {
			for _, secret := range []string{code.Code, homesPassword, strings.TrimSpace(secretOf(m))} {
				if strings.Contains(m.log.String(), secret) {
					t.Errorf("the log of %s holds a secret", m.config.Node.Name)
				}
			}
		}
	})
}

// To pair again what is a pair changes the secret and nothing else.
func TestPairingTwiceIsPairingOnce(t *testing.T) {
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		must(t, b.pairs(homesPassword))
		healed()
		secret, rows := secretOf(b.home), b.alike()
		must(t, b.pairs("nobody is asked for a password any more"))
		healed()
		equal(t, "rows", fmt.Sprint(b.alike()), fmt.Sprint(rows))
		equal(t, "the same secret", secretOf(b.home) == secret, false)
		b.isPair()
	})
}

func TestPairingThatIsKilledIsDoneAgain(t *testing.T) {
	for _, at := range []string{"cloud pair.taken", "cloud pair.opened", "home pair.answered", "home pair.moved", "home pair.copied"} {
		t.Run(at, func(t *testing.T) {
			inStrangeBubble(t, func(t *testing.T, b *bubble) {
				name, point, _ := strings.Cut(at, " ")
				m := b.home
				if name == "cloud" {
					m = b.cloud
				}
				m.diesAt(point, func() {
					survived(func() {
						if err := b.pairs(homesPassword); err == nil {
							t.Error("paired by a node that is dead")
						}
					})
				})
				settle(time.Minute)
				must(t, b.pairs(homesPassword))
				b.isPair()
			})
		})
	}
}

// The answer that carries the secret is lost: home comes again with another code.
func TestPairingWhoseAnswerIsLostIsDoneAgain(t *testing.T) {
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		calls := 0
		b.link.answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h, _ := b.cloud.listens()
			if strings.HasSuffix(r.URL.Path, "/pair") {
				if calls++; calls == 2 { // the first is the look
					h.ServeHTTP(&void{http.Header{}}, r)
					panic(http.ErrAbortHandler)
				}
			}
			h.ServeHTTP(w, r)
		}))
		if err := b.pairs(homesPassword); err == nil {
			t.Error("paired without an answer")
		}
		b.link.cut() // and then the cloud cannot be reached at all
		if err := b.pairs(homesPassword); !errors.Is(err, link.ErrPeerAway) {
			t.Errorf("paired with a cloud that is away: %v", err)
		}
		b.link.answer(nil)
		must(t, b.pairs(homesPassword))
		b.isPair()
	})
}

func TestACodeIsGoodOnceForTenMinutesAndFiveTries(t *testing.T) {
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		look := func(code string) error {
			_, err := b.home.node.pairLook(t.Context(), pairing.Request{Code: code})
			return err
		}
		refused := func(what, code string) {
			t.Helper()
			if err := look(code); !errors.Is(err, pairing.ErrCode) {
				t.Errorf("%s: %v", what, err)
			}
		}
		open := func() string {
			code, err := b.cloud.node.openPairing(t.Context(), struct{}{})
			must(t, err)
			if typed, ok := pairing.ReadCode(strings.ToUpper(pairing.Spell(code.Code)) + " "); !ok || typed != code.Code {
				t.Errorf("%q is read as %q", pairing.Spell(code.Code), typed)
			}
			return code.Code
		}
		wrong := strings.Repeat("b", pairing.CodeLength)
		refused("before there is a code", wrong)
		first := open()
		second := open()
		refused("voided by another", first)
		for range pairing.CodeTries - 2 {
			refused("wrong", wrong)
		}
		must(t, look(second))
		must(t, look(second)) // to look is no use of it
		refused("wrong, the fifth", wrong)
		refused("after five tries", second)

		third := open()
		settle(pairing.CodeLife - time.Millisecond)
		must(t, look(third))
		settle(time.Millisecond)
		refused("too old", third)

		fourth := open()
		b.cloud.kill()
		b.cloud.on()
		refused("of the process before", fourth)

		fifth := open()
		_, err := b.home.node.pairJoin(t.Context(), pairing.Request{Code: fifth, Passwords: map[string]string{demoEmail: homesPassword}})
		must(t, err)
		refused("used", fifth)

		// To a stranger each of these is the same answer.
		answer := func(code string) string {
			status, _, body := b.cloud.ask(http.MethodPost, "/peer/v1/pair", struct{}{}, "Authorization: Bearer "+code)
			return fmt.Sprint(status, string(body))
		}
		alike := answer(wrong)
		equal(t, "used", answer(fifth), alike)
		equal(t, "none", answer(""), alike)
		equal(t, "the session of a user", answer(b.cloud.token), alike)
		equal(t, "401", alike[:3], "401")
	})
}

func TestTwoWhoDoNotNameEachOtherAreNoPair(t *testing.T) {
	for name, spoil := range map[string]struct {
		do   func(b *bubble)
		says string
	}{
		"the cloud names another": {func(b *bubble) { b.cloud.config.Peer.Name = "shed" }, "cloud names shed"},
		"home names another":      {func(b *bubble) { b.home.config.Peer.Name = "shed" }, `names "shed"`},
		"the secret is fixed at the cloud": {func(b *bubble) {
			b.cloud.config.Peer.Token, b.cloud.config.Peer.TokenFile = bubbleSecret, ""
		}, "peer.token"},
		"the secret is fixed at home": {func(b *bubble) { b.home.config.Peer.Token, b.home.config.Peer.TokenFile = bubbleSecret, "" }, "peer.token"},
		"home has no peer":            {func(b *bubble) { b.home.config.Peer = config.Peer{} }, "names no peer"},
	} {
		t.Run(name, func(t *testing.T) {
			inStrangeBubble(t, func(t *testing.T, b *bubble) {
				b.home.off()
				b.cloud.off()
				spoil.do(b)
				b.cloud.on()
				b.home.on()
				before := fmt.Sprint(b.home.rows(tables), b.cloud.rows(tables))
				err := b.pairs(homesPassword)
				if err == nil || !strings.Contains(explain(err), spoil.says) {
					t.Errorf("it says %v", err)
				}
				settle(time.Minute)
				equal(t, "rows", fmt.Sprint(b.home.rows(tables), b.cloud.rows(tables)), before)
				equal(t, "Bob at the cloud", b.cloud.enter(bob, homesPassword), "")
			})
		})
	}
}

// The operator copied the secret by hand, and did not pair: nothing crosses that would
// be nobody's, and home says what to do.
func TestASecretAloneMakesNoPairOfStrangers(t *testing.T) {
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		must(t, b.home.node.keys.Replace(b.cloud.node.keys.Accept()...))
		b.home.node.secretChanged()
		home, cloud := b.home.rows(tables), b.cloud.rows(tables)
		healed()
		status := b.home.node.client.Status()
		equal(t, "what is wrong", status.Code, "accounts_not_joined")
		if !strings.Contains(status.Detail, "tandem pair") {
			t.Errorf("it says %q", status.Detail)
		}
		b.home.kill()
		b.home.on()
		settle(time.Minute)
		equal(t, "rows at home", fmt.Sprint(b.home.rows(tables)), fmt.Sprint(home))
		equal(t, "rows at the cloud", fmt.Sprint(b.cloud.rows(tables)), fmt.Sprint(cloud))
		equal(t, "phones at home", b.home.phones(), "phone")
		if b.home.enter(bob, homesPassword) == "" {
			t.Error("Bob cannot log in at home any more")
		}
		must(t, b.pairs(homesPassword))
		b.isPair()
	})
}
