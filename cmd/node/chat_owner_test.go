package main

import (
	"testing"

	"tandem/internal/sqlite"
)

// chatOf is whose the configured chat of a machine is, by address; empty: nobody's.
func (m *machine) chatOf() (email string) {
	m.Helper()
	known, err := m.node.users.Known(m.Context())
	must(m, err)
	for _, k := range known {
		targets, err := m.node.chats(m.Context(), k.ID)
		must(m, err)
		if len(targets) > 0 {
			email += k.Email
		}
	}
	return email
}

// The cloud has an admin who is older than the one at home: what home says in its chat
// is still meant for the one at home.
func TestPairingHandsNoChatToAnotherPerson(t *testing.T) {
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		equal(t, "before", b.home.chatOf(), demoEmail)
		must(t, b.cloud.node.folder.users.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := tx.Exec(`UPDATE users SET role = 'admin', created_at = 0 WHERE email = ?`, cyn)
			return err
		}))
		must(t, b.pairs(homesPassword))
		healed()
		equal(t, "the chat of home", b.home.chatOf(), demoEmail)
		equal(t, "the chat of the cloud, which nobody had asked for", b.cloud.chatOf(), cyn)
		for _, m := range []*machine{b.home, b.cloud} {
			m.off()
			m.on()
		}
		equal(t, "after a restart", b.home.chatOf()+" "+b.cloud.chatOf(), demoEmail+" "+cyn)
	})
}

// Before there is an account nobody has the chat, and nobody is kept from having it.
func TestAChatIsNobodysBeforeThereIsAnAdmin(t *testing.T) {
	inNewBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.on()
		equal(t, "without an account", b.cloud.chatOf(), "")
		targets, err := b.cloud.node.chats(t.Context(), "somebody")
		must(t, err)
		equal(t, "targets", len(targets), 0)
		b.open()
		equal(t, "with one", b.cloud.chatOf(), demoEmail)
	})
}
