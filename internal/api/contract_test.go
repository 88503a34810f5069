package api

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// contract is /openapi.json as JSON.
type contract map[string]any

func describe(n *node) contract {
	w := httptest.NewRecorder()
	n.handler.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	var c contract
	n.must(json.Unmarshal(w.Body.Bytes(), &c))
	return c
}

// dig returns what lies at a path of names.
func dig(v any, path ...string) any {
	for _, step := range path {
		m, _ := v.(map[string]any)
		v = m[step]
	}
	return v
}

// operations yields each operation as "GET /v1/todos/{ref}", sorted.
func (c contract) operations() (out []string) {
	for path, item := range c["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			out = append(out, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(out)
	return out
}

// find returns the operation that serves a path.
func (c contract) find(method, path string) map[string]any {
	for template, item := range c["paths"].(map[string]any) {
		pattern := regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`)
		if regexp.MustCompile(`^` + pattern + `$`).MatchString(path) {
			op, _ := dig(item, strings.ToLower(method)).(map[string]any)
			return op
		}
	}
	return nil
}

var code = regexp.MustCompile(`^[a-z][a-z0-9_]+$`)

// check holds an answer to its declared form, and a refusal to that of RFC 9457.
func (c contract) check(a answer, method, path string) {
	a.Helper()
	if a.status >= 400 {
		c.checkProblem(a)
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op := c.find(method, path)
	if op == nil || a.status == http.StatusNotModified {
		return
	}
	said, declared := dig(op, "responses", strconv.Itoa(a.status)).(map[string]any)
	if !declared {
		said, declared = dig(op, "responses", "default").(map[string]any)
	}
	if !declared || a.status < 400 && dig(op, "responses", strconv.Itoa(a.status)) == nil {
		a.Errorf("%s: %d is not declared", a.what, a.status)
		return
	}
	content, _ := said["content"].(map[string]any)
	if len(content) == 0 {
		if len(a.body) > 0 {
			a.Errorf("%s: %d with a body that is not declared: %s", a.what, a.status, a.body)
		}
		return
	}
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	schema := dig(content, kind, "schema")
	if schema == nil {
		a.Errorf("%s: %d as %q; declared are %v", a.what, a.status, kind, content)
		return
	}
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.Errorf("%s: %v", a.what, err)
	}
	for _, wrong := range c.wrong(schema, v, "") {
		a.Errorf("%s: %d %s\n%.500s", a.what, a.status, wrong, a.body)
	}
}

func (c contract) checkProblem(a answer) {
	a.Helper()
	equal(a, a.what+": content type", a.header.Get("Content-Type"), "application/problem+json")
	equal(a, a.what+": type", a.text("type"), "urn:tandem:problem:"+a.text("code"))
	equal(a, a.what+": title", a.text("title"), http.StatusText(a.status))
	equal(a, a.what+": status", a.at("status"), any(float64(a.status)))
	if !code.MatchString(a.text("code")) || !strings.HasSuffix(a.text("detail"), ".") {
		a.Errorf("%s: no problem: %s", a.what, a.body)
	}
	for name := range a.json() {
		if !slices.Contains([]string{"type", "title", "status", "code", "detail", "errors"}, name) {
			a.Errorf("%s: a problem with %q: %s", a.what, name, a.body)
		}
	}
	if challenge := a.header.Get("WWW-Authenticate"); (a.status == http.StatusUnauthorized) != strings.HasPrefix(challenge, "Bearer ") {
		a.Errorf("%s: %d with WWW-Authenticate %q", a.what, a.status, challenge)
	}
	if after := a.header.Get("Retry-After"); after != "" {
		if n, err := strconv.Atoi(after); err != nil || n < 1 {
			a.Errorf("%s: Retry-After %q", a.what, after)
		}
	}
}

// wrong returns where v is not as the schema says.
func (c contract) wrong(schema, v any, at string) (out []string) {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return c.wrong(dig(map[string]any(c), strings.Split(ref, "/")[1:]...), v, at)
	}
	if !kinds(s["type"], v) {
		return []string{fmt.Sprintf("%s is %T, declared %v", at, v, s["type"])}
	}
	if enum, ok := s["enum"].([]any); ok && v != nil && !slices.Contains(enum, v) {
		out = append(out, fmt.Sprintf("%s is %v, declared %v", at, v, enum))
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			out = append(out, c.wrong(s["items"], item, fmt.Sprint(at, ".", i))...)
		}
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				out = append(out, fmt.Sprintf("%s.%s is missing", at, name))
			}
		}
		for name, value := range v {
			if p, declared := properties[name]; declared {
				out = append(out, c.wrong(p, value, at+"."+name)...)
			} else if s["additionalProperties"] == false {
				out = append(out, fmt.Sprintf("%s.%s is not declared", at, name))
			}
		}
	}
	return out
}

// kinds reports whether v is of a declared type; none declared is any.
func kinds(declared, v any) bool {
	is := map[string]bool{}
	switch v := v.(type) {
	case nil:
		is["null"] = true
	case bool:
		is["boolean"] = true
	case string:
		is["string"] = true
	case float64:
		is["number"], is["integer"] = true, v == float64(int64(v))
	case []any:
		is["array"] = true
	case map[string]any:
		is["object"] = true
	}
	switch d := declared.(type) {
	case string:
		return is[d]
	case []any:
		return slices.ContainsFunc(d, func(k any) bool { return is[k.(string)] })
	}
	return declared == nil
}

func TestTheDescriptionTellsOfEachOperation(t *testing.T) {
	n := newNode(t)
	want := []string{
		"DELETE /v1/push-tokens/{device_id}", "DELETE /v1/scheduled-messages/{ref}", "DELETE /v1/todos/{ref}",
		"GET /v1/fires/{id}", "GET /v1/me", "GET /v1/push-tokens", "GET /v1/scheduled-messages", "GET /v1/scheduled-messages/{ref}",
		"GET /v1/sync/conflicts", "GET /v1/sync/quarantine", "GET /v1/sync/status",
		"GET /v1/todos", "GET /v1/todos/{ref}",
		"PATCH /v1/me", "PATCH /v1/scheduled-messages/{ref}", "PATCH /v1/todos/{ref}",
		"POST /v1/auth/login", "POST /v1/auth/logout", "POST /v1/push-tokens", "POST /v1/scheduled-messages",
		"POST /v1/sync/compare", "POST /v1/sync/conflicts/{uid}/restore", "POST /v1/sync/held/decision", "POST /v1/sync/quarantine/discard", "POST /v1/sync/quarantine/{id}/discard", "POST /v1/sync/quarantine/{id}/retry",
		"POST /v1/todos",
		"POST /v1/todos/{ref}/undelete",
	}
	equal(t, "operations", fmt.Sprintf("%q", n.contract.operations()), fmt.Sprintf("%q", want))
	ids := map[any]bool{}
	for _, name := range want {
		method, path, _ := strings.Cut(name, " ")
		op := n.contract.find(method, path)
		success := map[string]string{"GET": "200", "PATCH": "200", "DELETE": "204"}[method]
		if method == "POST" {
			success = map[string]string{"/v1/auth/login": "200", "/v1/auth/logout": "204", "/v1/sync/held/decision": "200", "/v1/sync/quarantine/discard": "200", "/v1/sync/compare": "202"}[path]
			switch {
			case success != "":
			case strings.Contains(path, "{"): // does something with what is there
				success = "200"
			default:
				success = "201"
			}
		}
		if dig(op, "responses", success) == nil || dig(op, "responses", "default", "content", "application/problem+json", "schema") == nil {
			t.Errorf("%s declares %v", name, op["responses"])
		}
		if op["summary"] == "" || ids[op["operationId"]] {
			t.Errorf("%s: summary %q, id %q", name, op["summary"], op["operationId"])
		}
		ids[op["operationId"]] = true
		if open := path == "/v1/auth/login"; open != (op["security"] == nil) {
			t.Errorf("%s: security %v", name, op["security"])
		}
		takes, _ := dig(op, "requestBody", "content").(map[string]any)
		for kind := range takes {
			if kind != "application/json" && !(method == "PATCH" && kind == "application/merge-patch+json") {
				t.Errorf("%s takes %s", name, kind)
			}
		}
	}
}

// The library's own document names example.com, and its pages load from
// other people's hosts.
func TestTheDescriptionNamesNobodyElse(t *testing.T) {
	n := newNode(t)
	a := person{node: n}.get("/openapi.json").wants(200)
	equal(t, "content type", a.header.Get("Content-Type"), "application/openapi+json")
	for _, host := range []string{"example.com", "$schema", "unpkg", "cdn", "http://", "https://"} {
		if strings.Contains(string(a.body), host) {
			t.Errorf("the description has %q in it", host)
		}
	}
	for _, gone := range []string{"/docs", "/schemas/Problem.json", "/openapi.yaml", "/openapi-3.0.json"} {
		person{node: n}.get(gone).refuses(404, "no_such_route")
	}
}
