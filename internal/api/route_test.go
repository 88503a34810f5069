package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"tandem/internal/standin"
)

func TestAnAddressThatIsNone(t *testing.T) {
	n := newNode(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/nowhere", "/v1/todos/", "/v1/todos/0-1/", "/v1/todos/0-1/x", "/V1/todos", "//v1/todos",
		"/v1//todos", "/v1/fires", "/v1/fires/", "/v1/push-tokens/", "/v1/%74odos", "/v1/todos%2F", "/peer", "/robots.txt", "/v1/../livez", "/%00"} {
		for _, method := range []string{"GET", "POST", "HEAD"} {
			if (path == "/v1/todos%2F" || path == "/v1/todos/0-1/") && method == "POST" {
				continue
			}
			a := n.anna.ask(method, path, "")
			if a.status != 404 || a.text("code") != "no_such_route" {
				t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
			}
		}
	}
}

func TestAMethodThatAnAddressDoesNotTake(t *testing.T) {
	n := newNode(t)
	for path, want := range map[string]string{
		"/v1/todos": "GET HEAD OPTIONS POST", "/v1/todos/1-1": "DELETE GET HEAD OPTIONS PATCH", "/v1/me": "GET HEAD OPTIONS PATCH",
		"/v1/auth/login": "OPTIONS POST", "/livez": "GET HEAD OPTIONS", "/openapi.json": "GET HEAD OPTIONS",
		"/v1/push-tokens/d": "DELETE OPTIONS",
	} {
		for _, method := range []string{"PUT", "TRACE", "CONNECT", "PROPFIND", "get"} {
			a := n.anna.ask(method, path, "").refuses(405, "method_not_allowed")
			allowed := strings.Split(strings.ReplaceAll(a.header.Get("Allow"), " ", ""), ",")
			slices.Sort(allowed)
			equal(t, method+" "+path+": Allow", strings.Join(allowed, " "), want)
		}
		if !strings.Contains(want, "GET") {
			n.anna.ask("HEAD", path, "").wants(405)
		}
	}
	a := n.anna.ask("PUT", "/v1/push-tokens/d", "")
	equal(t, "errors", a.at("errors"), nil)
}

// HEAD is GET without the body, which the server leaves out.
func TestHeadIsGetWithoutTheBody(t *testing.T) {
	n := newNode(t)
	ref := n.anna.post("/v1/todos", `{"content": "x"}`).wants(201).text("ref")
	server := httptest.NewServer(n.handler)
	defer server.Close()
	for path, status := range map[string]int{"/v1/todos/" + ref: 200, "/v1/todos": 200, "/v1/todos/1-99": 404, "/livez": 200, "/openapi.json": 200} {
		var of [2]*http.Response
		for i, method := range []string{"GET", "HEAD"} {
			r, err := http.NewRequest(method, server.URL+path, nil)
			n.must(err)
			r.Header = n.anna.header.Clone()
			of[i], err = http.DefaultClient.Do(r)
			n.must(err)
			defer of[i].Body.Close()
			equal(t, method+" "+path, of[i].StatusCode, status)
			of[i].Header.Del("Date")
		}
		for name := range of[0].Header {
			if name != "Content-Length" {
				equal(t, path+": "+name, of[1].Header.Get(name), of[0].Header.Get(name))
			}
		}
		body, err := io.ReadAll(of[1].Body)
		n.must(err)
		equal(t, path+": body", string(body), "")
	}
}

// A path means what it decodes to, however it is written.
func TestAPathIsDecodedOnce(t *testing.T) {
	n := newNode(t)
	for _, id := range []string{"plain", "a/b", "a%2Fb", "a%b", "a?b#c", "..", "é"[:0] + "x&y=z", "100%", "+"} {
		a := n.anna.post("/v1/push-tokens", `{"token": "T", "platform": "web", "device_id": "`+id+`"}`).wants(201)
		at := a.header.Get("Location")
		equal(t, id+": Location", at, "/v1/push-tokens/"+url.PathEscape(id))
		equal(t, id+": devices", n.count(`SELECT count(*) FROM push_tokens WHERE device_id = ?`, id), 1)
		n.anna.delete(at).wants(204)
		equal(t, id+": devices", n.count(`SELECT count(*) FROM push_tokens`), 0)
	}
	ref := n.anna.post("/v1/todos", `{"content": "x"}`).wants(201).text("ref")
	n.anna.get("/v1/todos/" + strings.Replace(ref, "-", "%2D", 1)).wants(200)
	n.anna.get("/v1/todos/"+strings.Replace(ref, "-", "%252D", 1)).refuses(404, "todo_not_found")
}

// Each row has one address.
func TestARefThatIsNone(t *testing.T) {
	n := newNode(t)
	n.anna.post("/v1/todos", `{"content": "x"}`).wants(201)
	n.anna.post("/v1/scheduled-messages", `{"content": "x", "trigger_at": "2027-01-01T00:00:00Z"}`).wants(201)
	rows := n.rows()
	for _, ref := range []string{
		"0-0", "2-1", "00-1", "-1", "1-", "-", "1", "1-01", "1-+1", "1--1", "1-1-1", "1-1.0", "1-0x1", "01-1", "1-1e0", "1_1", "1–1", "１-1", "%20", "1-1%20", "%201-1",
		"0-9223372036854775808", "0-9999999999999999999", "1-" + strings.Repeat("9", 400), "%F0%9F%98%80", "%FF", "%00", "1-1%00", "*", "1-1,1-1",
		"1-9223372036854775807", "0-1", "1-2",
	} {
		for path, code := range map[string]string{"/v1/todos/": "todo_not_found", "/v1/scheduled-messages/": "scheduled_message_not_found"} {
			n.anna.get(path+ref).refuses(404, code)
			n.anna.with("If-Match", "*").patch(path+ref, `{"content": "y"}`).refuses(404, code)
			n.anna.delete(path+ref).refuses(404, code)
		}
	}
	equal(t, "rows", n.rows(), rows)
}

func TestAQueryThatCannotBeRead(t *testing.T) {
	n := newNode(t)
	for query, want := range map[string]string{
		"limit=%zz": "bad_query", "limit=5;done=true": "bad_query", "%": "bad_query", "q=%ff": "bad_query", "q=a%00b": "bad_query",
		"limit=0": "invalid_request", "limit=-1": "invalid_request", "limit=1.5": "invalid_request", "limit=ten": "invalid_request",
		"limit=9223372036854775808": "invalid_request", "limit=%2B": "invalid_request",
		"done=yes": "invalid_request", "done=TRUE": "invalid_request", "Limit=5": "invalid_request", "offset=5": "invalid_request",
		"": "", "limit=1": "", "limit=1000": "", "limit=9223372036854775807": "", "limit=": "", "done=": "", "q=": "", "cursor=": "",
		"q=" + strings.Repeat("x", 200): "", "q=" + strings.Repeat("x", 201): "invalid_request",
	} {
		a := n.anna.get("/v1/todos?" + query)
		if want == "" {
			a.wants(200)
		} else if a.status != map[string]int{"bad_query": 400, "invalid_request": 422}[want] || a.text("code") != want {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	equal(t, "fields", n.anna.get("/v1/todos?offset=5&page=2").fields(), "offset page")
	equal(t, "fields", n.anna.get("/v1/todos?limit=0").fields(), "limit")
	n.anna.get("/v1/me?x=1").refuses(422, "invalid_request")
	n.anna.post("/v1/todos?x=1", `{"content": "x"}`).refuses(422, "invalid_request")
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 0)
}

// The handler does its work over a wire as well as for a recorder.
func TestTheHandlerServesOverAWire(t *testing.T) {
	n := newNode(t)
	client := &http.Client{Transport: standin.Transport(n.handler)}
	r, err := http.NewRequest("POST", "http://cloud/v1/todos", strings.NewReader(`{"content": "x"}`))
	n.must(err)
	r.Header = n.anna.header.Clone()
	res, err := client.Do(r)
	n.must(err)
	defer res.Body.Close()
	equal(t, "status", res.StatusCode, 201)
	equal(t, "Location", res.Header.Get("Location"), "/v1/todos/1-1")
}
