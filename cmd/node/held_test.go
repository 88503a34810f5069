package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Deletes that are held are told of at both nodes at once, with where and how to decide;
// and once that is done nobody is told of them any more.
func TestBothNodesSayWhoDecidesAboutHeldDeletes(t *testing.T) {
	for _, at := range []string{"home", "cloud"} {
		for _, verdict := range []string{"apply", "keep"} {
			t.Run(at+" has "+verdict, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					decides, other := b.home, b.cloud
					if at == "cloud" {
						decides, other = b.cloud, b.home
					}
					b.home.config.HTTP.Listen, b.cloud.config.HTTP.PublicURL = "127.0.0.1:8470", "http://cloud.test"
					for _, m := range []*machine{b.home, b.cloud} {
						m.off()
						m.on()
					}
					var refs []string
					for i := range 80 {
						refs = append(refs, other.add(fmt.Sprint("todo ", i)))
					}
					settle(time.Minute)
					b.link.cut()
					for _, ref := range refs {
						other.do(http.MethodDelete, "/v1/todos/"+ref, nil, nil)
					}
					b.link.mend()
					healed()
					here := map[string]string{"home": "http://127.0.0.1:8470", "cloud": "http://cloud.test"}[at]
					there := map[string]string{"home": "http://ADDRESS-OF-HOME", "cloud": "http://cloud.test"}[at]
					for m, says := range map[*machine][2]string{
						decides: {"fail sync: 80 deletes that came from " + other.config.Node.Name + " at once are held back here", here},
						other:   {"warn sync: 80 deletes of this node are held back at " + at, there},
					} {
						said, s := m.findings(), m.syncStatus()
						call := "An admin decides at " + at + ", with a login of that node: curl -X POST " + says[1] + "/v1/sync/held/decision"
						if !strings.Contains(said, says[0]) || !strings.Contains(said, call) {
							t.Errorf("the doctor of %s says\n%s", m.config.Node.Name, said)
						}
						if s.Code != "deletes_held" || !strings.Contains(s.Detail, call) || strings.Contains(said, "entries could not be taken") {
							t.Errorf("the status of %s: %+v", m.config.Node.Name, s)
						}
					}
					decides.do(http.MethodPost, "/v1/sync/held/decision", map[string]string{"verdict": verdict}, nil)
					equal(t, "at once, the state at the one that decides", decides.syncStatus().Code, "")
					settle(2 * time.Second)
					equal(t, "then, at the other one", other.syncStatus().State, "ok")
					for _, m := range []*machine{b.home, b.cloud} {
						if said := m.findings(); strings.Contains(said, "held back") {
							t.Errorf("the doctor of %s says\n%s", m.config.Node.Name, said)
						}
					}
					b.alike()
				})
			})
		}
	}
}
