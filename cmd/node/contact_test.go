package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/internal/config"
)

// told are the titles of what the nodes said of themselves, sorted.
func (b *bubble) told() string {
	var out []string
	for _, m := range b.fcm.Messages() {
		out = append(out, m.Data["title"])
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// syncStatus is what a node says of its link.
func (m *machine) syncStatus() (s struct {
	State, Code, Detail, Banner string
	Fetch, Send                 struct {
		LastSuccess string `json:"last_success"`
		Pending     *int64
	}
}) {
	m.Helper()
	m.do(http.MethodGet, "/v1/sync/status", nil, &s)
	return s
}

// revoke has the cloud know a secret that may be another than home's.
func (b *bubble) revoke(secret string) {
	b.Helper()
	b.cloud.off()
	b.cloud.config.Peer.Token = config.Secret(secret)
	b.cloud.on()
}

// S:66. A link that is dead for a day is told of by each node that runs, and once more
// when it is over.
func TestALinkThatIsDeadForADayIsToldOf(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.home.register("phone")
		settle(time.Minute)
		equal(t, "banner", b.home.syncStatus().Banner+b.cloud.syncStatus().Banner, "")
		b.revoke(strings.Repeat("another-secret-", 4))
		settle(20 * time.Hour)
		b.login()
		for _, m := range []*machine{b.home, b.cloud} {
			if s := m.syncStatus(); s.State == "ok" || s.Banner != "" || s.Detail == "" {
				t.Errorf("after 20 h: %+v", s)
			}
		}
		equal(t, "told after 20 h", b.told(), "")
		b.home.kill() // what has crossed last is known for good
		b.home.on()
		settle(5*time.Hour + 5*time.Minute)
		equal(t, "told after 25 h", b.told(), "cloud not synced for 24 h, home not synced for 24 h")
		b.login()
		for m, other := range map[*machine]string{b.home: "cloud", b.cloud: "home"} {
			if s := m.syncStatus(); !strings.HasPrefix(s.Banner, other+" not synced for 25 h, since 2000-01-01T00:0") || s.Fetch.LastSuccess == "" || s.Send.LastSuccess == "" {
				t.Errorf("after 25 h: %+v", s)
			}
		}
		for _, m := range b.fcm.Messages() {
			if !strings.HasPrefix(m.Data["body"], "Nothing has crossed between ") || !strings.Contains(m.Data["body"], " since 2000-01-01 00:0") {
				t.Errorf("told: %q", m.Data["body"])
			}
			if strings.Contains(m.Data["body"], bubbleSecret) || strings.Contains(m.Data["body"], "another-secret-") {
				t.Errorf("told with a secret: %q", m.Data["body"])
			}
		}
		b.revoke(bubbleSecret)
		settle(3 * time.Minute)
		equal(t, "told when it is over", b.told(), "cloud not synced for 24 h, cloud syncs again, home not synced for 24 h, home syncs again")
		equal(t, "banner", b.home.syncStatus().Banner+b.cloud.syncStatus().Banner, "")
		equal(t, "state", b.home.syncStatus().State+" "+b.cloud.syncStatus().State, "ok ok")
		b.alike()
	})
}
