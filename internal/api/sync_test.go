package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// wireRow is a row as it crosses.
type wireRow map[string]any

// sent returns what the peer reads of a row, by its content.
func (n *node) sent(content string) wireRow {
	n.Helper()
	a := n.local().get("/peer/v1/changes").wants(200)
	for _, v := range a.at("rows").([]any) {
		if row := v.(map[string]any); row["content"] == content {
			return row
		}
	}
	n.Fatalf("nothing is sent that says %q: %s", content, a.body)
	return nil
}

// edited is the row as local edits it at a time, having seen what r is.
func (r wireRow) edited(at time.Time, fields map[string]any) string {
	e := maps.Clone(r)
	maps.Copy(e, fields)
	seen := map[string]any{"local/1": at.UnixMilli()}
	maps.Copy(seen, r["seen"].(map[string]any))
	e["seen"], e["updated_at"], e["updated_by"] = seen, at.UnixMilli(), "local"
	b, _ := json.Marshal(e)
	return string(b)
}

// clash has anna edit a row here and local, which has not seen that, a second later.
func (n *node) clash(list, body, here string, there map[string]any) answer {
	n.Helper()
	made := n.anna.post(list, body).wants(201)
	row := n.sent(made.text("content"))
	n.wait(time.Minute)
	n.anna.patch(made.header.Get("Location"), here).wants(200)
	n.fromPeer(row.edited(n.now().Add(time.Second), there))
	return made
}

// S:20, S:21, S:24. What gave way is shown to its owner with both versions, and comes
// back as an edit that wins on both nodes.
func TestAnEditThatGaveWayIsShownAndComesBack(t *testing.T) {
	n := newNode(t)
	made := n.clash("/v1/todos", `{"content": "Milk", "due_at": "2026-05-06T10:00:00Z"}`, `{"content": "Oat milk", "due_at": "2026-05-07T10:00:00Z"}`,
		map[string]any{"done": true, "due_at": instant(t, "2026-05-06T10:00:00.5Z").UnixMilli()})
	at := made.header.Get("Location")
	equal(t, "the tick won", n.anna.get(at).text("content"), "Milk")

	a := n.anna.get("/v1/sync/conflicts").wants(200)
	equal(t, "conflicts", len(a.at("items").([]any)), 1)
	for path, want := range map[string]any{
		"kind": "todo", "ref": made.text("ref"), "location": at, "at": "2026-02-01T12:01:00Z",
		"lost.updated_at": "2026-02-01T12:01:00Z", "lost.updated_by": "cloud", "lost.deleted_at": nil,
		"lost.fields.content": "Oat milk", "lost.fields.due_at": "2026-05-07T10:00:00Z", "lost.fields.done": false, "lost.fields.notes": "",
		"stands.updated_at": "2026-02-01T12:01:01Z", "stands.updated_by": "local",
		"stands.fields.content": "Milk", "stands.fields.due_at": "2026-05-06T10:00:00.500Z", "stands.fields.done": true, "stands.fields.due_on": nil,
	} {
		equal(t, path, a.at("items.0."+path), want)
	}
	equal(t, "differs", fmt.Sprint(a.at("items.0.differs")), "[content done due_at]")

	n.wait(time.Minute)
	restore := "/v1/sync/conflicts/" + a.text("items.0.uid") + "/restore"
	back := n.anna.post(restore, "").wants(200)
	equal(t, "ref", back.text("ref"), made.text("ref"))
	equal(t, "location", back.text("location"), at)
	equal(t, "Location", back.header.Get("Location"), at)
	now := n.anna.get(at).wants(200)
	equal(t, "content", now.text("content"), "Oat milk")
	equal(t, "done", now.at("done"), any(false))
	equal(t, "updated_by", now.text("updated_by"), "cloud")
	equal(t, "updated_at", now.text("updated_at"), "2026-02-01T12:02:00Z")
	sent := n.sent("Oat milk")
	equal(t, "seen", sent["seen"].(map[string]any)["local/1"], any(float64(instant(t, "2026-02-01T12:01:01Z").UnixMilli()))) // no second conflict

	// Twice is harmless: by another request, under a key, and with the answer lost.
	n.wait(time.Minute)
	tag, key := now.header.Get("ETag"), n.anna.with("Idempotency-Key", "k")
	for range 3 {
		n.anna.post(restore, "").wants(200)
		key.post(restore, "").wants(200)
	}
	equal(t, "replayed", key.post(restore, "").header.Get("Idempotent-Replayed"), "true")
	key.post("/v1/sync/conflicts/"+strings.Repeat("0", 32)+"/restore", "").refuses(422, "idempotency_key_reused")
	equal(t, "ETag", n.anna.get(at).header.Get("ETag"), tag)
	a = n.anna.get("/v1/sync/conflicts").wants(200)
	equal(t, "conflicts", len(a.at("items").([]any)), 1)
	equal(t, "what stands", a.text("items.0.stands.fields.content"), "Oat milk")
	equal(t, "differs", fmt.Sprint(a.at("items.0.differs")), "[]")
}

// A deletion gives way to an edit that had not seen it, and an edit to a deletion:
// both are shown, and both come back.
func TestADeletionThatMetAnEdit(t *testing.T) {
	n := newNode(t)
	edit := n.clash("/v1/todos", `{"content": "Milk"}`, `{"content": "Oat milk"}`, map[string]any{"deleted_at": n.now().UnixMilli()})
	n.anna.get(edit.header.Get("Location")).wants(404)
	a := n.anna.get("/v1/sync/conflicts").wants(200)
	equal(t, "differs", fmt.Sprint(a.at("items.0.differs")), "[deleted_at]")
	equal(t, "lost", a.text("items.0.lost.fields.content"), "Oat milk")
	if a.at("items.0.lost.deleted_at") != nil || a.at("items.0.stands.deleted_at") == nil || len(a.at("items.0.stands.fields").(map[string]any)) != 0 {
		t.Errorf("an edit that gave way to a deletion: %s", a.body)
	}
	n.wait(time.Hour)
	n.anna.post("/v1/sync/conflicts/"+a.text("items.0.uid")+"/restore", "").wants(200)
	equal(t, "content", n.anna.get(edit.header.Get("Location")).wants(200).text("content"), "Oat milk")
	equal(t, "was not brought back", a.at("items.0.brought_back"), nil)
	equal(t, "was brought back", n.anna.get("/v1/sync/conflicts").wants(200).at("items.0.brought_back"), true)

	made := n.anna.post("/v1/todos", `{"content": "Bread"}`).wants(201)
	row := n.sent("Bread")
	n.wait(time.Minute)
	n.anna.delete(made.header.Get("Location")).wants(204)
	n.fromPeer(row.edited(n.now().Add(time.Second), map[string]any{"content": "Rye"}))
	equal(t, "content", n.anna.get(made.header.Get("Location")).wants(200).text("content"), "Rye")
	a = n.anna.get("/v1/sync/conflicts").wants(200)
	if a.at("items.0.lost.deleted_at") == nil || a.text("items.0.stands.fields.content") != "Rye" {
		t.Errorf("a deletion that gave way to an edit: %s", a.body)
	}
	n.wait(time.Hour)
	n.anna.post("/v1/sync/conflicts/"+a.text("items.0.uid")+"/restore", "").wants(200)
	n.anna.get(made.header.Get("Location")).wants(404)
}

// A reminder that is brought back tells its times as people write them, and does not
// ring for what passed meanwhile. Where somebody lives is no row with a ref of its own.
func TestOtherRowsThatGaveWay(t *testing.T) {
	n := newNode(t)
	n.clash("/v1/scheduled-messages", `{"content": "up", "trigger_at": "2026-05-06T10:00:00Z"}`, `{"trigger_at": "2026-05-07T10:00:00Z"}`,
		map[string]any{"enabled": false})
	a := n.anna.get("/v1/sync/conflicts").wants(200)
	equal(t, "kind", a.text("items.0.kind"), "scheduled_message")
	equal(t, "lost", a.text("items.0.lost.fields.trigger_at"), "2026-05-07T10:00:00Z")
	equal(t, "stands", a.at("items.0.stands.fields.enabled"), any(false))
	equal(t, "lost", a.at("items.0.lost.fields.enabled"), any(true))
	n.wait(100 * 24 * time.Hour)
	n.anna = n.login("anna@example.org")
	equal(t, "kept", len(n.anna.get("/v1/sync/conflicts").at("items").([]any)), 0) // 90 days
	n.anna.patch("/v1/me", `{"tz": "Europe/Berlin"}`).wants(200)
	row := wireRow{}
	for _, v := range n.local().get("/peer/v1/changes").wants(200).at("rows").([]any) {
		if v := v.(map[string]any); v["table"] == "settings" {
			row = v
		}
	}
	n.wait(time.Minute)
	n.anna.patch("/v1/me", `{"tz": "Europe/Rome"}`).wants(200)
	n.fromPeer(row.edited(n.now().Add(time.Second), map[string]any{"tz": "Asia/Tokyo"}))
	equal(t, "tz", n.anna.get("/v1/me").text("tz"), "Asia/Tokyo")
	a = n.anna.get("/v1/sync/conflicts").wants(200)
	equal(t, "location", a.text("items.0.location"), "/v1/me")
	equal(t, "lost", a.text("items.0.lost.fields.tz"), "Europe/Rome")
	n.wait(time.Hour)
	n.anna.post("/v1/sync/conflicts/"+a.text("items.0.uid")+"/restore", "").wants(200)
	equal(t, "tz", n.anna.get("/v1/me").text("tz"), "Europe/Rome")

	made := n.clash("/v1/scheduled-messages", `{"content": "down", "cron_expr": "0 9 * * *"}`, `{"cron_expr": "0 8 * * *"}`, map[string]any{"enabled": false})
	restore := "/v1/sync/conflicts/" + n.anna.get("/v1/sync/conflicts").text("items.0.uid") + "/restore"
	n.wait(3 * time.Hour)
	back := n.now()
	for range 2 { // once it is back, there is nothing to bring back
		n.anna.post(restore, "").wants(200)
		a = n.anna.get(made.header.Get("Location")).wants(200)
		equal(t, "cron_expr", a.text("cron_expr"), "0 8 * * *")
		equal(t, "schedule_effective_from", a.text("schedule_effective_from"), stamp(back.UnixMilli()))
		equal(t, "updated_at", a.text("updated_at"), stamp(back.UnixMilli()))
		n.wait(time.Hour)
	}
}

// What gave way is nobody else's to see or to bring back, an admin's neither, not
// even where a peer says that it is about somebody else's row.
func TestWhatGaveWayIsItsOwnersOnly(t *testing.T) {
	n := newNode(t)
	row := n.ben.post("/v1/todos", `{"content": "Ben's own"}`).wants(201)
	sent := n.sent("Ben's own")
	n.wait(time.Minute)
	n.ben.patch(row.header.Get("Location"), `{"content": "Ben's other"}`).wants(200)
	n.fromPeer(sent.edited(n.now().Add(time.Second), map[string]any{"content": "Ben's third"}))
	mine := n.ben.get("/v1/sync/conflicts").wants(200)
	uid := mine.text("items.0.uid")
	equal(t, "ben's", mine.text("items.0.stands.fields.content"), "Ben's third")

	equal(t, "anna's", fmt.Sprint(n.anna.get("/v1/sync/conflicts").wants(200).at("items")), "[]")
	n.anna.post("/v1/sync/conflicts/"+uid+"/restore", "").refuses(404, "conflict_not_found")
	for _, other := range []string{strings.Repeat("0", 32), strings.ToUpper(uid), uid[1:], uid + "0", "x", "0-1", "%00"} {
		n.ben.post("/v1/sync/conflicts/"+other+"/restore", "").refuses(404, "conflict_not_found")
	}
	person{node: n}.get("/v1/sync/conflicts").refuses(401, "no_session")
	person{node: n}.post("/v1/sync/conflicts/"+uid+"/restore", "").refuses(401, "no_session")

	// A fact of anna's that names ben's row shows neither side of it.
	body, _ := json.Marshal(map[string]any{"table": "todos", "lost": map[string]any{"table": "todos", "origin": 1, "id": 1, "uid": sent["uid"], "owner": n.anna.id,
		"updated_at": 5, "updated_by": "local", "content": "forged"}})
	fact, _ := json.Marshal(map[string]any{"table": "facts", "uid": strings.Repeat("ab", 16), "kind": "conflict", "subject": "x", "owner": n.anna.id,
		"node": "local", "at": n.now().UnixMilli(), "body": json.RawMessage(body)})
	n.fromPeer(string(fact))
	forged := n.anna.get("/v1/sync/conflicts").wants(200)
	equal(t, "anna sees", forged.text("items.0.lost.fields.content"), "forged")
	equal(t, "of the row", forged.at("items.0.stands"), nil)
	if strings.Contains(string(forged.body), "Ben") {
		t.Errorf("anna reads what ben wrote: %s", forged.body)
	}
	n.anna.post("/v1/sync/conflicts/"+strings.Repeat("ab", 16)+"/restore", "").refuses(404, "conflict_not_found")
	equal(t, "ben's", n.ben.get(row.header.Get("Location")).text("content"), "Ben's third")

	// One that nobody can read is no reason to show nothing.
	junk, _ := json.Marshal(map[string]any{"table": "facts", "uid": strings.Repeat("cd", 16), "kind": "conflict", "subject": "x", "owner": n.ben.id,
		"node": "local", "at": n.now().UnixMilli(), "body": map[string]any{"table": "later", "lost": 7}})
	n.fromPeer(string(junk))
	equal(t, "ben's", len(n.ben.get("/v1/sync/conflicts").wants(200).at("items").([]any)), 1)
}

// Conflicts come newest first, page by page; a cursor belongs to its owner's list.
func TestAListOfConflicts(t *testing.T) {
	n := newNode(t)
	for i := range 5 {
		n.clash("/v1/todos", fmt.Sprintf(`{"content": "todo %d"}`, i), fmt.Sprintf(`{"content": "edit %d"}`, i), map[string]any{"done": true})
	}
	var seen []string
	cursor := ""
	for {
		a := n.anna.get("/v1/sync/conflicts?limit=2&cursor=" + cursor).wants(200)
		for _, v := range a.at("items").([]any) {
			seen = append(seen, v.(map[string]any)["lost"].(map[string]any)["fields"].(map[string]any)["content"].(string))
		}
		if cursor = a.text("next_cursor"); cursor == "" {
			break
		}
		n.ben.get("/v1/sync/conflicts?cursor="+cursor).refuses(400, "invalid_cursor")
		n.anna.get("/v1/todos?cursor="+cursor).refuses(400, "invalid_cursor")
	}
	equal(t, "seen", strings.Join(seen, ", "), "edit 4, edit 3, edit 2, edit 1, edit 0")
	n.anna.get("/v1/sync/conflicts?limit=1000").wants(200)
	n.anna.get("/v1/sync/conflicts?limit=0").refuses(422, "invalid_request")
	n.anna.get("/v1/sync/conflicts?cursor=junk").refuses(400, "invalid_cursor")
}
