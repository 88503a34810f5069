package api

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// rowsOf are the two kinds of row, as far as they are alike.
var rowsOf = map[string]string{
	"/v1/todos":              `{"content": "x"}`,
	"/v1/scheduled-messages": `{"content": "x", "cron_expr": "0 9 * * *", "tz": "Europe/Berlin"}`,
}

// E03, E04: a new row tells its key, its address and its version.
func TestANewRowTellsItsAddressAndItsVersion(t *testing.T) {
	n := newNode(t)
	for list, body := range rowsOf {
		made := n.anna.post(list, body).wants(201)
		equal(t, "ref", made.text("ref"), "1-1")
		equal(t, "Location", made.header.Get("Location"), list+"/1-1")
		for _, at := range []string{"created_at", "updated_at"} {
			equal(t, at, made.text(at), "2026-02-01T12:00:00Z")
		}
		equal(t, "updated_by", made.text("updated_by"), "cloud")
		seen := n.anna.get(made.header.Get("Location")).wants(200)
		equal(t, "body", string(seen.body), string(made.body))
		equal(t, "ETag", seen.header.Get("ETag"), made.header.Get("ETag"))
		if tag := made.header.Get("ETag"); !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`) || len(tag) < 4 {
			t.Errorf("%s: ETag %s", list, tag)
		}
	}
}

func TestARowThatIsKnownIsNotSentAgain(t *testing.T) {
	n := newNode(t)
	for list, body := range rowsOf {
		made := n.anna.post(list, body).wants(201)
		at, tag := made.header.Get("Location"), made.header.Get("ETag")
		for header, want := range map[string]int{
			tag: 304, "W/" + tag: 304, "*": 304, `"other", ` + tag: 304, `W/"other",W/` + tag + `, "third"`: 304,
			`"other"`: 200, "": 200, strings.Trim(tag, `"`): 200, `"` + tag: 200, ",": 200,
		} {
			a := n.anna.with("If-None-Match", header).get(at).wants(want)
			equal(t, "ETag", a.header.Get("ETag"), tag)
			equal(t, header+": body", len(a.body) == 0, want == 304)
		}
		n.anna.with("If-None-Match", "*").get(list + "/0-99").wants(404)
		n.wait(time.Millisecond)
		n.anna.patch(at, `{"content": "y"}`).wants(200)
		n.anna.with("If-None-Match", tag).get(at).wants(200)
	}
}

// Who edits what he has not seen hears of it, and changes nothing.
func TestAnEditOfAnotherVersionIsRefused(t *testing.T) {
	n := newNode(t)
	for list, body := range rowsOf {
		made := n.anna.post(list, body).wants(201)
		at, first := made.header.Get("Location"), made.header.Get("ETag")
		second := n.anna.with("If-Match", first).patch(at, `{"content": "y"}`).wants(200).header.Get("ETag")
		if first == second {
			t.Fatalf("%s: two versions of one moment have one ETag, %s", list, first)
		}
		for _, header := range []string{first, "W/" + first, `"other"`, first + `, "other"`, "junk"} {
			n.anna.with("If-Match", header).patch(at, `{"content": "z"}`).refuses(412, "stale")
			n.anna.with("If-Match", header).delete(at).refuses(412, "stale")
		}
		now := n.anna.get(at).wants(200)
		equal(t, "content", now.text("content"), "y")
		equal(t, "ETag", now.header.Get("ETag"), second)
		n.anna.with("If-Match", `"other", W/`+second).patch(at, `{"content": "z"}`).wants(200)
		n.anna.with("If-Match", "*").patch(at, `{"content": "zz"}`).wants(200)
		n.anna.patch(at, `{"content": "zzz"}`).wants(200)
		n.anna.with("If-Match", n.anna.get(at).header.Get("ETag")).delete(at).wants(204)
		n.anna.with("If-Match", first).delete(at).wants(204)
		n.anna.with("If-Match", "*").patch(at, `{"content": "x"}`).wants(404)
	}
}

// A deletion repeats well; what never was is another matter.
func TestADeletionRepeats(t *testing.T) {
	n := newNode(t)
	for list, body := range rowsOf {
		at := n.anna.post(list, body).wants(201).header.Get("Location")
		for range 3 {
			equal(t, "body", string(n.anna.delete(at).wants(204).body), "")
			n.anna.get(at).wants(404)
			n.anna.patch(at, `{"content": "y"}`).wants(404)
			equal(t, "items", fmt.Sprint(n.anna.get(list).wants(200).at("items")), "[]")
		}
		equal(t, "versions", n.count(`SELECT count(DISTINCT seq) FROM `+map[string]string{"/v1/todos": "todos", "/v1/scheduled-messages": "scheduled_messages"}[list]), 1)
		equal(t, "the next ref", n.anna.post(list, body).wants(201).text("ref"), "1-2") // S:31
		n.ben.delete(at).wants(404)
	}
}

// What says nothing new makes no new version, and so nothing to carry to the peer.
func TestAnEditThatChangesNothing(t *testing.T) {
	n := newNode(t)
	n.anna.patch("/v1/me", `{"tz": "Europe/Berlin"}`).wants(200)
	for list, body := range map[string]string{
		"/v1/todos":              `{"content": "x", "due_at": "2026-05-06T10:00", "notes": "n", "done": true}`,
		"/v1/scheduled-messages": `{"content": "x", "rrule": "FREQ=DAILY"}`,
	} {
		made := n.anna.post(list, body).wants(201)
		n.wait(time.Hour)
		cursor := n.local().get("/peer/v1/changes").wants(200).text("cursor")
		edits := []string{`{}`, `{"content": " x "}`, `{"content": "x", "tz": null}`}
		if list == "/v1/todos" {
			edits = []string{`{}`, `{"content": "x\n"}`, `{"due_at": "2026-05-06T08:00:00Z"}`, `{"due_at": "2026-05-06T10:00"}`, `{"due_on": null}`,
				`{"done": true, "notes": "n", "tz": "Europe/Berlin"}`}
		} else {
			edits = append(edits, fmt.Sprintf(`{"rrule": %q}`, made.text("rrule")), `{"enabled": null}`, `{"cron_expr": null, "trigger_at": null}`)
		}
		for _, edit := range edits {
			a := n.anna.patch(made.header.Get("Location"), edit).wants(200)
			equal(t, edit+": ETag", a.header.Get("ETag"), made.header.Get("ETag"))
			equal(t, edit+": updated_at", a.text("updated_at"), made.text("updated_at"))
		}
		equal(t, list+": for the peer", len(n.local().get("/peer/v1/changes?cursor="+cursor).wants(200).at("rows").([]any)), 0)
		a := n.anna.patch(made.header.Get("Location"), `{"content": "y"}`).wants(200)
		equal(t, "updated_at", a.text("updated_at"), n.now().Format("2006-01-02T15:04:05Z"))
		equal(t, "created_at", a.text("created_at"), made.text("created_at"))
	}
}

// RFC 7396: null takes away, what is not sent stays.
func TestAMergePatchOfATodo(t *testing.T) {
	n := newNode(t)
	at := n.anna.post("/v1/todos", `{"content": "x", "due_at": "2026-05-06T10:00", "tz": "Europe/Berlin", "notes": "n", "done": true}`).wants(201).header.Get("Location")
	merge := n.anna.with("Content-Type", "application/merge-patch+json")
	for _, c := range []struct {
		edit                                string
		content, due, on, zone, notes, done any
	}{
		{`{"content": "y"}`, "y", "2026-05-06T08:00:00Z", nil, "Europe/Berlin", "n", true},
		{`{"notes": null}`, "y", "2026-05-06T08:00:00Z", nil, "Europe/Berlin", "", true},
		{`{"done": null}`, "y", "2026-05-06T08:00:00Z", nil, "Europe/Berlin", "", false},
		{`{"tz": "America/New_York"}`, "y", "2026-05-06T08:00:00Z", nil, "America/New_York", "", false}, // another clock to show it on
		{`{"due_at": "2026-05-06T10:00"}`, "y", "2026-05-06T14:00:00Z", nil, "America/New_York", "", false},
		{`{"due_on": "2026-05-07"}`, "y", nil, "2026-05-07", "America/New_York", "", false},
		{`{"due_at": "2026-05-06T10:00Z", "due_on": null}`, "y", "2026-05-06T10:00:00Z", nil, "America/New_York", "", false},
		{`{"due_at": null, "due_on": "2026-05-07", "tz": null}`, "y", nil, "2026-05-07", nil, "", false},
		{`{"due_on": null}`, "y", nil, nil, nil, "", false},
	} {
		merge.patch(at, c.edit).wants(200)
		a := n.anna.get(at).wants(200)
		for name, want := range map[string]any{"content": c.content, "due_at": c.due, "due_on": c.on, "tz": c.zone, "notes": c.notes, "done": c.done} {
			equal(t, c.edit+": "+name, a.at(name), want)
		}
	}
	n.anna.patch(at, `{"content": null}`).refuses(422, "todo_invalid")
	n.anna.patch(at, `{"due_at": "2026-05-06T10:00Z", "due_on": "2026-05-06"}`).refuses(422, "todo_invalid")
	n.anna.patch(at, `{"content": "kept?", "due_at": "never"}`).refuses(422, "invalid_time")
	equal(t, "content", n.anna.get(at).text("content"), "y")
	// On POST null is as good as nothing.
	n.anna.post("/v1/todos", `{"content": "x", "due_at": null, "due_on": null, "tz": null, "notes": null, "done": null}`).wants(201)
}

func TestAMergePatchOfAReminder(t *testing.T) {
	n := newNode(t)
	at := n.anna.post("/v1/scheduled-messages", `{"content": "x", "cron_expr": "0 9 * * *", "tz": "Europe/Berlin"}`).wants(201).header.Get("Location")
	n.anna.patch(at, `{"content": null}`).refuses(422, "scheduled_message_invalid")
	a := n.anna.patch(at, `{"enabled": false}`).wants(200)
	equal(t, "next of what is off", fmt.Sprint(a.at("next")), "[]")
	a = n.anna.patch(at, `{"enabled": null}`).wants(200)
	equal(t, "enabled", a.at("enabled"), any(true))
	equal(t, "next", a.text("next.0.local"), "2026-02-02T09:00:00+01:00")
	a = n.anna.patch(at, `{"trigger_at": "2026-05-06T10:00"}`).wants(200)
	equal(t, "cron_expr", a.at("cron_expr"), nil)
	equal(t, "trigger_at", a.text("trigger_at"), "2026-05-06T08:00:00Z")
	equal(t, "next", len(a.at("next").([]any)), 1)
	n.wait(time.Minute)
	a = n.anna.patch(at, `{"trigger_at": null, "rrule": "FREQ=WEEKLY;BYDAY=SU;BYHOUR=6;BYMINUTE=0;BYSECOND=0"}`).wants(200)
	equal(t, "schedule_effective_from", a.text("schedule_effective_from"), "2026-02-01T12:01:00Z")
	if !strings.HasPrefix(a.text("rrule"), "DTSTART:") {
		t.Errorf("the rule has no start: %s", a.text("rrule"))
	}
	a = n.anna.patch(at, `{"tz": null}`).wants(200)
	equal(t, "warnings", a.codes(), "no_zone")
}

// Who lives where is a choice that can be taken back.
func TestWhereSomebodyLives(t *testing.T) {
	n := newNode(t)
	fresh := n.anna.get("/v1/me").wants(200)
	equal(t, "tz", fresh.at("tz"), nil)
	equal(t, "email", fresh.text("email"), "anna@example.org")
	n.anna.with("If-Match", `"other"`).patch("/v1/me", `{"tz": "Europe/Berlin"}`).refuses(412, "stale")
	n.anna.with("If-Match", fresh.header.Get("ETag")).patch("/v1/me", `{"tz": "Europe/Berlin"}`).wants(200)
	n.anna.with("If-Match", fresh.header.Get("ETag")).patch("/v1/me", `{"tz": "Asia/Tokyo"}`).refuses(412, "stale")
	set := n.anna.get("/v1/me").wants(200)
	equal(t, "tz", set.text("tz"), "Europe/Berlin")
	for _, same := range []string{`{}`, `{"tz": "Europe/Berlin"}`} {
		equal(t, same+": ETag", n.anna.patch("/v1/me", same).wants(200).header.Get("ETag"), set.header.Get("ETag"))
	}
	cleared := n.anna.patch("/v1/me", `{"tz": null}`).wants(200)
	equal(t, "tz", cleared.at("tz"), nil)
	equal(t, "ETag", n.anna.patch("/v1/me", `{"tz": null}`).wants(200).header.Get("ETag"), cleared.header.Get("ETag"))
	equal(t, "ben's", n.ben.get("/v1/me").wants(200).at("tz"), nil)
	equal(t, "rows", n.count(`SELECT count(*) FROM settings`), 1)
	n.ben.patch("/v1/me", `{"tz": null}`).wants(200)
	equal(t, "rows", n.count(`SELECT count(*) FROM settings`), 1)
}

// What a device is rung by is nobody's to read back.
func TestADevice(t *testing.T) {
	n := newNode(t)
	n.secrets = append(n.secrets, "secret-token")
	made := n.anna.post("/v1/push-tokens", `{"token": "secret-token", "platform": "android", "device_id": "d1"}`).wants(201)
	equal(t, "registered_at", made.text("registered_at"), "2026-02-01T12:00:00Z")
	for _, a := range []answer{made, n.anna.get("/v1/push-tokens").wants(200)} {
		if strings.Contains(string(a.body), "secret-token") {
			t.Errorf("%s tells the token: %s", a.what, a.body)
		}
	}
	for name, body := range map[string]string{
		"token":           `{"token": "", "platform": "ios", "device_id": "d"}`,
		"token device_id": `{"token": "a b", "platform": "ios", "device_id": "dé"}`,
		"device_id":       `{"token": "t", "platform": "ios", "device_id": "` + strings.Repeat("d", 129) + `"}`,
		"token ":          `{"token": "` + strings.Repeat("t", 4097) + `", "platform": "ios", "device_id": "d"}`,
		"device_id ":      `{"token": "t", "platform": "ios", "device_id": ""}`,
		"token  ":         `{"token": "a\nb", "platform": "ios", "device_id": "d"}`,
	} {
		equal(t, body[:20], n.anna.post("/v1/push-tokens", body).refuses(422, "push_token_invalid").fields(), strings.TrimSpace(name))
	}
	n.anna.post("/v1/push-tokens", `{"token": "`+strings.Repeat("t", 4096)+`", "platform": "web", "device_id": "`+strings.Repeat("d", 128)+`"}`).wants(201)
	// R:C5: one row an installation, and the last to register has it.
	n.ben.post("/v1/push-tokens", `{"token": "secret-token", "platform": "android", "device_id": "d1"}`).wants(201)
	equal(t, "anna's", len(n.anna.get("/v1/push-tokens").at("items").([]any)), 1)
	n.anna.delete("/v1/push-tokens/d1").wants(204)
	equal(t, "ben's", n.ben.get("/v1/push-tokens").text("items.0.device_id"), "d1")
	for _, at := range []string{"d1", "d1", "never", strings.Repeat("d", 500), "%00", "%FF"} {
		n.ben.delete("/v1/push-tokens/" + at).wants(204)
	}
	equal(t, "ben's", fmt.Sprint(n.ben.get("/v1/push-tokens").at("items")), "[]")
}

// What a reminder shows besides its row has a part in its tag, but none in whether
// an edit is late.
func TestATagTellsThatAReminderRingsAtAnotherTime(t *testing.T) {
	n := newNode(t)
	made := n.anna.post("/v1/scheduled-messages", `{"content": "up", "cron_expr": "0 7 * * *"}`).wants(201)
	at, tag := made.header.Get("Location"), made.header.Get("ETag")
	n.anna.with("If-None-Match", tag).get(at).wants(304)
	n.anna.patch("/v1/me", `{"tz": "Pacific/Auckland"}`).wants(200)
	moved := n.anna.with("If-None-Match", tag).get(at).wants(200)
	if moved.header.Get("ETag") == tag {
		t.Error("it has the same tag, and another time")
	}
	n.anna.with("If-Match", tag).patch(at, `{"content": "get up"}`).wants(200)
	n.anna.with("If-Match", tag).patch(at, `{"content": "stay"}`).wants(412)
}
