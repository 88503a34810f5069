package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
)

// putBackUsers has the machine start with the accounts of an earlier moment, beside the
// rows that it has: somebody copied one file of two.
func (m *machine) putBackUsers(from string) {
	m.Helper()
	m.off()
	path := filepath.Join(m.config.Node.Data, sqlite.Users.File())
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + beside); err != nil && !os.IsNotExist(err) {
			m.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(from, sqlite.Users.File()))
	must(m, err)
	must(m, os.WriteFile(path, b, 0o600))
	m.on()
}

// E02. No foreign key leads from one file to the other; that an account is missing is
// found by the application, and mended from the other node.
func TestRowsWhoseAccountIsMissingAreToldAndMended(t *testing.T) {
	for _, name := range []string{"home", "cloud"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				m := map[string]*machine{"home": b.home, "cloud": b.cloud}[name]
				early := m.backup()
				b.cloud.people(demoPassword, "bob@example.org")
				settle(time.Minute)
				m.token = m.enter("bob@example.org", demoPassword)
				m.add("of Bob")
				settle(time.Minute)
				b.link.cut()
				equal(t, "before", m.node.examineOrphans(t.Context()).Level, fine)
				m.putBackUsers(early)
				found := m.node.examineOrphans(t.Context())
				if found.Level != warn || found.Detail != "1 todos belong to accounts that are not here" || !strings.Contains(found.Mend, m.config.Peer.Name) {
					t.Errorf("the doctor says %+v", found)
				}
				must(t, m.node.upkeep(t.Context()))
				b.link.mend()
				healed()
				settle(time.Minute)
				equal(t, "in touch again", m.node.examineOrphans(t.Context()).Level, fine)
				m.token = m.enter("bob@example.org", demoPassword)
				equal(t, "what Bob sees", strings.HasSuffix(m.todos(), "of Bob"), true)
				m.off()
				equal(t, "told in the log", strings.Contains(m.log.String(), "rows belong to accounts that are not here"), true)
			})
		})
	}
}

func TestNoForeignKeyLeadsFromOneFileToTheOther(t *testing.T) { // E02
	inBubble(t, func(t *testing.T, b *bubble) {
		for _, db := range []*sqlite.DB{b.home.node.folder.todos, b.home.node.folder.users} {
			leads, err := sqlite.ReadAll(t.Context(), db, sqlite.Value[string], `
				SELECT t.name || ' to ' || f."table"
				FROM sqlite_schema t, pragma_foreign_key_list(t.name) f
				WHERE t.type = 'table' AND f."table" NOT IN (SELECT name FROM sqlite_schema WHERE type = 'table')`)
			must(t, err)
			if len(leads) > 0 {
				t.Errorf("%s: %v", db.Path(), leads)
			}
		}
	})
}
