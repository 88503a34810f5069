package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync/link"
)

// findings is what the doctor of a node says of its peer, one line each.
func (m *machine) findings() string {
	var lines []string
	for _, f := range m.node.examinePeer() {
		lines = append(lines, fmt.Sprint(f.Level, " ", f.Check, ": ", f.Detail, " → ", f.Mend))
	}
	return strings.Join(lines, "\n")
}

// The doctor and the status say the same at the node that calls and at the one that
// is called.
func TestTheDoctorAndTheStatusAgreeAtBothNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		both := func(when string, want map[string]string) {
			t.Helper()
			for _, m := range []*machine{b.home, b.cloud} {
				name := m.config.Node.Name
				status, said := m.node.contact.Status(), m.findings()
				if !strings.Contains(said, want[name]) {
					t.Errorf("%s, the doctor of %s says\n%s\nand not %q", when, name, said, want[name])
				}
				if status.Code != "" && !strings.Contains(said, status.Detail) && !strings.Contains(strings.ReplaceAll(said, " → ", " "), status.Detail) {
					t.Errorf("%s, the status of %s says %q, and the doctor\n%s", when, name, status.Detail, said)
				}
			}
		}
		settle(time.Minute)
		both("well", map[string]string{"home": "ok peer: cloud answers", "cloud": "ok peer: home answers"})

		cursor, err := b.cloud.node.log.Cursor(t.Context(), "home")
		must(t, err)
		later := json.RawMessage(`{"table": "later", "origin": 0, "id": 1, "uid": "11111111111111111111111111111111", "updated_at": 7, "updated_by": "home"}`)
		_, err = b.cloud.node.log.Apply(t.Context(), "home", cursor, cursor, []json.RawMessage{later})
		must(t, err)
		settle(time.Minute)
		for _, m := range []*machine{b.home, b.cloud} {
			equal(t, m.config.Node.Name+": state", m.node.contact.Status().Code, link.CodeAside)
		}
		both("with one entry aside", map[string]string{"home": "warn sync: 1 entries could not be taken", "cloud": "warn sync: 1 entries could not be taken"})
		both("and besides", map[string]string{"home": "ok peer: cloud answers", "cloud": "ok peer: home answers"})

		for i, kind := range []string{"letter_of_unknown_kind", "run_over"} {
			must(t, b.cloud.node.folder.todos.Write(t.Context(), func(tx *sqlite.Tx) error {
				_, err := tx.Exec(`
					INSERT INTO letters_parked (key, owner, kind, body, code, detail, parked_at)
					VALUES (?, 'ann', 'turn', x'', ?, 'It is over.', 1)`, i, kind)
				return err
			}))
		}
		settle(time.Minute)
		both("with two letters parked at the cloud", map[string]string{
			"home":  "warn sync: 1 letters ask for what cloud cannot do yet. → Upgrade cloud: the letter is tried again",
			"cloud": "warn sync: 1 letters ask for what this node cannot do yet. → Upgrade this node: the letter is tried again",
		})
		both("of the other one", map[string]string{
			"home":  "warn letters: nothing came of 1 letters at cloud in the last 30 days; the newest: It is over. → It is not tried again.",
			"cloud": "warn letters: nothing came of 1 letters at this node in the last 30 days; the newest: It is over. → It is not tried again.",
		})

		b.link.cut()
		settle(3 * time.Minute)
		both("cut", map[string]string{
			"home":  "warn peer: offline: The other node cannot be reached. (peer_away: ",
			"cloud": "warn peer: offline: The other node has not called for more than a minute.",
		})
	})
}
