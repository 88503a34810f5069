package api

import (
	"strings"
	"testing"

	"tandem/internal/sync/link"
)

// A comparison on request. Who asks twice under one key has asked once.
func TestAnAdminAsksForAComparison(t *testing.T) {
	n := newNode(t)
	asked := 0
	n.services.Compare = func() { asked++ }
	n.linked(SyncState{Status: link.Status{State: link.OK, HeardAt: 1}})
	for range 2 {
		a := n.anna.with("Idempotency-Key", "k").post("/v1/sync/compare", "").wants(202)
		if !strings.Contains(a.text("detail"), "as soon as each has read") {
			t.Errorf("it says %s", a.body)
		}
	}
	equal(t, "asked", asked, 1)
	n.linked(SyncState{Status: link.Status{State: link.Offline}})
	a := n.anna.post("/v1/sync/compare", "").wants(202)
	equal(t, "asked while the peer is away", asked, 2)
	if !strings.Contains(a.text("detail"), "once it is back") {
		t.Errorf("it says %s", a.body)
	}
	n.ben.post("/v1/sync/compare", "").refuses(403, "not_admin")
	equal(t, "asked by a user", asked, 2)

	n.services.Compare, n.services.Link = nil, nil
	n.handler = New(n.services)
	n.anna.post("/v1/sync/compare", "").refuses(409, "no_peer")
}

// Killed before it has said so, it has asked or it has not; to ask again does no harm.
func TestAComparisonIsAskedForAgainAfterACrash(t *testing.T) {
	n := newNode(t)
	asked := 0
	n.services.Compare = func() { asked++ }
	n.handler = New(n.services)
	n.crash, n.broken = "api.committed", true
	n.anna.post("/v1/sync/compare", "").wants(500)
	n.crash = ""
	n.anna.post("/v1/sync/compare", "").wants(202)
	equal(t, "asked", asked, 2)
}
