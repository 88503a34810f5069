package api

import (
	"fmt"
	"strings"
	gosync "sync"
	"testing"
	"time"
)

// creations are the routes that take a key, each with two bodies.
var creations = map[string][2]string{
	"/v1/todos":              {`{"content": "x", "done": true}`, `{"content": "y", "done": true}`},
	"/v1/scheduled-messages": {`{"content": "x", "cron_expr": "0 9 * * *"}`, `{"content": "x", "cron_expr": "0 8 * * *"}`},
	"/v1/push-tokens":        {`{"token": "T", "platform": "ios", "device_id": "d"}`, `{"token": "T", "platform": "ios", "device_id": "e"}`},
}

// R:E1, S:47, A03: the same request under the same key is answered as it was the
// first time, to the byte, and done once.
func TestARequestUnderAKeyIsDoneOnce(t *testing.T) {
	n := newNode(t)
	for route, bodies := range creations {
		c := n.anna.with("Idempotency-Key", "k1")
		first := c.post(route, bodies[0]).wants(201)
		equal(t, route+": replayed", first.header.Get("Idempotent-Replayed"), "")
		rows := n.rows()
		n.wait(24 * time.Hour * 6)
		c = n.login("anna@example.org").with("Idempotency-Key", "k1")
		for _, body := range []string{bodies[0], " " + bodies[0] + "\n", reordered(bodies[0]), strings.Replace(bodies[0], "x", `\u0078`, 1)} {
			again := c.post(route, body).wants(201)
			equal(t, route+": replayed", again.header.Get("Idempotent-Replayed"), "true")
			equal(t, route+": body", string(again.body), string(first.body))
			for _, name := range []string{"Location", "ETag", "Content-Type"} {
				equal(t, route+": "+name, again.header.Get(name), first.header.Get(name))
			}
		}
		// A04: another body under the key is a mistake, and is told.
		c.post(route, bodies[1]).refuses(422, "idempotency_key_reused")
		equal(t, route+": rows", n.rows(), rows)
		// A05: after a week the key is forgotten.
		n.wait(24*time.Hour + time.Second)
		c = n.login("anna@example.org").with("Idempotency-Key", "k1")
		equal(t, route+": a week later", c.post(route, bodies[1]).wants(201).header.Get("Idempotent-Replayed"), "")
		n.anna, n.ben = n.login("anna@example.org"), n.login("ben@example.org")
	}
}

// reordered turns the fields of an object of two or three round.
func reordered(body string) string {
	fields := strings.Split(strings.Trim(body, "{}"), ", ")
	for i, j := 0, len(fields)-1; i < j; i, j = i+1, j-1 {
		fields[i], fields[j] = fields[j], fields[i]
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// R:E1: a key belongs to one person and one route.
func TestAKeyOfAnotherPersonOrRouteIsAnotherKey(t *testing.T) {
	n := newNode(t)
	for route, bodies := range creations {
		n.anna.with("Idempotency-Key", "k").post(route, bodies[0]).wants(201)
	}
	equal(t, "kept", n.count(`SELECT count(*) FROM idempotency`), len(creations))
	a := n.ben.with("Idempotency-Key", "k").post("/v1/todos", creations["/v1/todos"][1]).wants(201)
	equal(t, "replayed", a.header.Get("Idempotent-Replayed"), "")
	a = n.anna.with("Idempotency-Key", "K").post("/v1/todos", creations["/v1/todos"][1]).wants(201)
	equal(t, "replayed", a.header.Get("Idempotent-Replayed"), "")
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 3)
}

// R:E1: what was refused is not kept; the key is free for the request put right.
func TestAKeyIsFreeAfterARefusal(t *testing.T) {
	n := newNode(t)
	c := n.anna.with("Idempotency-Key", "k")
	c.post("/v1/todos", `{"content": "x"`).wants(400)
	c.post("/v1/todos", `{"content": " "}`).wants(422)
	c.post("/v1/todos", `{"content": "x", "due_at": "never"}`).wants(422)
	c.with("Content-Type", "text/plain").post("/v1/todos", `{"content": "x"}`).wants(415)
	equal(t, "kept", n.count(`SELECT count(*) FROM idempotency`), 0)
	equal(t, "replayed", c.post("/v1/todos", `{"content": "x"}`).wants(201).header.Get("Idempotent-Replayed"), "")
}

func TestAKeyThatIsNone(t *testing.T) {
	n := newNode(t)
	for _, key := range []string{"a b", "ä", "a\tb", "\x7f", strings.Repeat("k", 256), "😀"} {
		n.anna.with("Idempotency-Key", key).post("/v1/todos", `{"content": "x"}`).refuses(422, "idempotency_key_invalid")
	}
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 0)
	for i, key := range []string{strings.Repeat("k", 255), "!", `"quoted"`, "a,b;c=d", "~"} {
		n.anna.with("Idempotency-Key", key).post("/v1/todos", `{"content": "x"}`).wants(201)
		equal(t, "todos", n.count(`SELECT count(*) FROM todos`), i+1)
	}
	n.anna.with("Idempotency-Key", "").post("/v1/todos", `{"content": "x"}`).wants(201)
	n.anna.with("Idempotency-Key", "").post("/v1/todos", `{"content": "x"}`).wants(201) // an empty one is none
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 7)
}

// An answer with a secret in it is not kept.
func TestNoKeyWhereAnAnswerHoldsASecret(t *testing.T) {
	n := newNode(t)
	login := `{"email": "anna@example.org", "password": "` + password + `"}`
	person{node: n}.with("Idempotency-Key", "k").post("/v1/auth/login", login).refuses(400, "idempotency_not_here")
	n.anna.with("Idempotency-Key", "k").post("/v1/auth/logout", "").refuses(400, "idempotency_not_here")
	n.anna.get("/v1/me").wants(200)
	equal(t, "kept", n.count(`SELECT count(*) FROM idempotency`), 0)
}

// The body is kept as a keyed hash, which a guess at it cannot be held against.
func TestWhatIsKeptUnderAKeyIsNoBody(t *testing.T) {
	n := newNode(t)
	n.anna.with("Idempotency-Key", "k").post("/v1/push-tokens", `{"token": "canary-token", "platform": "ios", "device_id": "d"}`).wants(201)
	equal(t, "rows with the token", n.count(`SELECT count(*) FROM idempotency WHERE instr(body, 'canary') OR instr(answer, 'canary')`), 0)
	equal(t, "rows with a whole hash", n.count(`SELECT count(*) FROM idempotency WHERE length(body) = 32`), 1)
}

// R:E1 while in flight: all of a crowd get the one answer, and one of them was first.
func TestACrowdUnderOneKey(t *testing.T) {
	n := newNode(t)
	const crowd = 50
	answers := make([]answer, crowd)
	var wg gosync.WaitGroup
	for i := range crowd {
		wg.Go(func() { answers[i] = n.anna.with("Idempotency-Key", "k").post("/v1/todos", `{"content": "x"}`) })
	}
	wg.Wait()
	firsts := 0
	for _, a := range answers {
		equal(t, "status", a.status, 201)
		equal(t, "body", string(a.body), string(answers[0].body))
		if a.header.Get("Idempotent-Replayed") == "" {
			firsts++
		}
	}
	equal(t, "firsts", firsts, 1)
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 1)
}

// The twins of a kept answer: killed before the commit nothing is there, killed
// after it the next one who asks hears what was said.
func TestAKeyAcrossACrash(t *testing.T) {
	n := newNode(t)
	n.broken = true
	for route, bodies := range creations {
		table := map[string]string{"/v1/todos": "todos", "/v1/scheduled-messages": "scheduled_messages", "/v1/push-tokens": "push_tokens"}[route]
		c := n.anna.with("Idempotency-Key", "k")
		n.sql(`CREATE TRIGGER kill BEFORE INSERT ON idempotency BEGIN SELECT RAISE(FAIL, 'killed'); END`)
		rows := n.rows()
		c.post(route, bodies[0]).refuses(500, "internal")
		equal(t, route+": rows of a commit that failed", n.rows(), rows)
		n.sql(`DROP TRIGGER kill`)
		n.crash = "api.committed"
		c.post(route, bodies[0]).refuses(500, "internal")
		n.crash = ""
		n.wire()
		a := c.post(route, bodies[0]).wants(201)
		equal(t, route+": replayed", a.header.Get("Idempotent-Replayed"), "true")
		equal(t, route+": rows", n.count(`SELECT count(*) FROM `+table), 1)
	}
}

// Without a key each request is one of its own.
func TestWithoutAKeyEachRequestIsDone(t *testing.T) {
	n := newNode(t)
	for i := range 3 {
		a := n.anna.post("/v1/todos", `{"content": "x"}`).wants(201)
		equal(t, "ref", a.text("ref"), fmt.Sprint("1-", i+1))
	}
	equal(t, "kept", n.count(`SELECT count(*) FROM idempotency`), 0)
}
