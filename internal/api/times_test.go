package api

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// inZones runs the test as on machines of other zones: none of them may matter.
func inZones(t *testing.T, run func(t *testing.T)) {
	for _, name := range []string{"UTC", "Asia/Kolkata", "America/New_York"} {
		t.Run("TZ="+name, func(t *testing.T) {
			before := time.Local
			defer func() { time.Local = before }()
			loc, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			time.Local = loc
			run(t)
		})
	}
}

// R:A6, R:A9: a time that the clocks skip or show twice is taken, and warned of.
func TestATimeInAGapOrAFoldIsTakenWithAWarning(t *testing.T) {
	inZones(t, func(t *testing.T) {
		n := newNode(t)
		for _, c := range []struct{ local, zone, at, warning string }{
			{"2026-03-08T02:30", "America/New_York", "2026-03-08T07:30:00Z", "nonexistent_local_time"},
			{"2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00Z", "ambiguous_local_time"},
			{"2026-10-25T02:30+01:00", "Europe/Berlin", "2026-10-25T01:30:00Z", ""},
			{"2026-09-06T00:00", "America/Santiago", "2026-09-06T04:00:00Z", "nonexistent_local_time"},
			{"2026-05-06T10:00", "Europe/Berlin", "2026-05-06T08:00:00Z", ""},
		} {
			todo := n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "x", "due_at": %q, "tz": %q}`, c.local, c.zone)).wants(201)
			equal(t, c.local+": due_at", todo.text("due_at"), c.at)
			equal(t, c.local+": tz", todo.text("tz"), c.zone)
			equal(t, c.local+": warnings", todo.codes(), c.warning)
			edited := n.anna.patch("/v1/todos/"+todo.text("ref"), fmt.Sprintf(`{"due_at": %q, "tz": %q}`, c.local, c.zone)).wants(200)
			equal(t, c.local+": warnings of an edit", edited.codes(), c.warning)
			message := n.anna.post("/v1/scheduled-messages", fmt.Sprintf(`{"content": "x", "trigger_at": %q, "tz": %q}`, c.local, c.zone)).wants(201)
			equal(t, c.local+": trigger_at", message.text("trigger_at"), c.at)
			equal(t, c.local+": next", message.text("next.0.at"), c.at)
			equal(t, c.local+": warnings", message.codes(), c.warning)
			edited = n.anna.patch("/v1/scheduled-messages/"+message.text("ref"), `{"content": "y"}`).wants(200)
			equal(t, c.local+": warnings of another text", edited.codes(), "")
		}
	})
}

// R:A7: an offset wins over a zone, a zone over one's own, and the answer says which.
func TestWhereATimeIsMeant(t *testing.T) {
	inZones(t, func(t *testing.T) {
		n := newNode(t)
		n.anna.patch("/v1/me", `{"tz": "Asia/Shanghai"}`).wants(200)
		for _, c := range []struct{ given, zone, at, shown string }{
			{"2026-05-06T10:00", "America/Chicago", "2026-05-06T15:00:00Z", "America/Chicago"},
			{"2026-05-06T10:00:00Z", "America/Chicago", "2026-05-06T10:00:00Z", "America/Chicago"},
			{"2026-05-06T10:00:00+02:00", "America/Chicago", "2026-05-06T08:00:00Z", "America/Chicago"},
			{"2026-05-06T10:00", "", "2026-05-06T02:00:00Z", "Asia/Shanghai"},
			{"2026-05-06T10:00Z", "", "2026-05-06T10:00:00Z", "Asia/Shanghai"},
			{"2026-05-06T10:00:00.25Z", "", "2026-05-06T10:00:00.250Z", "Asia/Shanghai"},
			{"2026-05-06T10:00:00.000Z", "", "2026-05-06T10:00:00Z", "Asia/Shanghai"},
			{"2026-05-06t10:00:00z", "", "2026-05-06T10:00:00Z", "Asia/Shanghai"},
		} {
			zone := ""
			if c.zone != "" {
				zone = fmt.Sprintf(`, "tz": %q`, c.zone)
			}
			todo := n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "x", "due_at": %q%s}`, c.given, zone)).wants(201)
			equal(t, c.given+": due_at", todo.text("due_at"), c.at)
			equal(t, c.given+": tz", todo.text("tz"), c.shown)
			equal(t, c.given+": again", string(n.anna.get("/v1/todos/"+todo.text("ref")).body), string(todo.body))
			message := n.anna.post("/v1/scheduled-messages", fmt.Sprintf(`{"content": "x", "trigger_at": %q%s}`, c.given, zone)).wants(201)
			equal(t, c.given+": trigger_at", message.text("trigger_at"), c.at)
			equal(t, c.given+": tz", message.text("tz"), c.shown)
		}
	})
}

// R:A8: a cron line without a zone is read where its owner lives, and the answer
// shows what that comes to.
func TestACronLineIsReadWhereItsOwnerLives(t *testing.T) {
	inZones(t, func(t *testing.T) {
		n := newNode(t)
		n.anna.patch("/v1/me", `{"tz": "Pacific/Auckland"}`).wants(200)
		a := n.anna.post("/v1/scheduled-messages", `{"content": "Mittag", "cron_expr": "0 13 * * *"}`).wants(201)
		equal(t, "tz", a.text("tz"), "Pacific/Auckland")
		equal(t, "next", fmt.Sprint(a.at("next")), fmt.Sprint([]any{
			map[string]any{"at": "2026-02-02T00:00:00Z", "local": "2026-02-02T13:00:00+13:00"},
			map[string]any{"at": "2026-02-03T00:00:00Z", "local": "2026-02-03T13:00:00+13:00"},
			map[string]any{"at": "2026-02-04T00:00:00Z", "local": "2026-02-04T13:00:00+13:00"},
		}))
		equal(t, "warnings", a.codes(), "")
		// R:A11: it moves with its owner, in the same commit.
		n.anna.patch("/v1/me", `{"tz": "Europe/Berlin"}`).wants(200)
		a = n.anna.get("/v1/scheduled-messages/" + a.text("ref")).wants(200)
		equal(t, "tz", a.text("tz"), "Europe/Berlin")
		equal(t, "next", a.text("next.0.local"), "2026-02-02T13:00:00+01:00")
		n.anna.patch("/v1/me", `{"tz": null}`).wants(200)
		a = n.anna.get("/v1/scheduled-messages/" + a.text("ref")).wants(200)
		equal(t, "tz", a.text("tz"), "UTC")
		equal(t, "warnings", a.codes(), "no_zone")
	})
}

// S:59: a day is a text, the same in each zone and after each save.
func TestADayStaysThatDay(t *testing.T) {
	inZones(t, func(t *testing.T) {
		n := newNode(t)
		for _, zone := range []string{"America/Los_Angeles", "Pacific/Apia"} {
			n.anna.patch("/v1/me", fmt.Sprintf(`{"tz": %q}`, zone)).wants(200)
			a := n.anna.post("/v1/todos", `{"content": "x", "due_on": "2026-03-29"}`).wants(201)
			for i := range 5 {
				a = n.anna.patch("/v1/todos/"+a.text("ref"), fmt.Sprintf(`{"content": "%d", "due_on": %q}`, i, a.text("due_on"))).wants(200)
				equal(t, "due_on", a.text("due_on"), "2026-03-29")
				equal(t, "due_at", a.at("due_at"), nil)
			}
		}
	})
}

// R:A10 and what else is no time, no day and no zone: refused with a code that
// stays, and never taken for UTC.
func TestATimeOrAZoneThatIsNone(t *testing.T) {
	n := newNode(t)
	rows := n.rows()
	for _, zone := range []string{"Europe/Nowhere", "Local", "local", "localtime", "UTC+2", "+02:00", "CET6", "../etc/passwd", "europe/berlin", "Europe/Berlin ",
		"/usr/share/zoneinfo/UTC", "Europe/Berlin/x", strings.Repeat("A", 5000), "Zürich", "Factory", "posixrules"} {
		for _, body := range []string{
			`{"content": "x", "tz": %q}`, `{"content": "x", "due_at": "2026-05-06T10:00", "tz": %q}`, `{"content": "x", "due_at": "2026-05-06T10:00Z", "tz": %q}`,
		} {
			equal(t, zone, n.anna.post("/v1/todos", fmt.Sprintf(body, zone)).refuses(422, "unknown_zone").fields(), "tz")
		}
		for _, when := range []string{`"cron_expr": "0 9 * * *"`, `"trigger_at": "2026-05-06T10:00"`, `"trigger_at": "2026-05-06T10:00Z"`, `"rrule": "FREQ=DAILY"`} {
			n.anna.post("/v1/scheduled-messages", fmt.Sprintf(`{"content": "x", %s, "tz": %q}`, when, zone)).refuses(422, "unknown_zone")
		}
		n.anna.patch("/v1/me", fmt.Sprintf(`{"tz": %q}`, zone)).refuses(422, "unknown_zone")
	}
	for _, at := range []string{"tomorrow", "2026-02-30T10:00Z", "2026-13-01T10:00Z", "2026-05-06", "2026-05-06T24:00Z", "2026-05-06T10:60Z", "2026-05-06T10:00:61Z",
		"10:00", "1780000000", "2026-05-06T10:00+25:00", "2026-05-06T10:00 CET", "1969-12-31T23:59:59Z", "10000-01-01T00:00Z", "0000-01-01T00:00Z",
		"2026-05-06T10:00:00,5Z", "２０２６-05-06T10:00Z", "2026-5-6T10:00Z", "P1D", "-1"} {
		equal(t, at, n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "x", "due_at": %q, "tz": "Europe/Berlin"}`, at)).refuses(422, "invalid_time").fields(), "due_at")
		n.anna.post("/v1/scheduled-messages", fmt.Sprintf(`{"content": "x", "trigger_at": %q, "tz": "Europe/Berlin"}`, at)).refuses(422, "invalid_time")
	}
	for _, day := range []string{"2026-02-29", "2026-13-01", "2026-00-10", "29.03.2026", "2026-3-29", "2026-03-29T00:00Z", "today", " 2026-03-29", "1969-12-31", "12026-03-29"} {
		equal(t, day, n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "x", "due_on": %q}`, day)).refuses(422, "invalid_date").fields(), "due_on")
	}
	n.anna.post("/v1/todos", `{"content": "x", "due_at": "2026-05-06T10:00Z", "due_on": "2026-05-06"}`).refuses(422, "todo_invalid")
	equal(t, "rows", n.rows(), rows)
	// No zone is known for anna: what has an offset is taken, what has none is not.
	equal(t, "fields", n.anna.post("/v1/todos", `{"content": "x", "due_at": "2026-05-06T10:00"}`).refuses(422, "unknown_zone").fields(), "due_at")
	equal(t, "tz", n.anna.post("/v1/todos", `{"content": "x", "due_at": "2026-05-06T10:00+02:00"}`).wants(201).at("tz"), nil)
}

// R:A15, R:A16, R:A17, R:A18 as far as they are refusals.
func TestAScheduleThatNobodyMeans(t *testing.T) {
	n := newNode(t)
	good := n.anna.post("/v1/scheduled-messages", `{"content": "x", "cron_expr": "0 9 * * *", "tz": "America/New_York"}`).wants(201)
	rows := n.rows()
	for _, c := range []struct{ id, schedule, code string }{
		{"R:A15", `"cron_expr": "0 9 30 2 *"`, "schedule_never_fires"},
		{"R:A15", `"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"`, "schedule_never_fires"},
		{"R:A15", `"rrule": "DTSTART:20200101T090000\nRRULE:FREQ=DAILY;COUNT=3"`, "schedule_never_fires"},
		{"R:A15", `"rrule": "FREQ=DAILY;UNTIL=20250101T000000Z"`, "schedule_never_fires"},
		{"R:A16", `"cron_expr": "TZ=0"`, "schedule_zone_prefix"},
		{"R:A16", `"cron_expr": "CRON_TZ=UTC"`, "schedule_zone_prefix"},
		{"R:A16", `"cron_expr": "CRON_TZ=Asia/Tokyo 0 9 * * *"`, "schedule_zone_prefix"},
		{"R:A16", `"cron_expr": " tz=UTC 0 9 * * *"`, "schedule_zone_prefix"},
		{"R:A17", `"cron_expr": "@every -5m"`, "invalid_cron"},
		{"R:A17", `"cron_expr": "@every 1s"`, "invalid_cron"},
		{"R:A17", `"cron_expr": "* * * * * *"`, "invalid_cron"},
		{"R:A17", `"rrule": "FREQ=SECONDLY"`, "schedule_too_frequent"},
		{"R:A17", `"rrule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0,30"`, "schedule_too_frequent"},
		{"R:A18", `"cron_expr": "0 9 L * *"`, "invalid_cron"},
		{"R:A18", `"cron_expr": "0 9 * * 1#2"`, "invalid_cron"},
		{"R:A18", `"cron_expr": "0 9 15W * *"`, "invalid_cron"},
		{"six fields", `"cron_expr": "0 0 9 * * *"`, "invalid_cron"},
		{"four fields", `"cron_expr": "0 9 * *"`, "invalid_cron"},
		{"out of range", `"cron_expr": "60 9 * * *"`, "invalid_cron"},
		{"backwards", `"cron_expr": "0 17-9 * * *"`, "invalid_cron"},
		{"step of nothing", `"cron_expr": "*/0 * * * *"`, "invalid_cron"},
		{"junk", `"cron_expr": "every day"`, "invalid_cron"},
		{"@reboot", `"cron_expr": "@reboot"`, "invalid_cron"},
		{"only space", `"cron_expr": " "`, "invalid_schedule"},
		{"very long", `"cron_expr": "0 9 * * ` + strings.Repeat("1,", 4000) + `1"`, "invalid_schedule"},
		{"junk rule", `"rrule": "FREQ=NEVER"`, "invalid_rrule"},
		{"no frequency", `"rrule": "BYHOUR=9"`, "invalid_rrule"},
		{"two at once", `"cron_expr": "0 9 * * *", "rrule": "FREQ=DAILY"`, "invalid_schedule"},
		{"two at once", `"cron_expr": "0 9 * * *", "trigger_at": "2026-05-06T10:00"`, "invalid_schedule"},
		{"three at once", `"cron_expr": "0 9 * * *", "trigger_at": "2026-05-06T10:00", "rrule": "FREQ=DAILY"`, "invalid_schedule"},
		{"the past", `"trigger_at": "2026-02-01T11:59:59Z"`, "trigger_at_past"},
		{"this moment", `"trigger_at": "2026-02-01T12:00:00Z"`, "trigger_at_past"},
		{"1970", `"trigger_at": "1970-01-01T00:00:00Z"`, "trigger_at_past"},
	} {
		for _, a := range []answer{
			n.anna.post("/v1/scheduled-messages", `{"content": "y", "tz": "America/New_York", `+c.schedule+`}`),
			n.anna.patch("/v1/scheduled-messages/"+good.text("ref"), `{`+c.schedule+`}`),
		} {
			if c.id == "only space" && strings.HasPrefix(a.what, "PATCH") {
				continue // takes the line away: tested below
			}
			if a.status != 422 || a.text("code") != c.code {
				t.Errorf("%s %s: %s: %d %s", c.id, c.schedule, a.what, a.status, a.body)
			}
		}
	}
	n.anna.post("/v1/scheduled-messages", `{"content": "y"}`).refuses(422, "invalid_schedule")
	for _, body := range []string{`{"cron_expr": null}`, `{"cron_expr": " "}`, `{"cron_expr": null, "rrule": null, "trigger_at": null}`} {
		n.anna.patch("/v1/scheduled-messages/"+good.text("ref"), body).refuses(422, "invalid_schedule")
	}
	equal(t, "rows", n.rows(), rows)
	equal(t, "what was good", string(n.anna.get("/v1/scheduled-messages/"+good.text("ref")).body), string(good.body))
}

// R:A13, R:A17, R:A18 as far as they are taken, each with what it may surprise by.
func TestAScheduleWithAWarning(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct{ schedule, warnings, next string }{
		{`"cron_expr": "0 9 31 * *"`, "skips_short_months", "2026-03-31T09:00:00-04:00 2026-05-31T09:00:00-04:00 2026-07-31T09:00:00-04:00"},
		{`"rrule": "DTSTART;TZID=America/New_York:20260131T233000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1"`, "", "2026-02-28T23:30:00-05:00 2026-03-31T23:30:00-04:00 2026-04-30T23:30:00-04:00"},
		{`"cron_expr": "0 9 * * 7"`, "", "2026-02-01T09:00:00-05:00 2026-02-08T09:00:00-05:00 2026-02-15T09:00:00-05:00"},
		{`"cron_expr": "0 9 13 * 5"`, "day_or_weekday", "2026-02-06T09:00:00-05:00 2026-02-13T09:00:00-05:00 2026-02-20T09:00:00-05:00"},
		{`"cron_expr": "* * * * *"`, "", "2026-02-01T07:01:00-05:00 2026-02-01T07:02:00-05:00 2026-02-01T07:03:00-05:00"},
		{`"cron_expr": "30 2 8 3 *"`, "", "2026-03-08T03:30:00-04:00 2027-03-08T02:30:00-05:00 2028-03-08T02:30:00-05:00"},
		{`"trigger_at": "2026-02-01T12:00:00.001Z"`, "", "2026-02-01T07:00:00-05:00"},
	} {
		a := n.anna.post("/v1/scheduled-messages", `{"content": "x", "tz": "America/New_York", `+c.schedule+`}`).wants(201)
		var next []string
		for _, f := range a.at("next").([]any) {
			next = append(next, f.(map[string]any)["local"].(string))
		}
		equal(t, c.schedule+": warnings", a.codes(), c.warnings)
		equal(t, c.schedule+": next", strings.Join(next, " "), c.next)
		if c.warnings == "day_or_weekday" {
			equal(t, "in words", a.text("warnings.0.detail"), "on the 13th, and every Friday")
		}
	}
}

// R:A15 from the peer: kept as it came, shown with why it does not ring, and still a
// person's to correct.
func TestAReminderFromThePeerThatCannotRing(t *testing.T) {
	n := newNode(t)
	n.fromPeer(`{"table": "scheduled_messages", "origin": 0, "id": 7, "uid": "0123456789abcdef0123456789abcdef", "owner": "` + n.anna.id + `",
		"created_at": 1, "updated_at": 1, "updated_by": "local", "content": "x", "cron_expr": "0 9 30 2 *", "tz": "Mars/Olympus"}`)
	a := n.anna.get("/v1/scheduled-messages/0-7").wants(200)
	equal(t, "cron_expr", a.text("cron_expr"), "0 9 30 2 *")
	equal(t, "next", fmt.Sprint(a.at("next")), "[]")
	equal(t, "problem", a.text("problem.code"), "unknown_zone")
	n.anna.get("/v1/scheduled-messages").wants(200)
	n.anna.patch("/v1/scheduled-messages/0-7", `{"content": "y"}`).wants(200)
	n.anna.patch("/v1/scheduled-messages/0-7", `{"tz": "Europe/Berlin"}`).refuses(422, "schedule_never_fires")
	n.anna.patch("/v1/scheduled-messages/0-7", `{"tz": "Europe/Berlin", "cron_expr": "0 9 28 2 *"}`).wants(200)
}

// A todo from a newer peer, or one that was edited by hand, can be ticked off
// whatever is in it.
func TestATodoFromThePeerThatWouldNotBeTakenHere(t *testing.T) {
	n := newNode(t)
	n.fromPeer(`{"table": "todos", "origin": 0, "id": 7, "uid": "0123456789abcdef0123456789abcdef", "owner": "` + n.anna.id + `",
		"created_at": 1, "updated_at": 1, "updated_by": "local", "content": " ", "notes": "` + strings.Repeat("x", 150<<10) + `",
		"due_at": 1800000000000, "due_on": "2027-02-30", "tz": "Mars/Olympus", "colour": "red"}`)
	n.anna.patch("/v1/todos/0-7", `{"done": true}`).wants(200)
	equal(t, "extra", n.count(`SELECT extra = '{"colour":"red"}' FROM todos`), 1)
	n.anna.patch("/v1/todos/0-7", `{"content": " "}`).refuses(422, "todo_invalid")
	n.anna.patch("/v1/todos/0-7", `{"notes": "short"}`).wants(200)
	a := n.anna.patch("/v1/todos/0-7", `{"due_at": "2027-03-01T09:00Z"}`).wants(200)
	equal(t, "due_on", a.at("due_on"), nil)
	equal(t, "done", a.at("done"), any(true))
}

// A reminder that nobody would hear is taken, and its answer says so.
func TestAReminderThatNobodyWouldHearIsTakenWithAWarning(t *testing.T) {
	n := newNode(t)
	for _, mute := range []bool{false, true} {
		n.services.Mute = mute
		n.handler = New(n.services)
		want := ""
		if mute {
			want = "no_channel"
		}
		a := n.anna.post("/v1/scheduled-messages", `{"content": "x", "cron_expr": "0 7 * * *", "tz": "Europe/Berlin"}`).wants(201)
		equal(t, fmt.Sprint("warnings, mute ", mute), a.codes(), want)
		a = n.anna.patch(a.header.Get("Location"), `{"content": "y"}`).wants(200)
		equal(t, fmt.Sprint("warnings of an edit, mute ", mute), a.codes(), want)
	}
}
