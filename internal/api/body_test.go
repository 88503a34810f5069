package api

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// todoOf is a body that is exactly so many bytes long.
func todoOf(size int) string {
	const around = len(`{"content":"x"}`)
	return `{"content":"x"` + strings.Repeat(" ", size-around) + `}`
}

// What a body can be refused for before anybody looks at its fields. Each leaves
// nothing behind.
func TestABodyThatCannotBeRead(t *testing.T) {
	n := newNode(t)
	rows := n.rows()
	routes := []string{"POST /v1/todos", "POST /v1/scheduled-messages", "POST /v1/push-tokens", "PATCH /v1/todos/0-1",
		"PATCH /v1/scheduled-messages/0-1", "PATCH /v1/me", "POST /v1/auth/login"}
	bodies := map[string]string{
		"nothing":                 "",
		"only space":              " \n\t",
		"a word":                  "junk",
		"half":                    `{"content": "x"`,
		"a comma too many":        `{"content": "x",}`,
		"a comment":               `{"content": "x"} // x`,
		"single quotes":           `{'content': 'x'}`,
		"trailing data":           `{"content": "x"}{"content": "y"}`,
		"trailing junk":           `{"content": "x"}]`,
		"a byte order mark":       "\ufeff" + `{"content": "x"}`,
		"S:57 invalid UTF-8":      "{\"content\": \"\xff\"}",
		"Latin-1":                 "{\"content\": \"M\xfcll\"}",
		"UTF-16":                  "\xff\xfe{\x00}\x00",
		"S:56 NUL":                `{"content": "a\u0000b"}`,
		"NUL as a name":           `{"\u0000": 1}`,
		"a raw NUL":               "{\"content\": \"a\x00b\"}",
		"a raw line break":        "{\"content\": \"a\nb\"}",
		"a high surrogate":        `{"content": "\ud83d"}`,
		"a low surrogate":         `{"content": "\ude00"}`,
		"a pair turned round":     `{"content": "\ude00\ud83d"}`,
		"a pair with a gap":       `{"content": "\ud83d \ude00"}`,
		"half beside U+FFFD":      `{"content": "\ufffd \ud83d"}`,
		"half before an escape":   `{"content": "\ud83d\n"}`,
		"twice the same field":    `{"content": "x", "content": "y"}`,
		"twice, once in escapes":  `{"content": "x", "\u0063ontent": "y"}`,
		"twice further in":        `{"content": "x", "notes": {"a": 1, "a": 2}}`,
		"deep":                    strings.Repeat(`[`, 33) + strings.Repeat(`]`, 33),
		"very deep":               strings.Repeat(`{"a":`, 100_000) + `1` + strings.Repeat(`}`, 100_000),
		"deep and unclosed":       strings.Repeat(`[`, 1_000_000),
		"a number beyond numbers": `{"content": 1e999}`,
	}
	for name, body := range bodies {
		for _, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			a := n.anna.with("Idempotency-Key", "").ask(method, path, body)
			if a.status != 400 || a.text("code") != "bad_request" || a.fields() != "body" {
				t.Errorf("%s to %s: %d %s", name, route, a.status, a.body)
			}
		}
	}
	for name, want := range map[string]string{
		"a byte order mark": "byte order mark", "S:56 NUL": "NUL", "S:57 invalid UTF-8": "UTF-8", "a high surrogate": "surrogate",
		"twice the same field": "twice", "very deep": "deep", "trailing data": "after the JSON value", "nothing": "missing",
	} {
		if got := n.anna.post("/v1/todos", bodies[name]).at("errors.0.detail"); !strings.Contains(fmt.Sprint(got), want) {
			t.Errorf("%s: %v does not tell of %q", name, got, want)
		}
	}
	equal(t, "rows", n.rows(), rows)
}

// S:56, S:57: what looks odd and is good JSON is kept to the byte.
func TestOddTextIsKeptAsItWas(t *testing.T) {
	n := newNode(t)
	for body, want := range map[string]string{
		`a\\u0000b`:                   `a\u0000b`,
		`\\\\ud83d`:                   `\\ud83d`,
		`\ud83d\ude00`:                "😀",
		`\uD83D\uDE00\u000a`:          "😀\n",
		`\ufffd`:                      "\ufffd",
		`\ufffe\uffff\u0001\u007f`:    "\ufffe\uffff\u0001\u007f",
		`e\u0301 \u05d0\u202e \u200f`: "e\u0301 א\u202e \u200f",
		`\u003cb\u003e&amp;\/`:        `<b>&amp;/`,
		`👍🏽 明天早上9点 \u2028`:            "👍🏽 明天早上9点 \u2028",
	} {
		a := n.anna.post("/v1/todos", `{"content": "x", "notes": "`+body+`"}`).wants(201)
		equal(t, body, a.text("notes"), want)
		equal(t, body, n.anna.get("/v1/todos/"+a.text("ref")).wants(200).text("notes"), want)
		equal(t, body+" in the file", n.count(`SELECT notes = ? FROM todos WHERE id = ?`, want, strings.TrimPrefix(a.text("ref"), "1-")), 1)
	}
}

// The limits are of what is sent, and what is exactly as large is taken.
func TestTheLimitsOfWhatIsSent(t *testing.T) {
	n := newNode(t)
	kib := func(k int) string { return strings.Repeat("x", k<<10) }
	for _, c := range []struct {
		name, body string
		status     int
		code       string
	}{
		{"a body of 1 MiB", todoOf(maxBody), 201, ""},
		{"a body of a byte less", todoOf(maxBody - 1), 201, ""},
		{"a body of a byte more", todoOf(maxBody + 1), 413, "body_too_large"},
		{"a body of 3 MiB", todoOf(3 << 20), 413, "body_too_large"},
		{"a content of 64 KiB", `{"content": "` + kib(64) + `"}`, 201, ""},
		{"a content of a byte more", `{"content": "` + kib(64) + `x"}`, 422, "todo_invalid"},
		{"a content of 64 KiB in space", `{"content": "  ` + kib(64) + `\n"}`, 201, ""},
		{"64 KiB of emoji", `{"content": "` + strings.Repeat("😀", 16<<10) + `"}`, 201, ""},
		{"64 KiB and an emoji", `{"content": "` + strings.Repeat("😀", 16<<10) + `😀"}`, 422, "todo_invalid"},
		{"notes of 128 KiB", `{"content": "x", "notes": "` + kib(128) + `"}`, 201, ""},
		{"notes of a byte more", `{"content": "x", "notes": "` + kib(128) + `x"}`, 422, "todo_invalid"},
		{"128 KiB of quotes", `{"content": "x", "notes": "` + strings.Repeat(`\"`, 128<<10) + `"}`, 201, ""},
		{"no content", `{"content": ""}`, 422, "todo_invalid"},
		{"only space", `{"content": " \n\t\u00a0\u3000"}`, 422, "todo_invalid"},
		{"both too long", `{"content": "` + kib(65) + `", "notes": "` + kib(129) + `"}`, 422, "todo_invalid"},
	} {
		rows := n.rows()
		a := n.anna.with("Idempotency-Key", "").post("/v1/todos", c.body)
		if a.status != c.status || c.code != "" && a.text("code") != c.code {
			t.Errorf("%s: %d %.200s", c.name, a.status, a.body)
		}
		if a.status != 201 {
			equal(t, c.name+": rows", n.rows(), rows)
		}
	}
	message := func(content string) string {
		return `{"content": "` + content + `", "trigger_at": "2027-01-01T00:00:00Z"}`
	}
	n.anna.post("/v1/scheduled-messages", message(kib(64))).wants(201)
	n.anna.post("/v1/scheduled-messages", message(kib(64)+"x")).refuses(422, "scheduled_message_invalid")
	n.anna.post("/v1/scheduled-messages", message(" ")).refuses(422, "scheduled_message_invalid")
	n.anna.patch("/v1/todos/1-1", todoOf(maxBody+1)).refuses(413, "body_too_large")
}

// A body is read as what it says it is.
func TestABodyIsJSON(t *testing.T) {
	n := newNode(t)
	ref := n.anna.post("/v1/todos", `{"content": "x"}`).wants(201).text("ref")
	for kind, want := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "application/json ;charset=UTF-8": 201,
		"Application/JSON": 201, `application/json; profile="a+b"`: 201, "application/json; charset": 201,
		"text/plain": 415, "text/json": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415,
		"application/octet-stream": 415, "application/merge-patch+json": 415, "application/vnd.x+json": 415,
		"application/cbor": 415, "json": 415, ";": 415, "application/": 415, "*/*": 415, "application/json, text/plain": 415,
	} {
		if a := n.anna.with("Content-Type", kind).post("/v1/todos", `{"content": "x"}`); a.status != want {
			t.Errorf("POST as %q: %d %s", kind, a.status, a.body)
		}
	}
	for kind, want := range map[string]int{
		"application/json": 200, "application/merge-patch+json": 200, "application/merge-patch+json; charset=utf-8": 200,
		"application/json-patch+json": 415, "text/plain": 415,
	} {
		a := n.anna.with("Content-Type", kind).patch("/v1/todos/"+ref, `{"done": true}`)
		if a.status != want {
			t.Errorf("PATCH as %q: %d %s", kind, a.status, a.body)
		}
		if want == 415 {
			a.refuses(415, "unsupported_media_type")
			equal(t, "Accept-Patch", a.header.Get("Accept-Patch"), "application/merge-patch+json, application/json")
		}
	}
	a := n.anna.with("Content-Type", "text/plain").post("/v1/todos", "")
	a.refuses(415, "unsupported_media_type")
	n.anna.with("Content-Type", "text/plain").get("/v1/todos").wants(200) // which has none
}

// The answer is JSON whatever is asked for.
func TestTheAnswerIsJSON(t *testing.T) {
	n := newNode(t)
	for _, accept := range []string{"", "*/*", "text/html", "application/*", "application/problem+json", "json", "application/yaml", ";", ",;q=,", "a/b;q=x"} {
		a := n.anna.with("Accept", accept).get("/v1/todos").wants(200)
		equal(t, accept, a.header.Get("Content-Type"), "application/json")
		n.anna.with("Accept", accept).get("/v1/todos/0-1").refuses(404, "todo_not_found")
		person{node: n}.with("Accept", accept).get("/v1/todos").refuses(401, "no_session")
		n.anna.with("Accept", accept).get("/nowhere").refuses(404, "no_such_route")
	}
}

// What huma finds in the fields: each named, no value repeated.
func TestFieldsOfTheWrongShape(t *testing.T) {
	n := newNode(t)
	rows := n.rows()
	for _, c := range []struct{ route, body, fields string }{
		{"POST /v1/todos", `[]`, "body"},
		{"POST /v1/todos", `null`, "body"},
		{"POST /v1/todos", `"canary"`, "body"},
		{"POST /v1/todos", `17`, "body"},
		{"POST /v1/todos", `{}`, "body"},
		{"POST /v1/todos", `{"content": null}`, "content"},
		{"POST /v1/todos", `{"content": 17}`, "content"},
		{"POST /v1/todos", `{"content": ["canary"]}`, "content"},
		{"POST /v1/todos", `{"content": {"canary": 1}}`, "content"},
		{"POST /v1/todos", `{"content": "x", "done": "true"}`, "done"},
		{"POST /v1/todos", `{"content": "x", "done": 1}`, "done"},
		{"POST /v1/todos", `{"content": "x", "due_at": 1780000000}`, "due_at"},
		{"POST /v1/todos", `{"content": "x", "notes": false, "tz": 1}`, "notes tz"},
		{"POST /v1/todos", `{"Content": "x"}`, "Content body"},
		{"POST /v1/todos", `{"content": "x", "CONTENT": "y"}`, "CONTENT"},
		{"POST /v1/todos", `{"content": "x", "Done": true}`, "Done"},
		{"POST /v1/todos", `{"content": "x", "colour": "canary"}`, "colour"},
		{"POST /v1/todos", `{"content": "x", "ref": "0-1", "owner": "canary"}`, "owner ref"},
		{"POST /v1/todos", `{"content": "x", "due_at": ""}`, "due_at"},
		{"POST /v1/todos", `{"content": "x", "tz": ""}`, "tz"},
		{"POST /v1/scheduled-messages", `{"content": "x", "action": "canary", "trigger_at": "2027-01-01T00:00:00Z"}`, "action"},
		{"POST /v1/scheduled-messages", `{"content": "x", "enabled": "canary"}`, "enabled"},
		{"POST /v1/scheduled-messages", `{"content": "x", "cron_expr": "", "rrule": ""}`, "cron_expr rrule"},
		{"POST /v1/push-tokens", `{"token": "T"}`, "body body"},
		{"POST /v1/push-tokens", `{"token": "canary", "platform": "symbian", "device_id": "d"}`, "platform"},
		{"POST /v1/auth/login", `{"email": "a@b.example", "password": 12345678}`, "password"},
		{"POST /v1/auth/login", `{"email": "a@b.example", "pass": "canary"}`, "body pass"},
		{"PATCH /v1/todos/1-1", `{"done": "canary"}`, "done"},
		{"PATCH /v1/todos/1-1", `{"ref": "canary"}`, "ref"},
		{"PATCH /v1/todos/1-1", `[{"op": "replace", "path": "/content", "value": "canary"}]`, "body"},
		{"PATCH /v1/todos/1-1", `null`, "body"},
		{"PATCH /v1/me", `{"role": "admin"}`, "role"},
		{"PATCH /v1/me", `{"tz": ""}`, "tz"},
		{"PATCH /v1/me", `{"tz": false}`, "tz"},
	} {
		method, path, _ := strings.Cut(c.route, " ")
		a := n.anna.ask(method, path, c.body)
		if a.status != 422 || a.text("code") != "invalid_request" || a.fields() != c.fields {
			t.Errorf("%s %s: %d %s", c.route, c.body, a.status, a.body)
		}
		if strings.Contains(string(a.body), "canary") {
			t.Errorf("%s %s comes back: %s", c.route, c.body, a.body)
		}
	}
	equal(t, "rows", n.rows(), rows)
}

// A body full of names is answered soon, and not with all of them.
func TestABodyOfVeryManyNames(t *testing.T) {
	n := newNode(t)
	names := func(size int) string {
		var b strings.Builder
		b.WriteString(`{"content":"x"`)
		for i := 0; b.Len() < size-20; i++ {
			b.WriteString(`,"` + strconv.Itoa(i) + `":0`)
		}
		return b.String() + "}"
	}
	a := n.anna.post("/v1/todos", names(1500)).refuses(422, "invalid_request")
	if len(a.at("errors").([]any)) != maxFields || len(a.body) > 4<<10 {
		t.Errorf("an answer of %d bytes", len(a.body))
	}
	n.anna.post("/v1/todos", names(maxBody)).refuses(400, "bad_request")
	long := n.anna.post("/v1/todos", `{"content": "x", "`+strings.Repeat("é", 400_000)+`": 1}`).refuses(422, "invalid_request")
	if len(long.body) > 1<<10 {
		t.Errorf("an answer of %d bytes", len(long.body))
	}
}

// A caller who hangs up or falls asleep in the middle is no failure of the node's.
func TestABodyThatDoesNotArrive(t *testing.T) {
	n := newNode(t)
	rows := n.rows()
	half := strings.NewReader(`{"content": "x"`)
	n.anna.with("Content-Type", "application/json").send("POST", "/v1/todos", io.MultiReader(half, iotest.ErrReader(io.ErrUnexpectedEOF))).refuses(400, "bad_request")
	n.anna.with("Content-Type", "application/json").send("POST", "/v1/todos", iotest.ErrReader(errors.New("reset"))).refuses(400, "bad_request")
	n.anna.with("Content-Type", "application/json").send("POST", "/v1/todos", iotest.ErrReader(os.ErrDeadlineExceeded)).refuses(408, "body_too_slow")
	n.anna.with("Content-Type", "application/json").send("POST", "/v1/todos", iotest.OneByteReader(strings.NewReader(`{"content": "x"}`))).wants(201)
	equal(t, "rows", n.rows(), strings.Replace(rows, "todos=0", "todos=1", 1))
}

// connection is an answer's recorder that keeps the last read deadline.
type connection struct {
	*httptest.ResponseRecorder
	until []time.Time
}

func (c *connection) SetReadDeadline(at time.Time) error { c.until = append(c.until, at); return nil }

// Whoever sends a body has a time to send it in, whether anybody reads it or not. One
// that has none may be as silent as it likes.
func TestEachBodyHasATimeToComeIn(t *testing.T) {
	n := newNode(t)
	for name, c := range map[string]struct {
		who          person
		method, path string
		body         string
		deadlines    int // at least; 0: none at all
	}{
		"a stranger at the peer's door": {person{node: n}, "POST", "/peer/v1/changes", `{}`, 1},
		"a stranger":                    {person{node: n}, "POST", "/v1/todos", `{}`, 1},
		"nowhere":                       {n.anna, "POST", "/nowhere", `{}`, 1},
		"a question with a body":        {n.anna, "GET", "/v1/todos", `{}`, 1},
		"the peer, of whom it is read":  {n.local(), "POST", "/peer/v1/changes", `{"from":"","to":"","rows":[]}`, 2},
		"a question":                    {n.anna, "GET", "/v1/todos", ``, 0},
		"a question of the peer's":      {n.local(), "GET", "/peer/v1/changes", ``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			for name, values := range c.who.header {
				r.Header[name] = values
			}
			w := &connection{ResponseRecorder: httptest.NewRecorder()}
			n.handler.ServeHTTP(w, r)
			if len(w.until) < c.deadlines || c.deadlines == 0 && len(w.until) > 0 {
				t.Error(w.Code, len(w.until), "deadlines")
			}
			for _, at := range w.until {
				if wait := time.Until(at); wait < 0 || wait > time.Minute {
					t.Error("it may come for", wait)
				}
			}
		})
	}
}
