package api

import (
	"testing"
	"time"

	"tandem/internal/sqlite"
)

func TestADeletedTodoIsBroughtBack(t *testing.T) {
	n := newNode(t)
	made := n.anna.post("/v1/todos", `{"content": "milk", "notes": "two"}`).wants(201)
	at := made.header.Get("Location")
	n.anna.delete(at).wants(204)
	n.wait(time.Minute)
	back := n.anna.post(at+"/undelete", "").wants(200)
	equal(t, "ref", back.text("ref"), made.text("ref"))
	equal(t, "content", back.text("content")+" "+back.text("notes"), "milk two")
	equal(t, "updated_at", back.text("updated_at"), "2026-02-01T12:01:00Z")
	seen := n.anna.get(at).wants(200)
	equal(t, "ETag", seen.header.Get("ETag"), back.header.Get("ETag"))
	n.wait(time.Minute)
	again := n.anna.post(at+"/undelete", "").wants(200) // done twice
	equal(t, "ETag of one that is there", again.header.Get("ETag"), back.header.Get("ETag"))
}

func TestWhatCannotBeBroughtBack(t *testing.T) {
	n := newNode(t)
	at := n.anna.post("/v1/todos", `{"content": "milk"}`).wants(201).header.Get("Location")
	n.anna.delete(at).wants(204)
	n.ben.post(at+"/undelete", "").refuses(404, "todo_not_found")
	for _, ref := range []string{"1-99", "0-1", "1-01", "x"} {
		n.anna.post("/v1/todos/"+ref+"/undelete", "").refuses(404, "todo_not_found")
	}
	person{node: n}.post(at+"/undelete", "").wants(401)
	n.must(n.db.Write(t.Context(), func(tx *sqlite.Tx) error { // as upkeep does a month later
		_, err := tx.Exec(`UPDATE todos SET content = ''`)
		return err
	}))
	n.anna.post(at+"/undelete", "").refuses(409, "text_is_gone")
	n.anna.get(at).wants(404)
}
