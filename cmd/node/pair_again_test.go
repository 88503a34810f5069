package main

import (
	"slices"
	"testing"
	"time"

	"tandem/internal/config"
)

// Home was parted from the cloud and went on alone: one account was banned there and got a
// new password at the cloud, another the other way round. Paired again both nodes have
// both bans and both passwords.
func TestPairingAgainLiftsNoBanAndUndoesNoPassword(t *testing.T) {
	inPair(t, func(t *testing.T, b *bubble) {
		const dan, atHome, atCloud = "dan@example.org", "set at home alone", "set at the cloud"
		b.cloud.people(demoPassword, demoEmail, cyn, dan) // the first two are there
		settle(time.Minute)
		_, err := b.home.node.unpair(t.Context(), struct{}{})
		must(t, err)
		peer := b.home.config.Peer
		b.home.off()
		b.home.config.Peer = config.Peer{}
		b.home.on()
		do := func(m *machine, verb, who, typed string) {
			settle(time.Minute)
			_, err := m.node.userFor(t.Context(), userRequest{verb, who, typed})
			must(t, err)
		}
		do(b.cloud, "disable", cyn, "")
		do(b.home, "password", cyn, atHome)
		do(b.home, "disable", dan, "")
		do(b.cloud, "password", dan, atCloud)
		b.home.off()
		b.home.config.Peer = peer
		b.home.on()
		settle(time.Minute)
		must(t, b.pairs("nobody is asked"))
		healed()
		equal(t, "banned at the cloud", len(b.cloud.node.users.Disabled()), 2)
		equal(t, "banned at home too", slices.Equal(b.home.node.users.Disabled(), b.cloud.node.users.Disabled()), true)
		do(b.cloud, "enable", cyn, "")
		do(b.cloud, "enable", dan, "")
		settle(time.Minute)
		for who, password := range map[string]string{cyn: atHome, dan: atCloud} {
			equal(t, who+" logs in at home", b.home.enter(who, password) != "", true)
		}
	})
}
