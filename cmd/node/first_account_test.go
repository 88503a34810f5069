package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// firstLines are what the node prints when it starts.
func (m *machine) firstLines() string {
	m.Helper()
	var out strings.Builder
	must(m, m.node.hint(context.Background(), &options{terminal: terminal{out: &out}}))
	return out.String()
}

// The cloud has rows that home brought back, and no account: whoever makes a first one
// there would see none of them.
func TestACloudThatHomeHasRefilledMakesNoFirstAccount(t *testing.T) {
	inPair(t, func(t *testing.T, b *bubble) {
		b.home.add("milk")
		healed()
		b.link.cut()
		b.cloud.node.configFile = "cloud.yaml"
		must(t, b.cloud.node.folder.users.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := tx.Exec(`DELETE FROM users`)
			return err
		}))
		const pair = "tandem pair --config cloud.yaml prints a code here, for tandem pair --config FILE CODE on the machine of home"
		_, err := b.cloud.node.initFor(t.Context(), initRequest{"eve@example.org", demoPassword})
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != "accounts_at_peer" || !strings.Contains(f.Detail, pair) || !strings.Contains(f.Detail, "take the section peer out in cloud.yaml") {
			t.Errorf("init: %v", err)
		}
		for what, said := range map[string]string{"the start": b.cloud.firstLines(), "the doctor": b.cloud.node.examineAccounts(t.Context()).Mend} {
			if !strings.Contains(said, pair) || strings.Contains(said, "tandem init") {
				t.Errorf("%s says %q", what, said)
			}
		}
		b.cloud.off()
		b.cloud.config.Peer = config.Peer{}
		b.cloud.on()
		_, err = b.cloud.node.initFor(t.Context(), initRequest{"eve@example.org", demoPassword})
		must(t, err)
	})
}

// A new node in the place of one that died has no accounts: its first lines and its doctor
// name what brings them back, and not only what makes the very first one.
func TestANodeThatReplacesADeadOneNamesPairing(t *testing.T) {
	inNewBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.on()
		b.cloud.node.configFile = "cloud.yaml"
		for what, said := range map[string]string{"the start": b.cloud.firstLines(), "the doctor": b.cloud.node.examineAccounts(t.Context()).Mend} {
			if !strings.Contains(said, "tandem init --config cloud.yaml --email YOU@EXAMPLE.ORG; but where home has accounts already, they come from there: tandem pair --config cloud.yaml prints a code here") {
				t.Errorf("%s of a new cloud says %q", what, said)
			}
		}

		b.home.config.Peer.Token = "another secret than that of the cloud"
		b.home.on()
		b.home.node.configFile = "home.yaml"
		const pair = "tandem pair --config FILE on the machine of cloud (FILE: its configuration); it prints a code for tandem pair --config home.yaml CODE here"
		if said := b.home.firstLines(); !strings.Contains(said, "come from there once the two are a pair. If they are none yet: "+pair) {
			t.Errorf("the start of a new home says %q", said)
		}
		healed()
		if f := b.home.node.examineAccounts(t.Context()); !strings.Contains(f.Mend, pair) || strings.Contains(f.Mend, "init") {
			t.Errorf("the doctor of a new home says %q → %q", f.Detail, f.Mend)
		}
		b.home.off()
		b.home.config.Peer.Token = b.cloud.config.Peer.Token
		b.home.on()
		healed()
		if f := b.home.node.examineAccounts(t.Context()); f.Mend != "If nobody has one there: tandem init --email YOU@EXAMPLE.ORG --config FILE on the machine of cloud (FILE: its configuration)." {
			t.Errorf("the doctor of a home in a new pair says %q", f.Mend)
		}
	})
}
