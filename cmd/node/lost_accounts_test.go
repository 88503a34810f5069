package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/internal/users"
)

// The cloud is put back to before bob came and before Ada changed her password: home
// has both, and nobody need do anything.
func TestAccountsComeBackToACloudThatIsPutBack(t *testing.T) {
	inPair(t, func(t *testing.T, b *bubble) {
		dir := b.cloud.backup()
		const dan = "dan@example.org"
		b.cloud.people(demoPassword, demoEmail, cyn, dan) // the first two are there
		must(t, b.cloud.node.users.SetPassword(t.Context(), b.ada(), "changed after a theft"))
		healed()
		b.cloud.kill()
		b.cloud.restore(dir)
		b.cloud.on()
		healed()
		healed()
		for _, m := range []*machine{b.home, b.cloud} {
			name := m.config.Node.Name
			equal(t, "dan can log in at "+name, m.enter(dan, demoPassword) != "", true)
			equal(t, "Ada's new password at "+name, m.enter(demoEmail, "changed after a theft") != "", true)
			equal(t, "Ada's old password at "+name, m.enter(demoEmail, demoPassword), "")
		}
		equal(t, "the state", b.home.node.client.Status().State, "ok")
		b.alike()
		b.quiet()
	})
}

// The cloud's folder is lost and a first account made there before home calls, with the
// same address: home goes on with the accounts it has, and pairing makes of the two one,
// with all that either holds, whether it is killed on the way or not.
func TestACloudThatWasBegunAnewGetsEverythingByPairing(t *testing.T) {
	for _, dies := range []string{"", "pair.taken", "pair.answered", "pair.moved"} {
		t.Run(dies, func(t *testing.T) {
			inPair(t, func(t *testing.T, b *bubble) {
				b.home.several("todo", 20)
				healed()
				want := b.home.contents()
				b.home.off()
				b.cloud.kill()
				must(t, os.RemoveAll(b.cloud.config.Node.Data))
				b.cloud.on()
				b.cloud.people(homesPassword, demoEmail)
				b.home.on()
				healed()
				b.home.token = b.home.enter(demoEmail, demoPassword)
				equal(t, "at home, before", b.home.contents(), want)
				equal(t, "what home says", b.home.node.client.Status().Code, users.ErrPutBack.Code)
				equal(t, "whom it names", b.home.node.client.Status().Reason, "another account has the address there: "+demoEmail)
				equal(t, "Cyn, whose address is free, can log in at the cloud", b.cloud.enter(cyn, demoPassword) != "", true)
				status := b.cloud.node.linkState()
				equal(t, "what the cloud says", status.State+" "+status.Code, "attention accounts_put_back")
				for _, said := range []string{status.Mend, b.cloud.findings()} {
					if !strings.Contains(said, demoEmail) || !strings.Contains(said, "pair prints a code here, for tandem pair --config FILE CODE on the machine of home") {
						t.Errorf("the cloud does not say what to do: %s", said)
					}
				}

				if m := map[string]*machine{"pair.taken": b.cloud, "pair.answered": b.home, "pair.moved": b.home}[dies]; m != nil {
					m.crash(dies)
					survived(func() { _ = b.pairs(demoPassword) })
					healed()
					b.cloud.kill()
					b.home.kill()
					b.cloud.on()
					b.home.on()
				}
				must(t, b.pairs(demoPassword))
				healed()
				healed()
				for _, m := range []*machine{b.home, b.cloud} {
					m.token = m.enter(demoEmail, homesPassword)
					list := strings.Fields(m.contents())
					slices.Sort(list)
					equal(t, "at "+m.config.Node.Name, len(list), len(strings.Fields(want)))
				}
				equal(t, "the two", b.home.contents(), b.cloud.contents())
				settle(time.Minute)
				equal(t, "the state", b.home.node.client.Status().State, "ok")
				equal(t, "the state of the cloud", b.cloud.node.linkState().State, "ok")
			})
		})
	}
}

// All that home has are accounts whose addresses were taken anew: once they are one there
// is none left that the cloud keeps out, and it says so.
func TestACloudForgetsTheAccountsItKeptOutOnceTheyAreOne(t *testing.T) {
	inNewBubble(t, func(t *testing.T, b *bubble) {
		for _, m := range []*machine{b.home, b.cloud} {
			m.config.Peer.Token, m.config.Peer.TokenFile = "", filepath.Join(m.config.Node.Data, "..", m.config.Node.Name+".token")
			m.on()
		}
		b.cloud.people(demoPassword, demoEmail)
		must(t, b.pairs("nobody is asked"))
		healed()
		b.cloud.kill()
		must(t, os.RemoveAll(b.cloud.config.Node.Data))
		b.cloud.on()
		b.cloud.people(homesPassword, demoEmail)
		healed()
		equal(t, "before", b.cloud.node.linkState().Code, users.ErrPutBack.Code)
		must(t, b.pairs(demoPassword))
		healed()
		for _, m := range []*machine{b.home, b.cloud} {
			equal(t, "the state of "+m.config.Node.Name, m.node.linkState().State, "ok")
		}
	})
}
