package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// What was refused does not come back: it may be a password in the wrong field.
func TestAProblemNeverRepeatsWhatWasSent(t *testing.T) {
	n := newNode(t)
	const canary = "Rumpelstilzchen"
	n.secrets = append(n.secrets, canary)
	long := strings.Repeat(canary, 100)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/auth/login", `{"email": "` + canary + `", "password": "` + canary + `"}`},
		{"POST", "/v1/auth/login", `{"email": "` + long + `", "password": "` + long + `"}`},
		{"POST", "/v1/auth/login", `{"email": "a@b.example", "password": ["` + canary + `"]}`},
		{"POST", "/v1/auth/login", `{"email": "a@b.example", "password": "` + canary + `"`},
		{"POST", "/v1/auth/login", `{"email": "a@b.example", "password": "` + canary + `\ud800"}`},
		{"POST", "/v1/auth/login", `"` + canary + `"`},
		{"POST", "/v1/todos", `{"content": "x", "due_at": "` + canary + `"}`},
		{"POST", "/v1/todos", `{"content": "x", "due_on": "` + canary + `"}`},
		{"POST", "/v1/todos", `{"content": "x", "tz": "` + canary + `"}`},
		{"POST", "/v1/scheduled-messages", `{"content": "x", "trigger_at": "` + canary + `"}`},
		{"POST", "/v1/scheduled-messages", `{"content": "x", "cron_expr": "` + canary + `"}`},
		{"POST", "/v1/scheduled-messages", `{"content": "x", "cron_expr": "* * * * ` + canary + `"}`},
		{"POST", "/v1/scheduled-messages", `{"content": "x", "rrule": "` + canary + `"}`},
		{"POST", "/v1/scheduled-messages", `{"content": "x", "rrule": "FREQ=` + canary + `"}`},
		{"POST", "/v1/scheduled-messages", `{"content": "x", "cron_expr": "0 9 * * *", "tz": "` + canary + `"}`},
		{"POST", "/v1/scheduled-messages", `{"content": "x", "action": "` + canary + `"}`},
		{"POST", "/v1/push-tokens", `{"token": "` + canary + ` ", "platform": "` + canary + `", "device_id": "d"}`},
		{"POST", "/v1/push-tokens", `{"token": "` + canary + ` ", "platform": "ios", "device_id": " ` + canary + `"}`},
		{"PATCH", "/v1/me", `{"tz": "` + canary + `"}`},
		{"GET", "/v1/todos?done=" + canary, ""},
		{"GET", "/v1/todos?limit=" + canary, ""},
		{"GET", "/v1/todos?cursor=" + canary, ""},
		{"GET", "/v1/todos?due_before=" + canary, ""},
		{"GET", "/v1/todos?colour=" + canary, ""},
		{"GET", "/v1/todos/" + canary, ""},
		{"GET", "/v1/fires/" + canary, ""},
		{"GET", "/" + canary, ""},
		{canary, "/v1/todos", ""},
	} {
		a := n.anna.with("Idempotency-Key", "").ask(c.method, c.path, c.body)
		if a.status < 400 || strings.Contains(string(a.body), canary) {
			t.Errorf("%s: %d %s", a.what, a.status, a.body)
		}
		for name, values := range a.header {
			if strings.Contains(strings.Join(values, ""), canary) {
				t.Errorf("%s: %s repeats it", a.what, name)
			}
		}
	}
}

// Each kind of fault has one status; a wait is told in whole seconds, never too few.
func TestEachKindOfFaultHasItsStatus(t *testing.T) {
	n := newNode(t)
	n.broken = true
	a := n.inside()
	for kind, want := range map[fault.Kind]int{
		fault.Malformed: 400, fault.Unauthenticated: 401, fault.NotFound: 404, fault.Conflict: 409,
		fault.Stale: 412, fault.TooLarge: 413, fault.Invalid: 422, fault.TooMany: 429, fault.Internal: 500, fault.Unavailable: 503,
	} {
		p := a.problem(t.Context(), "GET /x", fault.New(kind, "some_code", "A sentence.").After(1500*time.Millisecond).In("field", "why")).(*problem)
		equal(t, string(kind), p.Status, want)
		equal(t, string(kind), p.Type, "urn:tandem:problem:some_code")
		equal(t, string(kind), p.GetHeaders().Get("Retry-After"), "2")
		equal(t, string(kind), p.Errors[0], fault.Field{Name: "field", Detail: "why"})
	}
	for wait, want := range map[time.Duration]string{0: "", time.Millisecond: "1", time.Second: "1", time.Second + 1: "2", time.Hour: "3600"} {
		p := a.problem(t.Context(), "GET /x", fault.New(fault.TooMany, "x", "X.").After(wait)).(*problem)
		equal(t, wait.String(), p.GetHeaders().Get("Retry-After"), want)
	}
	p := a.problem(t.Context(), "GET /x", errors.New("the password is hunter2")).(*problem)
	equal(t, "unknown error", p.Status, 500)
	if strings.Contains(p.Detail, "hunter2") || !strings.Contains(n.logged.String(), "hunter2") {
		t.Error("the cause of a failure is for the log, and for it alone")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	before := n.logged.Len()
	equal(t, "a caller who hung up", a.problem(gone, "GET /x", gone.Err()).(*problem).Status, 499)
	equal(t, "lines logged of it", n.logged.Len()-before, 0)
	equal(t, "a failure while the caller hangs up", a.problem(gone, "GET /x", sqlite.ErrFull).(*problem).Status, 503)
}

// inside is the node's api, for what no route brings about.
func (n *node) inside() *api { return &api{Services: n.services} }

// A bug costs one request, and the log says where it is.
func TestAPanicIsOneFailedRequest(t *testing.T) {
	n := newNode(t)
	n.broken = true
	n.crash = "api.committed"
	n.anna.post("/v1/todos", `{"content": "x"}`).refuses(500, "internal")
	for _, want := range []string{"level=ERROR", "a handler panicked", "killed at api.committed", "api.once", "POST /v1/todos"} {
		if !strings.Contains(n.logged.String(), want) {
			t.Errorf("the log does not have %q: %s", want, n.logged.String())
		}
	}
	n.crash = ""
	n.anna.get("/v1/todos").wants(200)
	// What http.Server uses to hang up is its own affair.
	n.handler.(edge).GET("/v1/abort", func(echo.Context) error { panic(http.ErrAbortHandler) })
	defer func() { equal(t, "panic", recover(), any(http.ErrAbortHandler)) }()
	n.anna.get("/v1/abort")
}

// A full disk is told as such; nothing is half written and the node lives on.
func TestAFullDiskIsTold(t *testing.T) {
	n := newNode(t)
	n.broken = true
	n.sql(`CREATE TRIGGER full BEFORE INSERT ON todos WHEN new.content = 'full' BEGIN SELECT RAISE(FAIL, 'stands for a failing disk'); END`)
	rows := n.rows()
	n.anna.with("Idempotency-Key", "k").post("/v1/todos", `{"content": "full"}`).refuses(500, "internal")
	equal(t, "rows", n.rows(), rows)
	n.anna.with("Idempotency-Key", "k").post("/v1/todos", `{"content": "room"}`).wants(201)
}

func TestLiveAndReady(t *testing.T) {
	n := newNode(t)
	for _, method := range []string{"GET", "HEAD"} {
		equal(t, "alive", person{node: n}.ask(method, "/livez", "").wants(200).text("status"), "alive")
		equal(t, "ready", person{node: n}.ask(method, "/readyz", "").wants(200).text("status"), "ready")
	}
	n.broken, n.ill = true, sqlite.ErrCorrupt
	person{node: n}.get("/readyz").refuses(503, "not_ready")
	person{node: n}.get("/livez").wants(200)
	if !strings.Contains(n.logged.String(), "database_corrupt") {
		t.Errorf("the log does not say why: %s", n.logged.String())
	}
}
