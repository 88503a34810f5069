package link_test

import (
	"net/http"
	"strings"
	"testing"

	"tandem/internal/sync/link"
)

// loseAll has the cloud come back without rows and cursors, in another life.
func (n *node) loseAll() {
	n.t.Helper()
	for _, statement := range []string{`DELETE FROM todos`, `DELETE FROM sync_cursors`, `DELETE FROM sync_tokens`, `UPDATE sync_state SET incarnation = 'another'`} {
		n.exec(statement)
	}
	n.restart()
}

func offerAll(t *testing.T, c *link.Client) {
	t.Helper()
	for more := true; more; {
		var err error
		more, err = c.OfferPage(t.Context())
		must(t, err)
	}
}

// Found by the simulator: a client that had nothing new asked nobody, and the cloud
// lacked what it had lost until the next write.
func TestAPeerThatWasPutBackIsOfferedWhatItLostWithoutANewWrite(t *testing.T) {
	for name, hear := range map[string]func(*testing.T, *link.Client){
		"heard in a greeting": func(t *testing.T, c *link.Client) { must(t, c.Greet(t.Context())) },
		"heard in a reset":    func(t *testing.T, c *link.Client) { fetchPage(t, c) },
	} {
		t.Run(name, func(t *testing.T) {
			local, cloud := pair(t)
			l := newLine(cloud)
			c := clientOver(local, l)
			must(t, c.Greet(t.Context()))
			r := local.add("milk")
			offerAll(t, c)
			cloud.add("of the cloud")
			fetchPage(t, c)
			equal(t, "before", cloud.content(r), "milk")
			cloud.loseAll()
			hear(t, c)
			offerAll(t, c)
			equal(t, "after", cloud.content(r), "milk")
		})
	}
}

// Found by the simulator: acks of a life that was never greeted are void, so the same
// letters came, acted on nothing and were acked again, call after call.
func TestLettersDoNotComeForEverWhenALifeHasBegunSinceTheGreeting(t *testing.T) {
	corresponding(t, func(t *testing.T, local, cloud *post, l *line, c *link.Client) {
		must(t, c.Greet(t.Context()))
		if _, err := local.n.log.Page(t.Context(), local.n.log.Incarnation()+".1.unknown", 10); err != nil { // which begins a life
			t.Fatal(err)
		}
		calls := 0
		l.answers(func(path string) *http.Response {
			if calls++; calls > 20 {
				return answer(http.StatusServiceUnavailable, "text/plain", strings.NewReader("enough"))
			}
			return nil
		})
		cloud.send("down", "ann")
		must(t, c.Exchange(t.Context()))
		equal(t, "at local", local.acted(), "down")
		waiting, err := cloud.Next(t.Context())
		must(t, err)
		equal(t, "waiting at the cloud", waiting, "")
	})
}
