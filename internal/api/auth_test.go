package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
)

// target fills a path of the description.
func target(path, ref, device, fire string) string {
	return strings.NewReplacer("{ref}", ref, "{device_id}", device, "{id}", fire).Replace(path)
}

// Who somebody is comes before everything else that may be wrong with a request.
func TestNoRouteAnswersAStranger(t *testing.T) {
	n := newNode(t)
	strangers := map[string]person{
		"nobody":           {node: n},
		"junk":             person{node: n}.with("Authorization", "Bearer junk"),
		"a dead token":     person{node: n}.with("Authorization", "Bearer tnd_"+strings.Repeat("A", 43)),
		"another scheme":   person{node: n}.with("Authorization", "Basic "+strings.TrimPrefix(n.anna.header.Get("Authorization"), "Bearer ")),
		"the peer":         person{node: n}.with("Authorization", "Bearer "+peerSecret).with("Tandem-Node", "local"),
		"a NUL":            person{node: n}.with("Authorization", "Bearer \x00"),
		"a token in query": {node: n},
	}
	rows := n.rows()
	for _, name := range n.contract.operations() {
		method, path, _ := strings.Cut(name, " ")
		if path == "/v1/auth/login" {
			continue
		}
		for who, s := range strangers {
			at := target(path, "0-1", "phone", "fire")
			if who == "a token in query" {
				at += "?access_token=" + strings.TrimPrefix(n.anna.header.Get("Authorization"), "Bearer ")
			}
			s.with("Idempotency-Key", "a b").with("Content-Type", "text/plain").ask(method, at, "{").refuses(401, "no_session")
			s.ask(method, at+and(at)+"%zz=1&limit=-1", strings.Repeat(" ", maxBody+1)).refuses(401, "no_session")
		}
	}
	equal(t, "rows", n.rows(), rows)
}

func and(target string) string {
	if strings.Contains(target, "?") {
		return "&"
	}
	return "?"
}

// Each row belongs to one person; to everybody else it is not there.
func TestNobodySeesOrTouchesTheRowsOfAnother(t *testing.T) {
	n := newNode(t)
	todo := n.anna.post("/v1/todos", `{"content": "Milch"}`).wants(201).text("ref")
	message := n.anna.post("/v1/scheduled-messages", `{"content": "Zahnarzt", "cron_expr": "0 9 * * *", "tz": "Europe/Berlin"}`).wants(201).text("ref")
	n.anna.post("/v1/push-tokens", `{"token": "T1", "platform": "ios", "device_id": "annas"}`).wants(201)
	n.tell("fire1", n.anna.id)
	bodies := map[string]string{"/v1/todos/{ref}": `{"done": true}`, "/v1/scheduled-messages/{ref}": `{"enabled": false}`}
	for _, name := range n.contract.operations() {
		method, path, _ := strings.Cut(name, " ")
		ref := todo
		if strings.Contains(path, "scheduled") {
			ref = message
		}
		if strings.HasPrefix(path, "/v1/sync/quarantine") {
			n.ben.ask(method, target(path, ref, "annas", "fire1"), "").refuses(403, "not_admin")
			continue
		}
		if !strings.Contains(path, "{") {
			if method == "GET" && path != "/v1/me" && path != "/v1/sync/status" {
				equal(t, name+": items", fmt.Sprint(n.ben.get(path).wants(200).at("items")), "[]")
			}
			continue
		}
		a := n.ben.with("If-Match", "*").ask(method, target(path, ref, "annas", "fire1"), bodies[path])
		if strings.Contains(path, "push-tokens") {
			a.wants(204) // a device that is not ben's is forgotten already, as far as ben is concerned
		} else if a.status != 404 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	equal(t, "done", n.anna.get("/v1/todos/"+todo).wants(200).at("done"), any(false))
	equal(t, "enabled", n.anna.get("/v1/scheduled-messages/"+message).wants(200).at("enabled"), any(true))
	equal(t, "device", n.anna.get("/v1/push-tokens").wants(200).at("items.0.device_id"), any("annas"))
	equal(t, "fire", n.anna.get("/v1/fires/fire1").wants(200).at("facts.0.kind"), any("fired"))
	for _, body := range []string{"Milch", "Zahnarzt", "annas"} {
		for _, list := range []string{"/v1/todos?q=M", "/v1/scheduled-messages", "/v1/push-tokens"} {
			if strings.Contains(string(n.ben.get(list).body), body) {
				t.Errorf("%s tells ben of %s", list, body)
			}
		}
	}
}

// tell has a fact of a fire told, as the scheduler would.
func (n *node) tell(fire, owner string) {
	n.Helper()
	n.must(n.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		_, err := n.log.FactTx(tx, "fired", fire, owner, owner, map[string]int{"due_at": 1})
		return err
	}))
}

// A fire of which both have facts shows to each their own.
func TestAFireShowsEachPersonTheirOwnFacts(t *testing.T) {
	n := newNode(t)
	n.tell("both", n.anna.id)
	n.tell("both", n.ben.id)
	for _, c := range []person{n.anna, n.ben} {
		equal(t, "facts", len(c.get("/v1/fires/both").wants(200).at("facts").([]any)), 1)
	}
	n.anna.get("/v1/fires/none").refuses(404, "fire_not_found")
	n.anna.get("/v1/fires/"+strings.Repeat("x", 500)).refuses(404, "fire_not_found")
	n.sql(`UPDATE facts SET body = '' WHERE owner = ?`, n.anna.id) // as a peer may tell it
	equal(t, "body", n.anna.get("/v1/fires/both").wants(200).at("facts.0.body"), nil)
}

// E11: a token opens until it is a day old, or until its logout, and no longer.
func TestASessionEndsWithLogoutAndWithItsDay(t *testing.T) {
	n := newNode(t)
	other := n.login("anna@example.org")
	other.post("/v1/auth/logout", "").wants(204)
	other.get("/v1/me").refuses(401, "no_session")
	other.post("/v1/auth/logout", "").refuses(401, "no_session")
	n.anna.get("/v1/me").wants(200)
	n.wait(24*time.Hour - time.Second)
	n.anna.get("/v1/me").wants(200)
	n.wait(time.Second)
	n.anna.get("/v1/me").refuses(401, "no_session")
}

func TestALoginSaysWhenItEnds(t *testing.T) {
	n := newNode(t)
	a := person{node: n}.post("/v1/auth/login", `{"email": " ANNA@Example.org ", "password": "`+password+`"}`).wants(200)
	n.secrets = append(n.secrets, a.text("token"))
	equal(t, "expires_at", a.text("expires_at"), "2026-02-02T12:00:00Z")
	equal(t, "Cache-Control", a.header.Get("Cache-Control"), "no-store")
	lower := person{node: n}.with("Authorization", "bearer  "+a.text("token"))
	equal(t, "email", lower.get("/v1/me").wants(200).text("email"), "anna@example.org")
	equal(t, "role", lower.get("/v1/me").wants(200).text("role"), "admin")
}

// R:G4: who guesses learns nothing from the answer.
func TestAWrongPasswordAndAnUnknownAddressAreOneAnswer(t *testing.T) {
	n := newNode(t)
	stranger := person{node: n}
	wrong := stranger.post("/v1/auth/login", `{"email": "anna@example.org", "password": "incorrect"}`).refuses(401, "wrong_credentials")
	n.must(n.accounts.Disable(t.Context(), n.ben.id))
	for _, body := range []string{
		`{"email": "carl@example.org", "password": "incorrect"}`, `{"email": "no address", "password": "incorrect"}`,
		`{"email": "", "password": ""}`, `{"email": "ben@example.org", "password": "` + password + `"}`,
	} {
		equal(t, body, string(stranger.post("/v1/auth/login", body).wants(401).body), string(wrong.body))
	}
}

// E10: a ban ends sessions at once, and keeps the rows.
func TestABanClosesTheDoorAtOnce(t *testing.T) {
	n := newNode(t)
	ref := n.ben.post("/v1/todos", `{"content": "bleibt"}`).wants(201).text("ref")
	n.must(n.accounts.Disable(t.Context(), n.ben.id))
	n.ben.get("/v1/todos/"+ref).refuses(401, "no_session")
	n.ben.post("/v1/todos", `{"content": "zu spät"}`).refuses(401, "no_session")
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 1)
	n.must(n.accounts.Enable(t.Context(), n.ben.id))
	n.ben.get("/v1/todos/"+ref).refuses(401, "no_session")
	n.login("ben@example.org").get("/v1/todos/" + ref).wants(200)
}

// E10 and a new password: both nodes' doors.
func TestANewPasswordEndsEverySession(t *testing.T) {
	n := newNode(t)
	n.must(n.accounts.SetPassword(t.Context(), n.ben.id, "another one"))
	n.secrets = append(n.secrets, "another one")
	n.ben.get("/v1/me").refuses(401, "no_session")
	person{node: n}.post("/v1/auth/login", `{"email": "ben@example.org", "password": "`+password+`"}`).refuses(401, "wrong_credentials")
	n.anna.get("/v1/me").wants(200)
}

// A node whose accounts live at the peer says so until they have come.
func TestALoginBeforeTheAccountsHaveComeIsAskedToWait(t *testing.T) {
	n := newNode(t)
	n.broken = true
	n.must(n.userDB.Write(t.Context(), func(tx *sqlite.Tx) error { _, err := tx.Exec(`DELETE FROM users`); return err }))
	n.copies = true
	n.wire()
	a := person{node: n}.post("/v1/auth/login", `{"email": "anna@example.org", "password": "`+password+`"}`).refuses(503, "accounts_not_here_yet")
	equal(t, "Retry-After", a.header.Get("Retry-After"), "5")
}

// R:G6: an address that a header claims is not believed.
func TestTheCallersAddressIsThatOfTheConnection(t *testing.T) {
	n := newNode(t)
	r, _ := http.NewRequest("GET", "/v1/me", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	for _, header := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip"} {
		r.Header.Set(header, "203.0.113.9")
	}
	equal(t, "address", n.handler.(edge).NewContext(r, nil).RealIP(), "192.0.2.1")
}

// The peer's secret opens nothing of the API, nor a session anything of the peer's:
// the latter is in TestToAStrangerEachPathOfThePeersIsAlike.
func TestAnAuthorizationHeaderIsReadAsItShouldBe(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "BEARER   abc  ": "abc", "Bearer": "", "Bearer ": "", "": "",
		"Basic abc": "", "abc": "", "Bearerabc": "", " Bearer abc": "",
	} {
		equal(t, header, bearer(header), want)
	}
}
