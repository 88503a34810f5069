package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// sealed are the routes that are an admin's only.
var sealed = map[string]string{
	"/v1/sync/quarantine/todos:" + junkUID + "/retry":   "",
	"/v1/sync/quarantine/todos:" + junkUID + "/discard": "",
	"/v1/sync/quarantine/discard":                       `{"kind": "malformed"}`,
	"/v1/sync/held/decision":                            `{"verdict": "keep"}`,
	"/v1/sync/compare":                                  "",
}

const junkUID = "11111111111111111111111111111111"

// later is a row of a table that this version does not know.
func later(uid string) string {
	return fmt.Sprintf(`{"table": "later", "origin": 0, "id": 1, "uid": %q, "owner": "01ANNA00000000000000000000", "updated_at": 7, "updated_by": "local", "content": "hunter2"}`, uid)
}

func TestWhatIsSetAsideIsAnAdminsToSee(t *testing.T) {
	n := newNode(t)
	n.fromPeer(later(junkUID))
	rows := n.rows()
	for _, who := range []struct {
		person
		status int
		code   string
	}{{n.ben, 403, "not_admin"}, {person{node: n}, 401, "no_session"}, {n.local(), 401, "no_session"}} {
		who.get("/v1/sync/quarantine").refuses(who.status, who.code)
		who.get("/v1/sync/quarantine?limit=junk").refuses(who.status, who.code)
		for at, body := range sealed {
			who.post(at, body).refuses(who.status, who.code)
			who.with("Idempotency-Key", "k").post(at, "junk").refuses(who.status, who.code)
		}
	}
	equal(t, "rows", n.rows(), rows)
}

// S:42, S:63. An admin sees what is set aside, why, and how to name it; nothing of
// what it says.
func TestAListOfWhatIsSetAside(t *testing.T) {
	n := newNode(t)
	n.fromPeer(later(junkUID), `{"table": "todos", "origin": 0, "id": 9, "uid": "22222222222222222222222222222222", "owner": "01ANNA00000000000000000000", "updated_at": 7000, "updated_by": "local", "content": ["hunter2"]}`)
	n.wait(time.Minute)
	n.fromPeer(`["hunter2"]`, `{"table": "a/b:c?d", "uid": "hunter2"}`)
	var seen []string
	cursor := ""
	for {
		a := n.anna.get("/v1/sync/quarantine?limit=1&cursor=" + cursor).wants(200)
		if strings.Contains(string(a.body), "hunter2") {
			t.Errorf("it tells what an entry says: %s", a.body)
		}
		for i := range a.at("items").([]any) {
			at := fmt.Sprint("items.", i, ".")
			equal(t, "kind", a.text(at+"kind"), "malformed")
			if a.text(at+"reason") == "" {
				t.Errorf("no reason: %s", a.body)
			}
			seen = append(seen, strings.Join([]string{a.text(at + "at"), a.text(at + "table"), fmt.Sprint(a.at(at + "ref")), fmt.Sprint(a.at(at + "updated_at"))}, " "))
		}
		if cursor = a.text("next_cursor"); cursor == "" {
			break
		}
		n.anna.get("/v1/sync/conflicts?cursor="+cursor).refuses(400, "invalid_cursor")
	}
	slices.Sort(seen)
	equal(t, "set aside", strings.Join(seen, " | "), strings.Join([]string{
		"2026-02-01T12:00:00Z later 0-1 1970-01-01T00:00:00.007Z", "2026-02-01T12:00:00Z todos 0-9 1970-01-01T00:00:07Z",
		"2026-02-01T12:01:00Z  <nil> <nil>", "2026-02-01T12:01:00Z a/b:c?d <nil> <nil>",
	}, " | "))
	n.anna.get("/v1/sync/quarantine?limit=0").refuses(422, "invalid_request")
	n.anna.get("/v1/sync/quarantine?cursor=junk").refuses(400, "invalid_cursor")

	// Each can be named, whatever it says of itself.
	for _, item := range n.anna.get("/v1/sync/quarantine").at("items").([]any) {
		at := "/v1/sync/quarantine/" + url.PathEscape(item.(map[string]any)["id"].(string))
		a := n.anna.post(at+"/retry", "").wants(200)
		equal(t, "taken", a.at("taken"), any(false))
		equal(t, "id", a.at("entry.id"), item.(map[string]any)["id"])
		equal(t, "reason", a.at("entry.reason"), item.(map[string]any)["reason"])
		a = n.anna.post(at+"/discard", "").wants(200)
		equal(t, "id", a.at("id"), item.(map[string]any)["id"])
		n.anna.post(at+"/discard", "").refuses(404, "not_quarantined")
		n.anna.post(at+"/retry", "").refuses(404, "not_quarantined")
	}
	equal(t, "left", fmt.Sprint(n.anna.get("/v1/sync/quarantine").at("items")), "[]")
	for _, id := range []string{"x", ":", "todos", "todos:x", "todos" + junkUID, "todos:" + strings.ToUpper(strings.Repeat("a", 32)), "%00:" + junkUID} {
		n.anna.post("/v1/sync/quarantine/"+id+"/retry", "").refuses(404, "not_quarantined")
		n.anna.post("/v1/sync/quarantine/"+id+"/discard", "").refuses(404, "not_quarantined")
	}
}

// However much is set aside for one reason, one call forgets it, and nothing else.
func TestAllOfOneKindIsForgottenAtOnce(t *testing.T) {
	const discard = "/v1/sync/quarantine/discard"
	n := newNode(t)
	other := strings.NewReplacer("0123456789abcdef0123456789abcdef", junkUID, `"x"`, `"y"`).Replace(entry)
	rows := []string{entry, other} // under one key
	for i := range 300 {
		rows = append(rows, fmt.Sprintf(`{"a": %d}`, i), later(fmt.Sprintf("%032d", i+1)))
	}
	n.fromPeer(rows...)
	key := n.anna.with("Idempotency-Key", "k")
	for range 2 {
		a := key.post(discard, `{"kind": "malformed"}`).wants(200)
		equal(t, "kind", a.text("kind"), "malformed")
		equal(t, "entries", a.at("entries"), any(600.0))
		n.fromPeer(`{"a": "something that came after"}`) // which the same call does not forget again
	}
	left := n.anna.get("/v1/sync/quarantine").wants(200)
	equal(t, "left", fmt.Sprint(left.text("items.0.kind"), " ", left.text("items.1.kind"), " ", left.at("items.2")), "malformed id_reuse <nil>")
	equal(t, "entries", n.anna.post(discard, `{"kind": "refused"}`).wants(200).at("entries"), any(0.0))
	for _, body := range []string{`{"kind": "held_delete"}`, `{"kind": "x"}`, `{}`} {
		n.anna.post(discard, body).refuses(422, "invalid_request")
	}

	// What names no row is kept as far as somebody could look through it.
	status := n.anna.get("/v1/sync/status").wants(200)
	equal(t, "not kept", fmt.Sprint(status.at("quarantine.counts.malformed"), status.at("quarantine.let_go")), "1 <nil>")
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"b": %d}`, i)
	}
	n.fromPeer(rows...)
	n.fromPeer(strings.Split(strings.ReplaceAll(strings.Join(rows, ","), "b", "c"), ",")...)
	status = n.anna.get("/v1/sync/status").wants(200)
	equal(t, "not kept", fmt.Sprint(status.at("quarantine.counts.malformed"), status.at("quarantine.let_go")), "1000 205")
}

// An entry that can be taken by now is, once, however often it is asked for.
func TestWhatIsTriedAgainIsTaken(t *testing.T) {
	n := newNode(t)
	other := strings.NewReplacer("0123456789abcdef0123456789abcdef", junkUID, `"x"`, `"y"`).Replace(entry)
	n.fromPeer(entry, other) // under one key
	id := n.anna.get("/v1/sync/quarantine").text("items.0.id")
	at := "/v1/sync/quarantine/" + id
	equal(t, "still", n.anna.post(at+"/retry", "").wants(200).at("taken"), any(false))
	n.sql(`UPDATE todos SET id = 70`)
	key := n.anna.with("Idempotency-Key", "k")
	for range 2 {
		equal(t, "taken", key.post(at+"/retry", "").wants(200).at("taken"), any(true))
		equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 2)
		equal(t, "left", fmt.Sprint(n.anna.get("/v1/sync/quarantine").at("items")), "[]")
	}
	n.anna.post(at+"/retry", "").refuses(404, "not_quarantined")
	key.post("/v1/sync/quarantine/"+id+"x/retry", "").refuses(422, "idempotency_key_reused")
}

// massDelete has the peer delete all of anna's todos at once.
func massDelete(n *node, at time.Time) {
	n.Helper()
	var rows []string
	for _, v := range n.local().get("/peer/v1/changes").wants(200).at("rows").([]any) {
		if v := v.(map[string]any); v["deleted_at"] == nil {
			rows = append(rows, wireRow(v).edited(at, map[string]any{"deleted_at": at.UnixMilli()}))
		}
	}
	n.fromPeer(rows...)
}

// Deletes that are held are decided about by an admin, all at once and once.
func TestDeletesThatAreHeldAreDecidedAbout(t *testing.T) {
	for verdict, left := range map[string]int{"apply": 0, "keep": 60} {
		t.Run(verdict, func(t *testing.T) {
			n := newNode(t)
			n.anna.post("/v1/sync/held/decision", `{"verdict": "`+verdict+`"}`).refuses(409, "nothing_held")
			for i := range 60 {
				n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "todo %d"}`, i)).wants(201)
			}
			n.wait(time.Minute)
			massDelete(n, n.now())
			todos := func() int { return len(n.anna.get("/v1/todos?limit=200").at("items").([]any)) }
			equal(t, "todos, while they are held", todos(), 60)
			held := n.anna.get("/v1/sync/quarantine?limit=200").wants(200)
			equal(t, "held", len(held.at("items").([]any)), 60)
			equal(t, "kind", held.text("items.0.kind"), "held_delete")
			for _, verb := range []string{"/retry", "/discard"} {
				n.anna.post("/v1/sync/quarantine/"+held.text("items.0.id")+verb, "").refuses(409, "held_delete")
			}
			for _, junk := range []string{`{}`, `{"verdict": "yes"}`, `{"verdict": null}`, `{"verdict": "apply", "rows": 1}`} {
				n.anna.post("/v1/sync/held/decision", junk).refuses(422, "invalid_request")
			}
			n.ben.post("/v1/sync/held/decision", `{"verdict": "`+verdict+`"}`).refuses(403, "not_admin")
			n.wait(time.Minute)
			cursor := n.local().get("/peer/v1/changes").wants(200).text("cursor")
			key := n.anna.with("Idempotency-Key", "k")
			for range 2 {
				a := key.post("/v1/sync/held/decision", `{"verdict": "`+verdict+`"}`).wants(200)
				equal(t, "rows", a.at("rows"), any(60.0))
				equal(t, "verdict", a.text("verdict"), verdict)
			}
			n.anna.post("/v1/sync/held/decision", `{"verdict": "`+verdict+`"}`).refuses(409, "nothing_held")
			equal(t, "todos", todos(), left)
			equal(t, "set aside", fmt.Sprint(n.anna.get("/v1/sync/quarantine").at("items")), "[]")
			told := n.local().get("/peer/v1/changes?cursor=" + cursor).wants(200).at("rows").([]any)
			equal(t, "told to the peer", len(told), 60)
			deleted := told[0].(map[string]any)["deleted_at"] != nil
			equal(t, "as deleted", deleted, verdict == "apply")
		})
	}
}
