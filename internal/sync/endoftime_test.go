package sync_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// The last stamp that is taken, and the last that a clock gives.
const (
	lastStamp = 253402300799999 - 366*24*60*60*1000
	lastClock = lastStamp - 366*24*60*60*1000
)

func year10000() time.Time { return time.UnixMilli(lastStamp).AddDate(2, 0, 0) }

func stampOf(n *node, r sync.Ref) int64 {
	n.t.Helper()
	return read[int64](n, `SELECT updated_at FROM todos WHERE origin = ? AND id = ?`, r.Origin, r.ID)
}

// A node whose clock is beyond all calendars writes what crosses, and what either node
// writes next stands at both.
func TestEditOfWhatWasWrittenAtTheEndOfTimeCrosses(t *testing.T) {
	local, cloud := pair(t)
	cloud.now = year10000
	ref := cloud.add("milk")
	settle(t, local, cloud)
	equal(t, "at local", local.content(ref), "milk")
	equal(t, "its stamp", stampOf(local, ref), int64(lastClock))
	for i, by := range []*node{local, cloud, local, local, cloud} {
		text := strings.Repeat("x", i+1)
		by.edit(ref, "content", text)
		settle(t, local, cloud)
		equal(t, "at local", local.content(ref), text)
		same(t, local, cloud)
	}
	equal(t, "its stamp", stampOf(local, ref), int64(lastClock+5))
	for _, n := range []*node{local, cloud} {
		q, err := n.log.Quarantine(t.Context(), 10)
		must(t, err)
		equal(t, "set aside", len(q), 0)
	}
}

// No edit, however many there were, is later than what the other node takes.
func TestStampEndsBeforeTheLastOneThatIsTaken(t *testing.T) {
	local, cloud := pair(t)
	_, err := local.log.Apply(t.Context(), "cloud", "", "c", entries(wire(t, map[string]any{"updated_at": lastStamp})))
	must(t, err)
	ref := sync.Ref{Origin: 1, ID: 7}
	local.edit(ref, "content", "bread")
	equal(t, "the stamp", stampOf(local, ref), int64(lastStamp))
	settle(t, local, cloud)
	equal(t, "at cloud", cloud.content(ref), "bread")
}

// The last version that is taken is of the last moment of 30 December 9998, as the
// sentence says of those that are not.
func TestTheSentenceNamesTheLastDayThatIsTaken(t *testing.T) {
	local, _ := pair(t)
	const last = 253370678399999
	equal(t, "that is", time.UnixMilli(last).UTC().Format(time.DateTime), "9998-12-30 23:59:59")
	for n, kept := range map[int64]int{last: 0, last + 1: 1} {
		_, err := local.log.Apply(t.Context(), "cloud", "", "", entries(wire(t, map[string]any{"updated_at": n})))
		must(t, err)
		equal(t, "set aside", local.log.QuarantineCounts()["malformed"], kept)
		local, _ = pair(t)
	}
}

// A version that is too late is set aside for a reason that people can read, at the
// node that has it as at the other, until it is changed there.
func TestVersionThatIsTooLateIsMendedByAnEdit(t *testing.T) {
	local, cloud := pair(t)
	ref := cloud.add("milk")
	cloud.exec(`UPDATE todos SET updated_at = 253402300799999`) // as versions before this one took it
	_, err := local.log.Apply(t.Context(), "cloud", "", "", entries(late(t, cloud, ref)))
	must(t, err)
	settle(t, local, cloud)
	for _, n := range []*node{local, cloud} {
		q, err := n.log.Quarantine(t.Context(), 10)
		must(t, err)
		if len(q) != 1 || !strings.Contains(q[0].Reason, "after 30 December 9998") || q[0].UpdatedAt > lastClock {
			t.Fatalf("%s: %+v", n.name, q)
		}
	}
	cloud.edit(ref, "content", "bread")
	settle(t, local, cloud)
	equal(t, "at local", local.content(ref), "bread")
	same(t, local, cloud)
	for _, n := range []*node{local, cloud} {
		q, err := n.log.Quarantine(t.Context(), 10)
		must(t, err)
		equal(t, "still aside", len(q), 0)
	}
}

// late is a todo's version as the node that holds it would have sent it.
func late(t *testing.T, n *node, r sync.Ref) json.RawMessage {
	t.Helper()
	return wire(t, map[string]any{
		"id": r.ID, "updated_at": 253402300799999,
		"uid": read[string](n, `SELECT lower(hex(uid)) FROM todos WHERE origin = ? AND id = ?`, r.Origin, r.ID),
	})
}

func TestFactOfAClockBeyondAllCalendarsCrosses(t *testing.T) {
	local, cloud := pair(t)
	cloud.now = year10000
	cloud.write(func(tx *sqlite.Tx) error {
		_, err := cloud.log.FactTx(tx, "fired", "f", "ann", "", "milk")
		return err
	})
	settle(t, local, cloud)
	equal(t, "at local", read[int64](local, `SELECT at FROM facts`), int64(lastClock))
}

// What the peer tells of a version that lost may name times that no calendar shows.
func TestConflictOfATimeThatHasNoSpellingShowsNothing(t *testing.T) {
	local, cloud := pair(t)
	for i, lost := range []map[string]any{{"updated_at": 253402300800000}, {"deleted_at": 253402300800000}, {"due_at": 253402300800000}} {
		body, err := json.Marshal(map[string]json.RawMessage{"table": json.RawMessage(`"todos"`), "lost": wire(t, lost)})
		must(t, err)
		cloud.write(func(tx *sqlite.Tx) error {
			_, err := cloud.log.FactTx(tx, sync.KindConflict, "s", "ann", string(rune('a'+i)), json.RawMessage(body))
			return err
		})
	}
	settle(t, local, cloud)
	all, err := local.log.Conflicts(t.Context(), "ann", nil, 10)
	must(t, err)
	equal(t, "conflicts", len(all), 3)
	for _, c := range all {
		if c.Table != "" || len(c.Lost.Fields) > 0 || c.Lost.UpdatedAt > 0 {
			t.Errorf("%+v", c)
		}
	}
}
