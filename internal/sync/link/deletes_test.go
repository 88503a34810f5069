package link_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// removeFirst deletes so many rows that local made.
func (n *node) removeFirst(count int) {
	n.t.Helper()
	at := n.now().UnixMilli()
	for id := range count {
		n.edit(sync.Ref{Origin: 0, ID: int64(id + 1)}, "deleted_at", &at)
	}
}

func (n *node) live() int {
	n.t.Helper()
	return read[int](n, `SELECT count(*) FROM todos WHERE deleted_at IS NULL`)
}

// deletedApart has local delete rows of the five hundred or so that both have, while the
// line is cut; then it is started anew, and its first offer of them meets 503.
func deletedApart(t *testing.T, rows, deletes int, test func(local, cloud *node, l *line, c *link.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		c, _ := client(local, l, nil, nil)
		local.many(rows, 0)
		stop := started(c)
		time.Sleep(time.Minute)
		same(t, local, cloud)
		l.cut()
		local.removeFirst(deletes)
		time.Sleep(time.Minute)
		stop()
		local.restart()
		refused := 0
		l.heal()
		c, _ = clientLogging(local, answers(func(r *http.Request) (*http.Response, error) {
			if refused > 0 || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/changes") {
				return l.RoundTrip(r)
			}
			sent, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(sent))
			if !bytes.Contains(unpacked(sent, r.Header), []byte(`"deleted_at"`)) { // it asks how far the cloud has read
				return l.RoundTrip(r)
			}
			refused++
			return answer(503, "application/problem+json", strings.NewReader(`{"code":"busy"}`)), nil
		}))
		running(t, c)
		time.Sleep(loop.Longest) // nobody writes anything
		synctest.Wait()
		equal(t, "offers that met 503", refused, 1)
		test(local, cloud, l, c)
	})
}

// S:37. The one call that carries them fails, and nothing is written after it.
func TestDeletesMadeApartArriveThoughTheirFirstCallFails(t *testing.T) {
	deletedApart(t, 40, 40, func(local, cloud *node, l *line, c *link.Client) {
		equal(t, "live at the cloud", cloud.live(), 0)
		same(t, local, cloud)
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "live an hour later", local.live()+cloud.live(), 0)
	})
}

// S:37. Of so many at once the cloud asks a person first; meanwhile none comes back.
func TestVeryManyDeletesMadeApartAreHeldAndGoWhenTheyAreMeant(t *testing.T) {
	deletedApart(t, 500, 450, func(local, cloud *node, l *line, c *link.Client) {
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "live at the cloud while they are held", cloud.live(), 500)
		equal(t, "live at local", local.live(), 50)
		for end, s := range map[string]link.Status{"local": c.Status(), "cloud": l.server().Status()} {
			if s.Code != link.CodeHeld {
				t.Errorf("the status of %s says %s %q", end, s.State, s.Detail)
			}
		}
		cloud.write(func(tx *sqlite.Tx) error { _, err := cloud.log.DecideHeldTx(tx, true); return err })
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "live then", cloud.live(), 50)
		same(t, local, cloud)
		for end, s := range map[string]link.Status{"local": c.Status(), "cloud": l.server().Status()} {
			equal(t, "the state of "+end, s.State, link.OK)
		}
	})
}
