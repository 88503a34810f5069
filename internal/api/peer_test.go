package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// local is the other node, as it calls.
func (n *node) local() person {
	return person{node: n}.with("Authorization", "Bearer "+peerSecret).with("Tandem-Node", "local")
}

// fromPeer has the peer offer rows.
func (n *node) fromPeer(rows ...string) {
	n.Helper()
	to := fmt.Sprint("to ", len(rows), rows)[:20]
	a := n.local().post("/peer/v1/changes", fmt.Sprintf(`{"from": %q, "to": %q, "rows": [%s]}`, n.cursor(), to, strings.Join(rows, ","))).wants(200)
	equal(n, "cursor", a.text("cursor"), to)
}

// cursor is how far the peer's log was read here.
func (n *node) cursor() string {
	n.Helper()
	c, err := n.log.Cursor(n.Context(), "local")
	n.must(err)
	return c
}

const entry = `{"table": "todos", "origin": 0, "id": 7, "uid": "0123456789abcdef0123456789abcdef", "owner": "01ANNA00000000000000000000",
	"created_at": 1, "updated_at": 1, "updated_by": "local", "content": "x"}`

// S:64. To a stranger each path under /peer/ is alike.
func TestToAStrangerEachPathOfThePeersIsAlike(t *testing.T) {
	n := newNode(t)
	rows := n.rows()
	strangers := map[string]person{
		"nobody":               {node: n},
		"a user":               n.anna,
		"a user as the peer":   n.anna.with("Tandem-Node", "local"),
		"a wrong secret":       n.local().with("Authorization", "Bearer "+peerSecret[1:]),
		"half a secret":        n.local().with("Authorization", "Bearer "+peerSecret[:10]),
		"another scheme":       n.local().with("Authorization", "Basic "+peerSecret),
		"no scheme":            n.local().with("Authorization", peerSecret),
		"another node":         n.local().with("Tandem-Node", "cloud"),
		"no node":              n.local().with("Tandem-Node", ""),
		"another case of node": n.local().with("Tandem-Node", "Local"),
	}
	var alike string
	for who, s := range strangers {
		for _, path := range []string{"/peer/", "/peer/v1", "/peer/v1/hello", "/peer/v1/changes", "/peer/v1/accounts", "/peer/v1/push-tokens",
			"/peer/v1/push-tokens/unregistered", "/peer/v1/pair", "/peer/v1/nowhere", "/peer/v2/x", "/peer/v1/changes?secret=" + strings.ReplaceAll(peerSecret, " ", "+"),
			"/%70eer/v1/hello", "/peer%2Fv1%2Fhello", "/peer/../peer/v1/hello"} {
			for _, method := range []string{"GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE"} {
				a := s.ask(method, path, `{"from": "", "to": "x", "rows": [`+entry+`]}`)
				if a.status != 401 || a.text("code") != "not_the_peer" || alike != "" && string(a.body) != alike {
					t.Errorf("%s: %s: %d %s", who, a.what, a.status, a.body)
				}
				alike = string(a.body)
			}
		}
	}
	equal(t, "rows", n.rows(), rows)
	equal(t, "version of who greeted", n.services.Link().Version, "")
	n.local().get("/peer/v1/nowhere").refuses(404, "no_such_route")
	n.local().ask("PUT", "/peer/v1/changes", "").refuses(405, "method_not_allowed")
}

// Who has a code may pair and do nothing else; who has the secret need not.
func TestACodeOpensOneDoorAndTheSecretAllOthers(t *testing.T) {
	n := newNode(t)
	joining := person{node: n}.with("Authorization", "Bearer "+pairCode)
	a := joining.post("/peer/v1/pair", `"local"`).wants(200)
	equal(t, "the answer", string(a.body), `"local `+pairCode+`"`)
	equal(t, "kept by", a.header.Get("Cache-Control"), "no-store")
	joining.get("/peer/v1/pair").refuses(405, "method_not_allowed")
	joining.post("/peer/v1/pair", "junk").refuses(400, "bad_page")
	n.local().post("/peer/v1/pair", `"local"`).refuses(401, "not_the_peer")
	for _, path := range []string{"/peer/v1/hello", "/peer/v1/changes", "/peer/v1/accounts", "/peer/v1/pair/", "/peer/v1//pair", "/peer/v1/pair/../accounts"} {
		for _, as := range []person{joining, joining.with("Tandem-Node", "local")} {
			as.get(path).refuses(401, "not_the_peer")
		}
	}
}

// A node without a peer has no such door at all.
func TestANodeWithoutAPeer(t *testing.T) {
	n := newNode(t)
	n.services.Peer = nil
	n.handler = New(n.services)
	n.local().get("/peer/v1/changes").refuses(404, "no_such_route")
	n.anna.get("/v1/me").wants(200)
}

// What is no page is refused as a whole: nothing of it is stored, and the cursor
// stays, so that nothing in it is passed over.
func TestWhatIsNoPageIsNotApplied(t *testing.T) {
	n := newNode(t)
	rows := n.rows()
	page := `{"from": "", "to": "x", "rows": [` + entry + `]}`
	for name, body := range map[string]string{
		"HTML":                `<!doctype html><html><body>502 Bad Gateway</body></html>`,
		"nothing":             "",
		"a word":              "junk",
		"half a page":         page[:200],
		"two pages":           page + page,
		"a list":              `[]`,
		"a number":            `7`,
		"rows that are none":  `{"from": "", "to": "x", "rows": {}}`,
		"a cursor of numbers": `{"from": 1, "to": 2, "rows": []}`,
	} {
		a := n.local().post("/peer/v1/changes", body)
		if a.status != 400 || a.text("code") != "bad_page" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		equal(t, name+": rows", n.rows(), rows)
		equal(t, name+": cursor", n.cursor(), "")
	}
	for _, path := range []string{"hello", "push-tokens", "push-tokens/unregistered"} {
		for _, body := range []string{"<html>", "", "7", `"x"`, `{"registrations": 7, "node": 7}`} {
			n.local().post("/peer/v1/"+path, body).refuses(400, "bad_page")
		}
	}
	equal(t, "rows", n.rows(), rows)
	equal(t, "version of who greeted", n.services.Link().Version, "")
	n.fromPeer(entry)
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 1)
}

// S:42. An entry that cannot be taken is set aside and told of, with no word of what
// it holds; the rows beside it are stored, and the page is done with.
func TestAnEntryThatCannotBeTakenKeepsNoOtherAway(t *testing.T) {
	n := newNode(t)
	const after = `{"table": "todos", "origin": 0, "id": 8, "uid": "89abcdef0123456789abcdef01234567", "owner": "01ANNA00000000000000000000",
		"created_at": 1, "updated_at": 1, "updated_by": "local", "content": "y"}`
	for name, bad := range map[string]string{
		"a number":             `7`,
		"a text":               `"x"`,
		"nothing":              `{}`,
		"an unknown table":     `{"table": "users", "origin": 0, "id": 1}`,
		"a table of the store": `{"table": "sync_cursors"}`,
		"an injected table":    `{"table": "todos; DROP TABLE todos"}`,
		"no key":               `{"table": "todos", "origin": 2, "id": 1, "uid": "11111111111111111111111111111111", "owner": "a", "updated_at": 1, "updated_by": "x"}`,
		"no uid":               `{"table": "todos", "origin": 0, "id": 1, "owner": "a", "updated_at": 1, "updated_by": "x"}`,
		"a short uid":          `{"table": "todos", "origin": 0, "id": 1, "uid": "11", "owner": "a", "updated_at": 1, "updated_by": "x"}`,
		"no stamp":             `{"table": "todos", "origin": 0, "id": 1, "uid": "11111111111111111111111111111111", "owner": "a"}`,
		"a wrong type":         `{"table": "todos", "origin": 0, "id": 1, "uid": "11111111111111111111111111111111", "owner": "a", "updated_at": 1, "updated_by": "x", "content": 7}`,
		"another row's key":    `{"table": "todos", "origin": 0, "id": 7, "uid": "11111111111111111111111111111111", "owner": "a", "updated_at": 1, "updated_by": "x"}`,
		"a fact that is none":  `{"table": "facts", "kind": "fired"}`,
		"invalid UTF-8":        "\"\xff\"",
		"NUL":                  `{"table": "todos", "content": "hunter2\u0000"}`,
		"half a surrogate":     `{"table": "todos", "content": "hunter2\ud800"}`,
		"a name twice":         `{"table": "todos", "table": "facts"}`,
		"deep":                 strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100),
	} {
		n.sql(`DELETE FROM todos`)
		n.sql(`DELETE FROM sync_quarantine`)
		n.sql(`DELETE FROM sync_cursors`)
		rows := n.rows()
		n.fromPeer(entry, bad, after)
		want := strings.NewReplacer("todos=0", "todos=2", "sync_cursors=0", "sync_cursors=1", "sync_quarantine=0", "sync_quarantine=1").Replace(rows)
		equal(t, name+": rows", n.rows(), want)
		aside, err := n.log.Quarantine(t.Context(), 10)
		n.must(err)
		kind := sync.Malformed
		if name == "another row's key" {
			kind = sync.IDReuse
		}
		if len(aside) != 1 || aside[0].Kind != kind || aside[0].Reason == "" || strings.Contains(aside[0].Reason, "hunter2") {
			t.Errorf("%s: set aside is %+v", name, aside)
		}
	}
}

func TestAPageThatIsTooLong(t *testing.T) {
	const maxPage = 16 << 20
	n := newNode(t)
	long := `{"from": "", "to": "x", "rows": [` + entry + `]` + strings.Repeat(" ", maxPage) + `}`
	n.local().post("/peer/v1/changes", long).refuses(413, "body_too_large")
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 0)
	fits := `{"from": "", "to": "x", "rows": [` + entry + `]}`
	n.local().post("/peer/v1/changes", fits+strings.Repeat(" ", maxPage-len(fits))).wants(200)
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 1)
}

// S:47: a page whose answer was lost is offered again, and changes nothing.
func TestAPageOfferedTwiceIsAppliedOnce(t *testing.T) {
	n := newNode(t)
	page := `{"from": "", "to": "x", "rows": [` + entry + `]}`
	n.crash, n.broken = "sync.applied", true
	n.local().post("/peer/v1/changes", page).refuses(500, "internal")
	n.crash = ""
	rows := n.rows()
	for range 3 {
		equal(t, "cursor", n.local().post("/peer/v1/changes", page).wants(200).text("cursor"), "x")
		equal(t, "rows", n.rows(), rows)
	}
	late := n.local().post("/peer/v1/changes", `{"from": "w", "to": "v", "rows": [`+entry+`]}`).wants(200)
	equal(t, "a page from elsewhere", late.text("cursor"), "x")
}

func TestTheNodesGreetEachOther(t *testing.T) {
	n := newNode(t)
	theirs := n.hello()
	theirs.Node, theirs.Origin, theirs.Scheduler, theirs.Incarnation, theirs.Version = "local", 0, "active", "other", "theirs"
	greeting := func(h link.Hello) string { b, _ := json.Marshal(h); return string(b) }
	a := n.local().post("/peer/v1/hello", greeting(theirs)).wants(200)
	equal(t, "name", a.text("node"), "cloud")
	equal(t, "incarnation", a.text("incarnation"), n.log.Incarnation())
	heard := n.services.Link()
	equal(t, "heard", heard.Version+" "+heard.Scheduler, "theirs active")
	for _, h := range []link.Hello{n.hello(), {Node: "local", Origin: 1, Protocol: link.Protocol}, {Node: "other", Protocol: link.Protocol}, {Node: "local", Protocol: link.Range{Min: 2, Max: 2}}, {}} {
		n.local().post("/peer/v1/hello", greeting(h)).wants(200) // the caller sees for itself
	}
	equal(t, "the greeting that counts", n.services.Link().Version, "theirs")
}

// The copies that the other node keeps are given whole, and to it alone.
func TestThePeerCopiesAccountsAndTokens(t *testing.T) {
	n := newNode(t)
	n.anna.post("/v1/push-tokens", `{"token": "T1", "platform": "ios", "device_id": "d"}`).wants(201)
	a := n.local().get("/peer/v1/changes?accounts=&tokens=").wants(200)
	for _, set := range []string{"accounts", "tokens"} {
		if a.text("sets."+set) == "" {
			t.Errorf("a poll that holds no %s does not hear of them: %s", set, a.body)
		}
	}
	accounts := n.local().get("/peer/v1/accounts").wants(200)
	equal(t, "Cache-Control", accounts.header.Get("Cache-Control"), "no-store")
	equal(t, "generation", accounts.text("generation"), a.text("sets.accounts"))
	equal(t, "accounts", len(accounts.at("body.accounts").([]any)), 2)
	tokens := n.local().get("/peer/v1/push-tokens").wants(200)
	equal(t, "Cache-Control of tokens", tokens.header.Get("Cache-Control"), "no-store")
	equal(t, "token", tokens.text("body.tokens.0.token"), "T1")
	equal(t, "generation", tokens.text("generation"), a.text("sets.tokens"))
	// What the other node hears of, it forwards.
	n.wait(time.Second)
	forwarded := strings.NewReplacer("T1", "T2").Replace(string(tokens.body[strings.Index(string(tokens.body), "[{"):]))
	forwarded = `{"registrations": ` + strings.TrimSuffix(strings.TrimSpace(forwarded), "}}") + `}`
	forwarded = strings.Replace(forwarded, fmt.Sprintf(`"updated_at":%d`, n.now().Add(-time.Second).UnixMilli()), fmt.Sprintf(`"updated_at":%d`, n.now().UnixMilli()), 1)
	n.local().post("/peer/v1/push-tokens", forwarded).wants(204)
	equal(t, "devices", n.count(`SELECT count(*) FROM push_tokens WHERE token = 'T2'`), 1)
	n.local().post("/peer/v1/push-tokens", `{"registrations": [{"token": "T3"}]}`).refuses(400, "bad_push_tokens")
	equal(t, "devices", n.count(`SELECT count(*) FROM push_tokens`), 1)
	n.local().post("/peer/v1/push-tokens/unregistered", `[]`).wants(204)
}

// A todo posted here is in the next page; a cursor that is junk begins again.
func TestThePeerReadsWhatWasPosted(t *testing.T) {
	n := newNode(t)
	n.anna.post("/v1/todos", `{"content": "Milch"}`).wants(201)
	first := n.local().get("/peer/v1/changes").wants(200)
	equal(t, "content", first.text("rows.0.content"), "Milch")
	next := n.local().get("/peer/v1/changes?cursor=" + first.text("cursor")).wants(200)
	equal(t, "rows", fmt.Sprint(next.at("rows")), "[]")
	for _, junk := range []string{"junk", "a.b.c", "%00", "%ff", "9.9.9"} {
		a := n.local().get("/peer/v1/changes?cursor=" + junk + "&wait=1h").wants(200)
		equal(t, junk+": rows", len(a.at("rows").([]any)), 1)
		if a.text("reset") == "" {
			t.Errorf("%s: no reset: %s", junk, a.body)
		}
	}
	for _, wait := range []string{"junk", "-1h", "0", "NaN", ""} {
		n.local().get("/peer/v1/changes?cursor=" + first.text("cursor") + "&wait=" + wait).wants(200)
	}
}

// A poll that is held open ends with a change, with its time, and with the node.
func TestAPollThatIsHeldOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		cursor := n.local().get("/peer/v1/changes").wants(200).text("cursor")
		poll := func() (took time.Duration, rows int) {
			start := time.Now()
			a := n.local().get("/peer/v1/changes?wait=50s&cursor=" + cursor).wants(200)
			if c := a.text("cursor"); c != "" {
				cursor = c
			}
			return time.Since(start), len(a.at("rows").([]any))
		}
		took, rows := poll()
		equal(t, "an idle poll", fmt.Sprint(took, rows), "50s 0")
		time.AfterFunc(7*time.Second, func() { n.anna.post("/v1/todos", `{"content": "x"}`).wants(201) })
		took, rows = poll()
		equal(t, "a poll with a change", fmt.Sprint(took, rows), "7s 1")
		time.AfterFunc(3*time.Second, n.stop)
		took, rows = poll()
		equal(t, "a poll at the end of the node", fmt.Sprint(took, rows), "3s 0")
	})
}
