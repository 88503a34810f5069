package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tandem/internal/config"
	"tandem/internal/pairing"
)

// looks returns what pairing would do, as home is told with a new code.
func (b *bubble) looks() pairing.Plan {
	b.Helper()
	code, err := b.cloud.node.openPairing(b.Context(), struct{}{})
	must(b, err)
	plan, err := b.home.node.pairLook(b.Context(), pairing.Request{Code: code.Code})
	must(b, err)
	return plan
}

// Of an account that both have already the later password stays, wherever it was set, and
// whoever pairs is told which it is.
func TestPairSaysWhichPasswordStays(t *testing.T) {
	for _, at := range []string{"home", "cloud", "neither"} {
		t.Run(at, func(t *testing.T) {
			inPair(t, func(t *testing.T, b *bubble) {
				_, err := b.home.node.unpair(t.Context(), struct{}{})
				must(t, err)
				b.home.off()
				peer := b.home.config.Peer
				b.home.config.Peer = config.Peer{}
				b.home.on()
				want := pairing.Plan{Peer: "cloud", Met: b.cloud.node.met()}
				good, bad := demoPassword, newPassword
				set := func(m *machine) {
					_, err = m.node.userFor(t.Context(), userRequest{"password", demoEmail, newPassword})
					must(t, err)
					good, bad = newPassword, demoPassword
				}
				switch at {
				case "home":
					set(b.home)
					want.Ours = []string{demoEmail}
				case "cloud":
					set(b.cloud)
					want.Theirs = []string{demoEmail}
				}
				b.home.off()
				b.home.config.Peer = peer
				b.home.on()
				plan := b.looks()
				equal(t, "the plan", fmt.Sprintf("%+v", plan), fmt.Sprintf("%+v", want))
				var text bytes.Buffer
				(&options{terminal: terminal{out: &text}}).foretell(plan)
				for line, said := range map[string]bool{
					"The password of this node was set later and stays; the one at cloud is good no more.": at == "home",
					"The password at cloud was set later and stays; the one of this node is good no more.": at == "cloud",
				} {
					equal(t, line, strings.Contains(text.String(), demoEmail+" has an account at both nodes already. "+line), said)
				}
				must(t, b.pairs("nobody is asked"))
				healed()
				b.passwordsAre(good, bad)
			})
		})
	}
}

// Both nodes say that a home which was paired is put out, before it is; the one that is
// paired again is not, and at a first pairing there is nobody.
func TestPairSaysThatAnotherHomeIsPutOut(t *testing.T) {
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		equal(t, "when no home was paired yet", b.looks().Met, 0)
		must(t, b.pairs(homesPassword))
		healed()
		equal(t, "home itself", b.looks().Met, 0)
		met := time.Now().UnixMilli()
		b.home.off()
		settle(time.Hour)
		must(t, os.RemoveAll(b.home.config.Node.Data))
		must(t, os.Remove(b.home.config.Peer.TokenFile))
		b.home.on()
		settle(time.Minute)
		plan := b.looks()
		if met-plan.Met < 0 || met-plan.Met > time.Minute.Milliseconds() {
			t.Errorf("in touch until %d, not %d", plan.Met, met)
		}
		var text bytes.Buffer
		(&options{terminal: terminal{out: &text}}).foretell(plan)
		if said := "cloud was a pair with a home before, and in touch with it until 2000-01-01 "; !strings.HasPrefix(text.String(), said) {
			t.Errorf("home says %q", text.String())
		}
		code, err := b.cloud.node.openPairing(t.Context(), struct{}{})
		must(t, err)
		equal(t, "what the cloud says of it", code.Met, plan.Met)
		b.cloud.off() // and after a restart
		b.cloud.on()
		settle(time.Second)
		equal(t, "after a restart", b.looks().Met > 0, true)
	})
}
