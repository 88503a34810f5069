package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tandem/internal/sync"
)

// meet has each of two nodes read the other's log to its end.
func meet(a, b *node) {
	a.Helper()
	for _, way := range [][2]*node{{a, b}, {b, a}, {a, b}} {
		to, from := way[0], way[1]
		for {
			cursor, err := to.log.Cursor(to.Context(), from.name)
			to.must(err)
			page, err := from.log.Page(from.Context(), cursor, sync.PageRows)
			to.must(err)
			if len(page.Entries) == 0 {
				break
			}
			_, err = to.log.Apply(to.Context(), from.name, cursor, page.Cursor, page.Entries)
			to.must(err)
		}
	}
}

// S:47. A request whose answer was lost makes one row, on whichever node it is sent
// again.
func TestARequestWhoseAnswerWasLostMakesOneRowOnBothNodes(t *testing.T) {
	for list, body := range rowsOf {
		table := map[string]string{"/v1/todos": "todos", "/v1/scheduled-messages": "scheduled_messages"}[list]
		live := func(n *node) int { return n.count(`SELECT count(*) FROM ` + table + ` WHERE deleted_at IS NULL`) }

		t.Run(list+" after it has crossed", func(t *testing.T) {
			cloud := newNode(t)
			home := cloud.home()
			cloud.crash, cloud.broken = "api.committed", true
			cloud.anna.with("Idempotency-Key", "k").post(list, body).wants(500) // done, and nobody heard
			cloud.crash = ""
			meet(home, cloud)
			for range 2 {
				home.wait(time.Minute)
				a := home.anna.with("Idempotency-Key", "k").post(list, body).wants(201)
				equal(t, "ref", a.text("ref"), "1-1")
				equal(t, "Location", a.header.Get("Location"), list+"/1-1")
				equal(t, "content", a.text("content"), "x")
			}
			equal(t, "asked there again", cloud.anna.with("Idempotency-Key", "k").post(list, body).wants(201).text("ref"), "1-1")
			meet(home, cloud)
			equal(t, "rows", fmt.Sprint(live(home), live(cloud)), "1 1")
			equal(t, "conflicts", fmt.Sprint(home.anna.get("/v1/sync/conflicts").at("items")), "[]")
			equal(t, "of another key", home.anna.with("Idempotency-Key", "l").post(list, body).wants(201).text("ref"), "0-1")
		})
		t.Run(list+" while the nodes are apart", func(t *testing.T) {
			cloud := newNode(t)
			home := cloud.home()
			key := func(n *node) person { return n.anna.with("Idempotency-Key", "k") }
			cloud.wait(time.Minute)
			there := key(cloud).post(list, body).wants(201).text("ref")
			here := key(home).post(list, body).wants(201).text("ref")
			equal(t, "refs", here+" "+there, "0-1 1-1")
			meet(home, cloud)
			for _, n := range []*node{home, cloud} {
				equal(t, n.name+": rows", live(n), 1)
				equal(t, n.name+": listed", strings.Join(n.anna.get(list).refs(), " "), here)
				for _, ref := range []string{here, there} {
					equal(t, n.name+": what "+ref+" leads to", n.anna.get(list+"/"+ref).wants(200).text("ref"), here)
				}
				equal(t, n.name+": conflicts", fmt.Sprint(n.anna.get("/v1/sync/conflicts").at("items")), "[]")
			}
			// The answer that was kept is said again; the ref in it still leads to the row.
			equal(t, "the cloud's answer", key(cloud).post(list, body).wants(201).text("ref"), there)
			cloud.wait(time.Minute)
			cloud.anna.patch(list+"/"+there, `{"content": "y"}`).wants(200)
			meet(home, cloud)
			equal(t, "edited under the other ref", home.anna.get(list+"/"+here).text("content"), "y")
			home.anna.delete(list + "/" + there).wants(204)
			meet(home, cloud)
			equal(t, "rows, deleted under the other ref", fmt.Sprint(live(home), live(cloud)), "0 0")
		})
	}
}

// A key is its owner's: the same one of somebody else makes another row.
func TestTheSameKeyOfSomebodyElse(t *testing.T) {
	cloud := newNode(t)
	home := cloud.home()
	ben := home.login("ben@example.org")
	cloud.anna.with("Idempotency-Key", "k").post("/v1/todos", `{"content": "anna's"}`).wants(201)
	meet(home, cloud)
	equal(t, "ben's", ben.with("Idempotency-Key", "k").post("/v1/todos", `{"content": "ben's"}`).wants(201).text("content"), "ben's")
	meet(home, cloud)
	equal(t, "rows", cloud.count(`SELECT count(*) FROM todos WHERE deleted_at IS NULL`), 2)
}
