package sync_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// settingsOf is the key and uid that follow from an owner.
func settingsOf(owner string) (sync.Ref, sync.UID) {
	u := sync.KeyedUID("settings", owner)
	return sync.Ref{ID: int64(binary.BigEndian.Uint64(u[:8])>>12) + 1}, u
}

// derivedPair is pair with settings whose key follows from their owner.
func derivedPair(t *testing.T) (local, cloud *node) {
	t.Helper()
	local, cloud = pair(t)
	for _, n := range []*node{local, cloud} {
		n.tables[2].Derived = settingsOf
		n.restart()
	}
	return local, cloud
}

func (n *node) setZone(owner, zone string) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error {
		at, uid := settingsOf(owner)
		h := n.log.AddAtTx(tx, owner, at, uid)
		_, err := tx.Exec(`INSERT INTO settings (`+sync.HeadColumns+`, tz) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(h.Args(), zone)...)
		return err
	})
}

func (n *node) zone(owner string) string {
	n.t.Helper()
	_, uid := settingsOf(owner)
	return read[string](n, `SELECT tz FROM settings WHERE uid = ? AND owner = ?`, uid[:], owner)
}

func (n *node) moveOwners(to map[string]string) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) error { return n.log.MoveOwnersTx(tx, to) })
}

// A node that was alone joins another: its people's rows and facts become those of
// their accounts there, under the stamps they have.
func TestRowsOfAccountsThatBecomeOthersMoveToThem(t *testing.T) {
	local, cloud := derivedPair(t)
	mine, edited := local.add("of ann at home"), local.add("edited")
	local.edit(edited, "content", "edited twice")
	local.remove(local.add("deleted"))
	local.exec(`UPDATE todos SET owner = 'carl' WHERE id = 2`)
	local.fact("fired", "f", nil)
	local.setZone("ann", "Europe/Berlin")
	local.took(wire(t, map[string]any{"content": 5}))
	var told int
	for _, table := range local.tables {
		table.Applied = func(_ *sqlite.Tx, uids []sync.UID) error { told += len(uids); return nil }
	}
	local.restart()
	const stamps = `SELECT group_concat(updated_at || updated_by || seen) FROM todos`
	before := read[string](local, stamps)
	local.moveOwners(map[string]string{"ann": "a-1", "carl": "carl", "dora": "d-1"})
	equal(t, "told of", told, 3)
	equal(t, "stamps", read[string](local, stamps), before)
	equal(t, "owners", read[string](local, `SELECT group_concat(owner) FROM (SELECT owner FROM todos ORDER BY id)`), "a-1,carl,a-1")
	equal(t, "owner of the fact", read[string](local, `SELECT owner FROM facts`), "a-1")
	equal(t, "owner of what is aside", read[string](local, `SELECT owner FROM sync_quarantine`), "a-1")
	equal(t, "zone", local.zone("a-1"), "Europe/Berlin")
	equal(t, "settings", read[int](local, `SELECT count(*) FROM settings`), 1)
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "at the cloud", cloud.content(mine), "of ann at home")
	equal(t, "zone at the cloud", cloud.zone("a-1"), "Europe/Berlin")
	local.moveOwners(map[string]string{"ann": "a-1"}) // a crash later, once more
	equal(t, "what moves", settle(t, local, cloud), 0)
	local.restart()
	equal(t, "the next number", local.add("next").String(), "0-4")
}

// What a reader has passed is served again under the new owner.
func TestMovedRowsAreServedAgain(t *testing.T) {
	local, cloud := derivedPair(t)
	r := local.add("of ann")
	local.setZone("ann", "Europe/Berlin")
	p := cloud.page(local)
	local.moveOwners(map[string]string{"ann": "a-1"})
	next, err := local.log.Page(t.Context(), p.Cursor, 10)
	must(t, err)
	equal(t, "entries", len(next.Entries), 2)
	equal(t, "row", local.content(r), "of ann")
}

// Both nodes have settings of one person: those that were set last stay, on both, and
// the others are in conflicts.
func TestSettingsOnBothNodesMeetAsOneRow(t *testing.T) {
	for name, later := range map[string]int{"local's are newer": 0, "the cloud's are newer": 1} {
		t.Run(name, func(t *testing.T) {
			local, cloud := derivedPair(t)
			nodes := []*node{local, cloud}
			nodes[later].skew = time.Hour
			local.setZone("ann", "Zone/local")
			cloud.setZone("a-1", "Zone/cloud")
			local.moveOwners(map[string]string{"ann": "a-1"})
			quiet(t, local, cloud)
			for _, n := range nodes {
				equal(t, "zone at "+n.name, n.zone("a-1"), "Zone/"+nodes[later].name)
				equal(t, "settings at "+n.name, read[int](n, `SELECT count(*) FROM settings`), 1)
				all := n.conflicts("a-1")
				equal(t, "conflicts at "+n.name, len(all), 1)
				equal(t, "lost at "+n.name, says(all[0].Lost, "tz"), fmt.Sprintf("%q", "Zone/"+nodes[1-later].name))
			}
		})
	}
}

// Two accounts of a node become one: the settings that were set last stay.
func TestSettingsOfTwoAccountsThatBecomeOne(t *testing.T) {
	for name, later := range map[string]string{"the first is newer": "ann", "the second is newer": "anna"} {
		t.Run(name, func(t *testing.T) {
			local, cloud := derivedPair(t)
			for i, owner := range []string{"ann", "anna"} {
				if local.skew = 0; owner == later {
					local.skew = time.Hour
				}
				local.setZone(owner, fmt.Sprint("Zone/", i))
			}
			local.moveOwners(map[string]string{"ann": "a-1", "anna": "a-1"})
			equal(t, "zone", local.zone("a-1"), map[string]string{"ann": "Zone/0", "anna": "Zone/1"}[later])
			equal(t, "settings", read[int](local, `SELECT count(*) FROM settings`), 1)
			quiet(t, local, cloud)
		})
	}
}

// Settings are one row however often both nodes make it.
func TestDerivedRowIsNeitherCountedNorMoved(t *testing.T) {
	local, cloud := derivedPair(t)
	local.setZone("ann", "Zone/local")
	highest, err := local.log.Highest(t.Context())
	must(t, err)
	if _, counted := highest["settings"]; counted {
		t.Error("a hash is told as a count:", highest)
	}
	at, _ := settingsOf("ann")
	local.took(wire(t, map[string]any{"table": "settings", "origin": 0, "id": at.ID, "content": nil})) // another row under its key
	equal(t, "aside", local.aside(), "id_reuse settings "+at.String())
	equal(t, "zone", local.zone("ann"), "Zone/local")
	settle(t, local, cloud)
	same(t, local, cloud)
}
