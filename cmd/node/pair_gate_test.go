package main

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"tandem/internal/pairing"
)

// idles counts how often it was asked to give up its idle connections.
type idles struct {
	http.RoundTripper
	asked int
}

func (i *idles) CloseIdleConnections() { i.asked++ }

func TestIdleConnectionsAreGivenUpThroughTheGateToo(t *testing.T) {
	over := &idles{}
	client := http.Client{Transport: joined{over: over}}
	client.CloseIdleConnections()
	equal(t, "asked", over.asked, 1)
}

// hangs is a way on which no answer comes.
type hangs struct{}

func (hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A node that was parted calls nobody, whatever was under way and whoever began it.
func TestACallThatIsUnderWayEndsAtTheParting(t *testing.T) {
	inPair(t, func(t *testing.T, b *bubble) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cloud.test/peer/v1/push-tokens", nil)
		must(t, err)
		err = nil
		go func() { _, err = (joined{b.home.node, hangs{}}).RoundTrip(r) }()
		settle(time.Second)
		must(t, err)
		_, failed := b.home.node.unpair(t.Context(), struct{}{})
		must(t, failed)
		settle(time.Second)
		if !errors.Is(err, pairing.ErrParted) {
			t.Errorf("a second later: %v", err)
		}
	})
}

// To look at a pairing changes nothing at the cloud, not even what it knows of home.
func TestALookAtAPairingIsNoGreeting(t *testing.T) {
	inPair(t, func(t *testing.T, b *bubble) {
		settle(5 * time.Second)
		before := b.cloud.node.server.Status()
		equal(t, "a pair already", b.looks().Again, true)
		after := b.cloud.node.server.Status()
		equal(t, "heard of home", after.HeardAt, before.HeardAt)
		equal(t, "known of what home has to read", after.ToFetch != nil, before.ToFetch != nil)
	})
}
