package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync/letters"
)

// What has had its time goes from both nodes by itself, and nothing else does: the text of
// what was deleted 30 days after the other node has it, letters and the keys of requests
// likewise, facts after 90 days. The machines sleep meanwhile.
func TestUpkeepTakesAwayWhatHasHadItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		both := []*machine{b.home, b.cloud}
		later := func(d time.Duration) {
			b.home.off()
			b.cloud.off()
			settle(d)
			b.cloud.on()
			b.home.on()
			healed()
			settle(time.Hour) // until upkeep has come again
			b.login()
		}
		counts := func(m *machine, table string) string {
			return strings.Join(m.rows(`SELECT count(*) || '' FROM `+table), "")
		}
		gone, stays := b.home.add("secret"), b.cloud.add("stays")
		settle(time.Second)
		b.home.edit(stays, map[string]any{"notes": "as it is"})
		b.home.do(http.MethodPost, "/v1/todos", map[string]string{"content": "by a key"}, nil, "Idempotency-Key: key")
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"}) // makes facts
		must(t, b.cloud.node.folder.todos.Write(t.Context(), func(tx *sqlite.Tx) error {
			return b.cloud.node.letters.SendTx(tx, letters.Letter{Key: "k", Owner: "ann", Kind: "turn", Body: []byte(`{}`)})
		}))
		settle(10 * time.Minute)
		b.cloud.do(http.MethodDelete, "/v1/todos/"+gone, nil, nil)
		settle(2 * time.Hour) // the nodes wait for each other; nothing follows
		const text = `SELECT content FROM todos WHERE deleted_at IS NOT NULL`
		later(29*24*time.Hour - 4*time.Hour)
		for _, m := range both {
			equal(t, m.config.Node.Name+" after 29 days", strings.Join(m.rows(text), ""), "secret")
			if m == b.cloud {
				equal(t, "letters at the cloud after 29 days", counts(m, "letters_sent"), "1")
			}
		}
		later(2 * 24 * time.Hour)
		for _, m := range both {
			name := m.config.Node.Name
			equal(t, name+" after 31 days", strings.Join(m.rows(text), ""), "")
			equal(t, name+": rows", counts(m, "todos"), "3")
			equal(t, name+": letters", counts(m, "letters_sent"), "0")
			equal(t, name+": letters that were parked", counts(m, "letters_parked"), "0")
			equal(t, name+": keys of requests", counts(m, "idempotency"), "0")
			if counts(m, "facts") == "0" {
				t.Errorf("%s: facts went after 31 days", name)
			}
		}
		later(60 * 24 * time.Hour)
		for _, m := range both {
			equal(t, m.config.Node.Name+": facts after 91 days", counts(m, "facts"), "0")
		}
		equal(t, "what lives", b.home.todos(), b.cloud.todos())
		b.alike()
	})
}

// A node that was parted from its peer is alone: what it deletes loses its text as there,
// though the peer stands in its configuration still.
func TestAPartedNodeKeepsNoTextForThePeer(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		ref := b.home.add("secret")
		settle(time.Second)
		_, err := b.home.node.unpair(t.Context(), struct{}{})
		must(t, err)
		b.home.do(http.MethodDelete, "/v1/todos/"+ref, nil, nil)
		settle(2 * time.Hour)
		b.home.off()
		b.cloud.off()
		settle(30 * 24 * time.Hour)
		b.home.on()
		settle(2 * time.Hour)
		equal(t, "text", strings.Join(b.home.rows(`SELECT content FROM todos`), ""), "")
	})
}
