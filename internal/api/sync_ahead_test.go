package api

import (
	"strings"
	"testing"
	"time"
)

// S:18.
func TestTheStatusTellsOfAStampThatIsFarAhead(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		ahead time.Duration
		want  any
	}{{23 * time.Hour, nil}, {25 * time.Hour, 1.0}} {
		row := n.anna.post("/v1/todos", `{"content": "of `+c.ahead.String()+`"}`).wants(201)
		n.fromPeer(n.sent("of "+c.ahead.String()).edited(n.now().Add(c.ahead), map[string]any{"content": "by a clock that is ahead"}))
		equal(t, "it is taken", n.anna.get(row.header.Get("Location")).wants(200).text("content"), "by a clock that is ahead")
		for _, who := range []person{n.anna, n.ben} { // an admin and somebody else
			a := who.get("/v1/sync/status").wants(200)
			equal(t, "stamped ahead", a.at("stamped_ahead"), c.want)
			equal(t, "in words", strings.Contains(a.text("detail"), "One entry says that it was written more than a day from now"), c.want != nil)
		}
	}
}
