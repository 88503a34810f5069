package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	gosync "sync"
	"testing"
	"time"
)

// R:G7: whoever was there from the first page to the last is seen once, whatever
// comes and goes meanwhile.
func TestAListIsReadPageByPageWhileItChanges(t *testing.T) {
	n := newNode(t)
	old := map[string]bool{}
	for i := range 250 {
		if i%7 == 0 {
			n.wait(time.Millisecond) // some rows share a moment
		}
		old[n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "%d"}`, i)).wants(201).text("ref")] = true
	}
	seen := map[string]int{}
	var order []string
	cursor, pages := "", 0
	for ; pages == 0 || cursor != ""; pages++ {
		a := n.anna.get("/v1/todos?limit=20&cursor=" + cursor).wants(200)
		for _, ref := range a.refs() {
			seen[ref]++
			order = append(order, ref)
		}
		if _, there := a.json()["next_cursor"]; there != (a.text("next_cursor") != "") {
			t.Fatalf("next_cursor at the end: %s", a.body)
		}
		cursor = a.text("next_cursor")
		n.anna.delete("/v1/todos/" + a.refs()[0]).wants(204)                       // one that was seen
		n.anna.delete("/v1/todos/" + fmt.Sprint("1-", 250-pages)).wants(204)       // one that is still to come
		n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "new %d"}`, pages))      // one at the end
		n.anna.patch("/v1/todos/"+a.refs()[1], `{"content": "edited"}`).wants(200) // one that moves nowhere
		delete(old, fmt.Sprint("1-", 250-pages))
	}
	for ref := range old {
		equal(t, ref, seen[ref], 1)
	}
	for ref, times := range seen {
		if times > 1 {
			t.Errorf("%s was seen %d times", ref, times)
		}
	}
	if pages < 12 || len(order) < 235 {
		t.Errorf("%d rows on %d pages", len(order), pages)
	}
}

// How many: 50 where nothing is said, 200 at most.
func TestHowMuchOfAListComesAtOnce(t *testing.T) {
	n := newNode(t)
	n.sql(`
		WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 210)
		INSERT INTO todos (origin, id, uid, owner, created_at, updated_at, updated_by, seq, content)
		SELECT 0, i, unhex(printf('%032x', i)), ?, 1, 1, 'local', 1000 + i, 'x' FROM r`, n.anna.id)
	for query, want := range map[string]int{"": 50, "limit=1": 1, "limit=200": 200, "limit=201": 200, "limit=1000": 200, "limit=9223372036854775807": 200} {
		a := n.anna.get("/v1/todos?" + query).wants(200)
		equal(t, query, len(a.refs()), want)
		if a.text("next_cursor") == "" {
			t.Errorf("%s: no next_cursor", query)
		}
	}
	a := n.anna.get("/v1/todos?limit=200&cursor=" + n.anna.get("/v1/todos?limit=10").text("next_cursor")).wants(200)
	equal(t, "the last page", len(a.refs()), 200)
	if _, there := a.json()["next_cursor"]; there {
		t.Errorf("a cursor behind the last row: %s", a.text("next_cursor"))
	}
	equal(t, "an empty list", string(n.ben.get("/v1/todos").wants(200).body), `{"items":[]}`+"\n")
}

// R:G7: a cursor is good for its list, its filter and its owner.
func TestACursorOfAnotherListIsRefused(t *testing.T) {
	n := newNode(t)
	for _, c := range []person{n.anna, n.ben} {
		for i := range 3 {
			c.post("/v1/todos", `{"content": "x", "done": true, "due_at": "2026-05-06T10:00Z"}`).wants(201)
			c.post("/v1/scheduled-messages", `{"content": "x", "cron_expr": "0 9 * * *"}`).wants(201)
			c.post("/v1/push-tokens", fmt.Sprintf(`{"token": "%d%s", "platform": "ios", "device_id": "%d%s"}`, i, c.id, i, c.id)).wants(201)
		}
	}
	lists := []string{"/v1/todos?", "/v1/todos?done=true&", "/v1/todos?done=false&", "/v1/todos?q=x&", "/v1/todos?q=y&", "/v1/todos?due_before=2027-01-01T00:00Z&", "/v1/todos?q=2027-01-01T00:00Z&",
		"/v1/scheduled-messages?", "/v1/push-tokens?"}
	good := 0
	for _, of := range lists {
		cursor := n.anna.get(of + "limit=1").wants(200).text("next_cursor")
		if cursor == "" {
			continue // nothing is on that list
		}
		for _, at := range lists {
			a := n.anna.get(at + "limit=1&cursor=" + cursor)
			if of == at {
				a.wants(200)
				good++
			} else {
				a.refuses(400, "invalid_cursor")
			}
		}
		n.ben.get(of+"limit=1&cursor="+cursor).refuses(400, "invalid_cursor")
		for i := range len(cursor) {
			if b := []byte(cursor); b[i] != 'A' && i < len(cursor)-1 { // the last sign has bits to spare
				b[i] = 'A'
				n.anna.get(of+"cursor="+string(b)).refuses(400, "invalid_cursor")
			}
		}
		for _, junk := range []string{"junk", cursor[1:], cursor[:len(cursor)-4], cursor + cursor, strings.Repeat("A", 5000), "%2B%2F%3D", "0", "💥",
			base64.RawURLEncoding.EncodeToString(make([]byte, 12)), base64.RawURLEncoding.EncodeToString(make([]byte, 29))} {
			n.anna.get(of+"cursor="+url.QueryEscape(junk)).refuses(400, "invalid_cursor")
		}
	}
	equal(t, "lists with cursors", good, 6)
}

func TestDevicesAreAListToo(t *testing.T) {
	n := newNode(t)
	for _, id := range []string{"c", "a", "é"[:0] + "b/%", "B"} {
		n.anna.post("/v1/push-tokens", fmt.Sprintf(`{"token": "t%s", "platform": "ios", "device_id": %q}`, id, id)).wants(201)
	}
	var ids []string
	for cursor := "&"; cursor != ""; {
		a := n.anna.get("/v1/push-tokens?limit=1" + cursor).wants(200)
		for _, d := range a.at("items").([]any) {
			ids = append(ids, d.(map[string]any)["device_id"].(string))
		}
		if cursor = a.text("next_cursor"); cursor != "" {
			cursor = "&cursor=" + cursor
		}
	}
	equal(t, "ids", fmt.Sprint(ids), "[B a b/% c]")
}

func TestAListByFilter(t *testing.T) {
	n := newNode(t)
	n.anna.patch("/v1/me", `{"tz": "Europe/Berlin"}`).wants(200)
	for _, body := range []string{
		`{"content": "100% Wolle"}`, `{"content": "100 Prozent", "done": true}`, `{"content": "snake_case", "notes": "C:\\temp\\x"}`, `{"content": "snakeXcase"}`,
		`{"content": "明天早上9点买牛奶", "due_at": "2026-05-06T09:00"}`, `{"content": "ÄRGER", "due_at": "2026-05-06T09:00Z", "done": true}`,
		`{"content": "Tag", "due_on": "2026-05-06"}`, `{"content": "'; DROP TABLE todos; --", "due_on": "2026-05-07"}`,
	} {
		n.anna.post("/v1/todos", body).wants(201)
	}
	n.ben.post("/v1/todos", `{"content": "100% of ben's"}`).wants(201)
	for query, want := range map[string]string{
		"q=100":                        "1 2",
		"q=100%":                       "1",
		"q=_":                          "3",
		"q=snake_case":                 "3",
		"q=SNAKE":                      "3 4",
		"q=\\":                         "3",
		"q=\\temp\\":                   "3",
		"q=%%":                         "",
		"q=牛奶":                         "5",
		"q=9点":                         "5",
		"q=ärger":                      "", // case is folded in ASCII only
		"q=';":                         "8",
		"q=*":                          "",
		"done=true":                    "2 6",
		"done=false":                   "1 3 4 5 7 8",
		"done=true&q=100":              "2",
		"due_before=2026-05-06T07:00Z": "",
		"due_before=2026-05-06T07:01Z": "5",
		"due_before=2026-05-06T09:01":  "5", // where anna lives
		"due_before=2026-05-06T23:59":  "5 6",
		"due_before=2026-05-07T00:00":  "5 6 7", // her 6 May is over
		"due_before=2026-05-06T22:00Z": "5 6 7",
		"due_before=2027-01-01T00:00Z": "5 6 7 8",
		"due_before=2027-01-01T00:00Z&done=true&q=r": "6",
	} {
		values := url.Values{}
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			values.Set(name, value)
		}
		var got []string
		for _, ref := range n.anna.get("/v1/todos?" + values.Encode()).wants(200).refs() {
			got = append(got, strings.TrimPrefix(ref, "1-"))
		}
		equal(t, query, strings.Join(got, " "), want)
	}
	equal(t, "a + that was not encoded", len(n.anna.get("/v1/todos?due_before=2026-05-06T09:01:00+02:00").wants(200).refs()), 1)
	equal(t, "fields", n.anna.get("/v1/todos?due_before=tomorrow").refuses(422, "invalid_time").fields(), "due_before")
	equal(t, "fields", n.ben.get("/v1/todos?due_before=2026-05-06T09:00").refuses(422, "unknown_zone").fields(), "due_before")
	n.ben.get("/v1/todos?due_before=2026-05-06T09:00Z").wants(200)
}

// Reminders are listed in the order they were made, those that have ended too.
func TestAListOfReminders(t *testing.T) {
	n := newNode(t)
	for _, at := range []string{"2026-02-01T12:00:05Z", "2030-01-01T00:00:00Z", "2027-01-01T00:00:00Z"} {
		n.anna.post("/v1/scheduled-messages", fmt.Sprintf(`{"content": "x", "trigger_at": %q}`, at)).wants(201)
	}
	n.wait(time.Hour)
	first := n.anna.get("/v1/scheduled-messages?limit=2").wants(200)
	rest := n.anna.get("/v1/scheduled-messages?limit=2&cursor=" + first.text("next_cursor")).wants(200)
	equal(t, "refs", fmt.Sprint(slices.Concat(first.refs(), rest.refs())), "[1-1 1-2 1-3]")
	equal(t, "about to ring late", first.text("items.0.next.0.at"), "2026-02-01T12:00:05Z")
	n.anna.get("/v1/scheduled-messages?done=true").refuses(422, "invalid_request")
}

// S:49: writers and a page of the peer's at once: nobody hears of a lock.
func TestManyWritersWhileAPageIsApplied(t *testing.T) {
	n := newNode(t)
	var page []string
	for i := range 200 {
		page = append(page, fmt.Sprintf(`{"table": "todos", "origin": 0, "id": %d, "uid": "%032x", "owner": %q, "created_at": 1, "updated_at": 1, "updated_by": "local", "content": "x"}`, i+1, i+1, n.anna.id))
	}
	var wg gosync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 4 {
				at := n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "%d"}`, i)).wants(201).header.Get("Location")
				n.anna.patch(at, `{"done": true}`).wants(200)
				n.anna.get("/v1/todos?limit=5").wants(200)
			}
		})
	}
	n.fromPeer(page...)
	wg.Wait()
	equal(t, "todos", n.count(`SELECT count(*) FROM todos`), 400)
	equal(t, "done", n.count(`SELECT count(*) FROM todos WHERE done`), 200)
	equal(t, "seqs", n.count(`SELECT count(DISTINCT seq) FROM todos`), 400)
}

func TestTodosAreDueByInstantWhateverTheSpelling(t *testing.T) { // R:F6
	n := newNode(t)
	for _, at := range []string{"2026-05-06T01:00:00.5Z", "2026-05-06T01:00:00Z", "2026-05-06T03:00:00.25+02:00", "2026-05-06T00:59:59-00:30"} {
		n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "x", "due_at": %q}`, at)).wants(201)
	}
	for before, want := range map[string]int{
		"2026-05-06T01:00:00Z": 0, "2026-05-06T01:00:00.001Z": 1, "2026-05-06T02:00:00.26%2B01:00": 2, "2026-05-06T01:00:01Z": 3, "2026-05-06T02:00:00Z": 4,
	} {
		var list struct{ Items []struct{} }
		a := n.anna.get("/v1/todos?due_before=" + before).wants(200)
		if err := json.Unmarshal(a.body, &list); err != nil || len(list.Items) != want {
			t.Errorf("before %s: %d, want %d (%v)", before, len(list.Items), want, err)
		}
	}
}
