package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzRequest: whatever is asked, by whomever, the node answers with less than 500,
// and each refusal is a problem.
func FuzzRequest(f *testing.F) {
	n := newNode(f)
	n.anna.post("/v1/todos", `{"content": "x"}`).wants(201)
	n.anna.post("/v1/scheduled-messages", `{"content": "x", "cron_expr": "0 9 * * *"}`).wants(201)
	for _, op := range n.contract.operations() {
		method, path, _ := strings.Cut(op, " ")
		at := target(path, "1-1", "d", "fire")
		for _, body := range []string{"", `{}`, `[]`, `{"content": "x", "due_at": "2026-02-30T24:00", "tz": "Local"}`, "{\"content\": \"\xff\"}", `{"content": "\ud800"}`,
			`{"content": "x", "cron_expr": "TZ=0"}`, `{"content": "x", "cron_expr": "@every -5m"}`, `{"content": "x", "rrule": "FREQ=YEARLY;BYEASTER=0"}`,
			`{"content": "x", "rrule": "DTSTART:00000101T000000\nRRULE:FREQ=SECONDLY;INTERVAL=2147483647;COUNT=-1;BYSETPOS=-366"}`,
			`{"token": "T", "platform": "ios", "device_id": "d"}`, `{"email": "anna@example.org", "password": "x"}`, `{"tz": null}`} {
			f.Add(method, at, body, "application/json", "k", `W/"x"`, "*/*")
		}
	}
	for _, at := range []string{"/v1/todos?limit=-1&cursor=AAAA&q=%&done=&due_before=+", "/v1/todos/0-9999999999999999999", "/v1/todos/%2F..%2F", "/peer/v1/changes",
		"/v1/todos?q=%00%ff", "/v1/fires/%00", "/openapi.json?x", "//", "/v1/todos/" + strings.Repeat("a", 3000)} {
		f.Add("GET", at, "", ";", "\x00", ",", ";q=,")
	}
	f.Fuzz(func(t *testing.T, method, at, body, kind, key, tag, accept string) {
		u, err := url.ParseRequestURI(at)
		if err != nil || u.Host != "" {
			t.Skip("no server would hand it on")
		}
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method, r.URL, r.RequestURI = method, u, at
		for name, value := range map[string]string{"Content-Type": kind, "Idempotency-Key": key, "If-Match": tag, "If-None-Match": tag, "Accept": accept} {
			r.Header.Set(name, value)
		}
		for _, who := range []person{n.anna, {node: n}, n.local()} {
			for name, values := range who.header {
				r.Header[name] = values
			}
			w := httptest.NewRecorder()
			r.Body = http.NoBody
			if body != "" {
				r.Body = httptest.NewRequest("POST", "/", strings.NewReader(body)).Body
			}
			n.handler.ServeHTTP(w, r)
			if w.Code >= 500 || w.Code >= 400 && w.Header().Get("Content-Type") != problemJSON {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
	})
}
