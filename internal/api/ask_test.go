package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// person is somebody who asks; without a header, a stranger.
type person struct {
	*node
	id     string
	header http.Header
}

func (c person) with(name, value string) person {
	h := c.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set(name, value)
	c.header = h
	return c
}

func (c person) get(target string) answer         { c.Helper(); return c.ask("GET", target, "") }
func (c person) post(target, body string) answer  { c.Helper(); return c.ask("POST", target, body) }
func (c person) patch(target, body string) answer { c.Helper(); return c.ask("PATCH", target, body) }
func (c person) delete(target string) answer      { c.Helper(); return c.ask("DELETE", target, "") }

// ask sends a request and holds the answer to what /openapi.json promises.
func (c person) ask(method, target, body string) answer {
	c.Helper()
	return c.send(method, target, strings.NewReader(body))
}

func (c person) send(method, target string, body io.Reader) answer {
	c.Helper()
	r := httptest.NewRequest(method, target, body)
	for name, values := range c.header {
		r.Header[name] = values
	}
	if r.ContentLength != 0 && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	a := answer{TB: c.TB, what: fmt.Sprintf("%s %.80s", method, target), status: w.Code, header: w.Header(), body: w.Body.Bytes()}
	if a.status >= 500 && !c.broken {
		c.Errorf("%s: %d %s\n%s", a.what, a.status, a.body, c.logged.String())
	}
	c.contract.check(a, method, r.URL.EscapedPath())
	return a
}

// answer is what came back.
type answer struct {
	testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

func (a answer) wants(status int) answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("%s: %d %s, want %d", a.what, a.status, a.body, status)
	}
	return a
}

// refuses wants a problem.
func (a answer) refuses(status int, code string) answer {
	a.Helper()
	if a.status != status || a.text("code") != code {
		a.Fatalf("%s: %d %.400s, want %d %s", a.what, a.status, a.body, status, code)
	}
	return a
}

func (a answer) json() (v map[string]any) {
	a.Helper()
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.Fatalf("%s: %v in %.200q", a.what, err, a.body)
	}
	return v
}

// at returns a value by its path, such as next.0.local.
func (a answer) at(path string) any {
	a.Helper()
	var v any = a.json()
	for step := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func (a answer) text(path string) string {
	a.Helper()
	s, _ := a.at(path).(string)
	return s
}

// codes are those of the warnings.
func (a answer) codes() string {
	a.Helper()
	var out []string
	list, _ := a.at("warnings").([]any)
	for _, w := range list {
		out = append(out, w.(map[string]any)["code"].(string))
	}
	return strings.Join(out, " ")
}

// fields are the names of the errors.
func (a answer) fields() string {
	a.Helper()
	var out []string
	list, _ := a.at("errors").([]any)
	for _, w := range list {
		out = append(out, w.(map[string]any)["name"].(string))
	}
	return strings.Join(out, " ")
}

// refs are those of a list's items.
func (a answer) refs() (out []string) {
	a.Helper()
	for _, item := range a.at("items").([]any) {
		out = append(out, item.(map[string]any)["ref"].(string))
	}
	return out
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
