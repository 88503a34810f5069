package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"tandem/internal/config"
)

// passwordsAre checks which of Ada's passwords is good, at both nodes.
func (b *bubble) passwordsAre(good, bad string) {
	b.Helper()
	for _, m := range []*machine{b.home, b.cloud} {
		equal(b, "the good password at "+m.config.Node.Name, m.enter(demoEmail, good) != "", true)
		equal(b, "the other one at "+m.config.Node.Name, m.enter(demoEmail, bad), "")
	}
}

// The cloud was thought gone for good, and comes back: a password that was set at home
// meanwhile holds at both, and the one from before is not brought back by pairing.
func TestANewPasswordAtAHomeThatWasAloneOutlivesPairingAgain(t *testing.T) {
	for _, dies := range []string{"", "pair.taken", "pair.answered", "pair.moved", "pair.copied"} {
		t.Run(dies, func(t *testing.T) {
			inPair(t, func(t *testing.T, b *bubble) {
				b.cloud.kill()
				_, err := b.home.node.unpair(t.Context(), struct{}{})
				must(t, err)
				b.home.off()
				peer := b.home.config.Peer
				b.home.config.Peer = config.Peer{}
				b.home.on()
				_, err = b.home.node.userFor(t.Context(), userRequest{"password", demoEmail, newPassword})
				must(t, err)
				b.home.token = b.home.enter(demoEmail, newPassword)
				b.home.add("written alone")
				want := b.home.contents()

				b.home.off()
				b.home.config.Peer = peer
				b.cloud.on()
				b.home.on()
				healed()
				b.cloud.token = b.cloud.enter(demoEmail, demoPassword)
				equal(t, "before, at the cloud", strings.Contains(b.cloud.contents(), "written alone"), false)
				if m := map[string]*machine{"pair.taken": b.cloud, "pair.answered": b.home, "pair.moved": b.home, "pair.copied": b.home}[dies]; m != nil {
					m.diesAt(dies, func() { survived(func() { _ = b.pairs("nobody is asked") }) })
					healed()
				}
				must(t, b.pairs("nobody is asked"))
				healed()
				b.passwordsAre(newPassword, demoPassword)
				for _, m := range []*machine{b.home, b.cloud} {
					m.token = m.enter(demoEmail, newPassword)
					equal(t, "todos at "+m.config.Node.Name, m.contents(), want)
					equal(t, "state of "+m.config.Node.Name, m.syncStatus().State, "ok")
				}
				b.home.refusesAccounts(t)
				b.alike()
				b.quiet()
			})
		})
	}
}

// dies ends the process from within what it does.
func (m *machine) dies() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.die()
}

// Home returns accounts to a cloud that was put back; what may go wrong on the way
// undoes no password, at either node, and it is done when both are there again.
func TestAccountsThatAreReturnedSurviveWhatHappensOnTheWay(t *testing.T) {
	for name, fails := range map[string]func(b *bubble, cloud http.Handler, w http.ResponseWriter, r *http.Request){
		"the cloud is away": func(b *bubble, _ http.Handler, _ http.ResponseWriter, _ *http.Request) { b.link.cut() },
		"home is killed before it": func(b *bubble, _ http.Handler, _ http.ResponseWriter, _ *http.Request) {
			b.home.dies()
		},
		"the cloud is killed before it": func(b *bubble, _ http.Handler, _ http.ResponseWriter, _ *http.Request) {
			b.cloud.dies()
		},
		"home is killed, and the cloud has them": func(b *bubble, cloud http.Handler, _ http.ResponseWriter, r *http.Request) {
			cloud.ServeHTTP(&void{http.Header{}}, r)
			b.home.dies()
		},
		"the cloud is killed once it has them": func(b *bubble, cloud http.Handler, _ http.ResponseWriter, r *http.Request) {
			cloud.ServeHTTP(&void{http.Header{}}, r)
			b.cloud.dies()
		},
		"only the answer is lost": func(_ *bubble, cloud http.Handler, _ http.ResponseWriter, r *http.Request) {
			cloud.ServeHTTP(&void{http.Header{}}, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inPair(t, func(t *testing.T, b *bubble) {
				dir := b.cloud.backup()
				must(t, b.cloud.node.users.SetPassword(t.Context(), b.ada(), newPassword))
				healed()
				b.cloud.kill()
				b.cloud.restore(dir)
				returned := 0
				b.link.answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h, _ := b.cloud.listens()
					if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/accounts") {
						if returned++; returned == 1 {
							fails(b, h, w, r)
							panic(http.ErrAbortHandler)
						}
					}
					h.ServeHTTP(w, r)
				}))
				b.cloud.on()
				healed()
				equal(t, "they were returned", returned > 0, true)
				if b.home.isOn() {
					equal(t, "at home, the old password meanwhile", b.home.enter(demoEmail, demoPassword), "")
				}
				settle(10 * time.Minute)
				b.link.mend()
				b.link.answer(nil)
				for _, m := range []*machine{b.home, b.cloud} {
					if !m.isOn() {
						m.kill()
						m.on()
					}
				}
				settle(5 * time.Minute)
				b.passwordsAre(newPassword, demoPassword)
				b.home.token, b.cloud.token = b.home.enter(demoEmail, newPassword), b.cloud.enter(demoEmail, newPassword)
				equal(t, "the states", b.home.syncStatus().State+" "+b.cloud.syncStatus().State, "ok ok")
				b.alike()
				b.quiet()
			})
		})
	}
}

// owners are the accounts that anything at the machine belongs to, what was deleted and
// the facts of what happened among it.
func (m *machine) owners() string {
	m.Helper()
	return fmt.Sprint(m.rows(`
		SELECT owner FROM todos UNION SELECT owner FROM settings UNION SELECT owner FROM scheduled_messages UNION SELECT owner FROM facts
		UNION SELECT owner FROM push_tokens UNION SELECT owner FROM delivery_intents UNION SELECT owner FROM idempotency`))
}

// At a cloud that was begun anew home has refilled rows of an account that the cloud does
// not know. Pairing gives all of them to the account of that address, at the cloud too:
// what was deleted stays deleted, and the facts of what rang are theirs.
func TestWhatWasDeletedAndWhatRangMovesAtTheCloudToo(t *testing.T) {
	for _, dies := range []string{"", "pair.opened"} {
		t.Run(dies, func(t *testing.T) {
			inPair(t, func(t *testing.T, b *bubble) {
				b.home.do(http.MethodDelete, "/v1/todos/"+b.home.add("deleted"), nil, nil)
				b.home.remind(map[string]any{"content": "rang", "trigger_at": time.Now().Add(time.Minute).Format(time.RFC3339)})
				settle(3 * time.Minute)
				rang, want := b.rang(), b.home.contents()
				equal(t, "it rang", strings.Contains(rang, "rang"), true)
				b.home.off()
				b.cloud.kill()
				must(t, os.RemoveAll(b.cloud.config.Node.Data))
				b.cloud.on()
				b.cloud.people(homesPassword, demoEmail)
				b.home.on()
				settle(time.Minute) // home refills it
				before := map[string]string{}
				for _, table := range []string{"todos WHERE deleted_at IS NOT NULL", "facts"} {
					before[table] = fmt.Sprint(b.cloud.rows(`SELECT DISTINCT owner FROM ` + table))
				}
				if dies != "" {
					b.cloud.diesAt(dies, func() { survived(func() { _ = b.pairs(demoPassword) }) })
				}
				must(t, b.pairs(demoPassword))
				healed()
				healed()
				owner := "[" + b.ada() + "]"
				for table, was := range before {
					if was == owner || was == "[]" {
						t.Errorf("the cloud's %s belonged to %s before: that shows nothing", table, was)
					}
				}
				for _, m := range []*machine{b.home, b.cloud} {
					equal(t, "owners at "+m.config.Node.Name, m.owners(), owner)
					m.token = m.enter(demoEmail, homesPassword)
					equal(t, "todos at "+m.config.Node.Name, m.contents(), want)
					equal(t, "deleted rows at "+m.config.Node.Name, fmt.Sprint(m.rows(`SELECT count(*) FROM todos WHERE deleted_at IS NOT NULL`)), "[2]")
				}
				equal(t, "what rang", b.rang(), rang)
				b.home.token = b.home.enter(demoEmail, homesPassword)
				b.home.remind(map[string]any{"content": "rings under its new owner", "trigger_at": time.Now().Add(time.Minute).Format(time.RFC3339)})
				settle(3 * time.Minute)
				equal(t, "it rings on the phone", strings.Contains(b.rang(), "phone: rings under its new owner"), true)
				b.alike()
				b.quiet()
			})
		})
	}
}
