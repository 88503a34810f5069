package settings

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

const (
	anna = "01ANNA00000000000000000000"
	ben  = "01BEN000000000000000000000"
)

// node is one node's settings on a real file, with a clock that the test moves.
type node struct {
	testing.TB
	name   string
	clock  time.Time
	db     *sqlite.DB
	log    *sync.Log
	store  *Store
	moved  []string // owners whose zone changed, as the derivation heard
	refuse error    // what it says
}

func newNode(t testing.TB, name string, origin int64) *node {
	n := &node{TB: t, name: name, clock: time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)}
	var err error
	n.db, err = sqlite.Open(context.Background(), sqlite.Options{
		Path: filepath.Join(t.TempDir(), "todos.db"), Schema: sqlite.Todos, Rand: rand.NewChaCha8([32]byte{byte(origin)}),
		Now: func() time.Time { return n.clock },
	})
	n.must(err)
	t.Cleanup(func() { n.db.Close() })
	moved := func(tx *sqlite.Tx, owner string) error {
		zone, err := ZoneTx(tx, owner) // of the same transaction
		n.moved = append(n.moved, owner+" "+zone)
		return errors.Join(err, n.refuse)
	}
	n.log, err = sync.NewLog(context.Background(), n.db, sync.Options{Node: name, Origin: origin, Tables: []*sync.Table{Table(moved)}})
	n.must(err)
	n.store = NewStore(n.db, n.log, moved)
	return n
}

func twoNodes(t testing.TB) (local, cloud *node) {
	return newNode(t, "local", 0), newNode(t, "cloud", 1)
}

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// set keeps a zone, or with an empty one takes the choice back.
func (n *node) set(owner, zone string) (s Settings, err error) {
	err = n.db.Write(context.Background(), func(tx *sqlite.Tx) (err error) {
		if zone == "" {
			s, err = n.store.ClearZoneTx(tx, owner)
		} else {
			s, err = n.store.SetZoneTx(tx, owner, zone)
		}
		return err
	})
	return s, err
}

func (n *node) get(owner string) Settings {
	n.Helper()
	s, err := n.store.Get(context.Background(), owner)
	n.must(err)
	return s
}

// exchange has each node apply all that the other has.
func exchange(a, b *node) {
	a.Helper()
	for _, way := range [][2]*node{{a, b}, {b, a}, {a, b}} {
		page, err := way[0].log.Page(context.Background(), "", sync.PageRows)
		a.must(err)
		cursor, err := way[1].log.Cursor(context.Background(), way[0].name)
		a.must(err)
		_, err = way[1].log.Apply(context.Background(), way[0].name, cursor, page.Cursor, page.Entries)
		a.must(err)
	}
}

func (n *node) count(query string) int {
	n.Helper()
	v, _, err := sqlite.ReadOne(context.Background(), n.db, sqlite.Value[int], query)
	n.must(err)
	return v
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestNobodyHasChosenAtFirst(t *testing.T) {
	n := newNode(t, "local", 0)
	equal(t, "zone", n.get(anna).Zone, "")
	equal(t, "rows", n.count(`SELECT count(*) FROM settings`), 0)
}

// R:A10: only a zone that is known is kept.
func TestAZoneThatIsNoneIsRefused(t *testing.T) {
	n := newNode(t, "local", 0)
	for _, zone := range []string{"Europe/Nowhere", "Local", "UTC+2", " ", "europe/berlin"} {
		if _, err := n.set(anna, zone); err == nil || !strings.HasPrefix(err.Error(), "unknown_zone") {
			t.Errorf("%q: %v", zone, err)
		}
	}
	equal(t, "rows", n.count(`SELECT count(*) FROM settings`), 0)
	equal(t, "moves", len(n.moved), 0)
}

func TestEachPersonHasOneRow(t *testing.T) {
	n := newNode(t, "local", 0)
	for _, zone := range []string{"Europe/Berlin", "Asia/Tokyo", "Asia/Tokyo", "", "", "Europe/Berlin"} {
		_, err := n.set(anna, zone)
		n.must(err)
		equal(t, "zone", n.get(anna).Zone, zone)
		equal(t, "empty zones", n.count(`SELECT count(*) FROM settings WHERE tz = ''`), 0)
	}
	_, err := n.set(ben, "America/New_York")
	n.must(err)
	equal(t, "rows", n.count(`SELECT count(*) FROM settings`), 2)
	equal(t, "anna's", n.get(anna).Zone, "Europe/Berlin")
	// What says nothing new moves nobody.
	equal(t, "moves", strings.Join(n.moved, ", "), strings.Join([]string{anna + " Europe/Berlin", anna + " Asia/Tokyo", anna + " ", anna + " Europe/Berlin", ben + " America/New_York"}, ", "))
}

func TestTheSameZoneAgainIsNoNewVersion(t *testing.T) {
	n := newNode(t, "local", 0)
	first, err := n.set(anna, "Europe/Berlin")
	n.must(err)
	n.clock = n.clock.Add(time.Hour)
	again, err := n.set(anna, "Europe/Berlin")
	n.must(err)
	equal(t, "stamp", again.UpdatedAt, first.UpdatedAt)
	equal(t, "seq", n.get(anna).Seq, first.Seq)
}

// Two nodes that are apart both make a person's row, and it is one row; the later
// choice wins, in whichever order they hear of each other.
func TestTheRowsOfTwoNodesAreOne(t *testing.T) {
	for _, later := range []string{"local", "cloud"} {
		local, cloud := twoNodes(t)
		map[string]*node{"local": local, "cloud": cloud}[later].clock = local.clock.Add(time.Second)
		zones := map[string]string{"local": "Europe/Berlin", "cloud": "Asia/Tokyo"}
		for _, n := range []*node{local, cloud} {
			_, err := n.set(anna, zones[n.name])
			n.must(err)
			_, err = n.set(ben, "UTC")
			n.must(err)
		}
		a, b := local.get(anna), cloud.get(anna)
		equal(t, "key", a.Ref, b.Ref)
		equal(t, "uid", a.UID, b.UID)
		if a.Ref == local.get(ben).Ref {
			t.Error("two people have one key")
		}
		exchange(local, cloud)
		for _, n := range []*node{local, cloud} {
			equal(t, n.name+": rows", n.count(`SELECT count(*) FROM settings`), 2)
			equal(t, n.name+": zone", n.get(anna).Zone, zones[later])
			equal(t, n.name+": by", n.get(anna).UpdatedBy, later)
		}
		// Whose choice lost has been moved, in the transaction that applied the page.
		loser := map[string]*node{"local": cloud, "cloud": local}[later]
		if !strings.Contains(strings.Join(loser.moved, ", "), anna+" "+zones[later]) {
			t.Errorf("%s did not move anna: %v", loser.name, loser.moved)
		}
	}
}

// F4 of the kind: an edit made after seeing a version beats it, whatever the clocks say.
func TestWhoEditsWhatHeSawWins(t *testing.T) {
	local, cloud := twoNodes(t)
	cloud.clock = local.clock.Add(time.Hour)
	_, err := cloud.set(anna, "Asia/Tokyo")
	cloud.must(err)
	exchange(local, cloud)
	_, err = local.set(anna, "Europe/Berlin")
	local.must(err)
	exchange(local, cloud)
	equal(t, "zone", cloud.get(anna).Zone, "Europe/Berlin")
}

// R:A11: what follows from the zone changes with it or not at all.
func TestAMoveThatFailsLeavesTheZone(t *testing.T) {
	n := newNode(t, "local", 0)
	_, err := n.set(anna, "Europe/Berlin")
	n.must(err)
	n.refuse = errors.New("killed")
	for _, zone := range []string{"Asia/Tokyo", ""} {
		_, err = n.set(anna, zone)
		equal(t, "error", fmt.Sprint(err), "killed")
		equal(t, "zone", n.get(anna).Zone, "Europe/Berlin")
	}
}

// A row that the peer deleted has the one key that the person's next choice needs.
func TestAChoiceAfterTheRowWasDeleted(t *testing.T) {
	local, cloud := twoNodes(t)
	_, err := local.set(anna, "Europe/Berlin")
	local.must(err)
	exchange(local, cloud)
	cloud.must(cloud.db.Write(t.Context(), func(tx *sqlite.Tx) error {
		s, err := GetTx(tx, anna)
		cloud.log.EditTx(tx, &s.Head)
		_, e := tx.Exec(`UPDATE settings SET deleted_at = updated_at + 1, updated_at = ?, updated_by = ?, seq = ?, seen = ?`, s.UpdatedAt, s.UpdatedBy, s.Seq, string(s.Seen))
		return errors.Join(err, e)
	}))
	exchange(local, cloud)
	equal(t, "zone", local.get(anna).Zone, "")
	for _, n := range []*node{local, cloud} {
		s, err := n.set(anna, "Asia/Tokyo")
		n.must(err)
		equal(t, "zone", n.get(anna).Zone, "Asia/Tokyo")
		equal(t, "returned", s.Zone, "Asia/Tokyo")
	}
	exchange(local, cloud)
	equal(t, "rows", local.count(`SELECT count(*) FROM settings WHERE deleted_at IS NULL`), 1)
	equal(t, "zone", local.get(anna).Zone, "Asia/Tokyo")
}
