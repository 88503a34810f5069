package sync_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// fact tells one, and reports whether it was new.
func (n *node) fact(kind, subject string, body any) (isNew bool) {
	n.t.Helper()
	n.write(func(tx *sqlite.Tx) (err error) {
		isNew, err = n.log.FactTx(tx, kind, subject, "ann", "", body)
		return err
	})
	return isNew
}

// told is what a node knows of a subject, as text.
func (n *node) told(subject string) string {
	n.t.Helper()
	facts, err := sqlite.Read(context.Background(), n.db, func(tx *sqlite.Tx) ([]sync.Fact, error) { return sync.FactsTx(tx, subject) })
	must(n.t, err)
	var all []string
	for _, f := range facts {
		all = append(all, fmt.Sprint(f.Kind, " by ", f.Node, " ", string(f.Body)))
	}
	return strings.Join(all, "; ")
}

func TestFactIsToldOnceAndKnownOnBothNodes(t *testing.T) {
	local, cloud := pair(t)
	equal(t, "new", local.fact("fired", "f1", map[string]string{"text": "<tea> & milk"}), true)
	equal(t, "new when told again", local.fact("fired", "f1", map[string]string{"text": "<tea> & milk"}), false)
	cloud.fact("fired", "f1", "of the cloud") // another node saw it too: another fact
	settle(t, local, cloud)
	same(t, local, cloud)
	for _, n := range []*node{local, cloud} {
		equal(t, "facts at "+n.name, read[int](n, `SELECT count(*) FROM facts`), 2)
		if got := n.told("f1"); !strings.Contains(got, `fired by local {"text":"<tea> & milk"}`) || !strings.Contains(got, `fired by cloud "of the cloud"`) {
			t.Errorf("%s knows: %s", n.name, got)
		}
		equal(t, "of another subject", n.told("f2"), "")
	}
	equal(t, "a quiet round", round(local, cloud), 0)
}

func TestDomainIsToldOfFactsThatAreNewAndComeFromThePeer(t *testing.T) {
	local, cloud := pair(t)
	local.fact("fired", "own", nil)
	cloud.fact("fired", "f1", nil)
	cloud.fact("accepted", "f1", nil)
	p := local.page(cloud)
	must(t, local.apply(cloud, p))
	must(t, local.apply(cloud, p)) // again
	settle(t, local, cloud)
	equal(t, "told", strings.Join(local.facts, ", "), "fired f1, accepted f1")
	equal(t, "told at the cloud", strings.Join(cloud.facts, ", "), "fired own")
}

func TestFactsAreToldInTheOrderOfTheirTime(t *testing.T) {
	local, cloud := pair(t)
	local.skew = -2
	cloud.fact("accepted", "f", nil)
	local.skew -= 1e9 // a second earlier
	local.fact("fired", "f", nil)
	settle(t, local, cloud)
	equal(t, "order", local.told("f"), "fired by local null; accepted by cloud null")
	equal(t, "order at the cloud", cloud.told("f"), local.told("f"))
}

// One event that was told in two ways, such as before and after a restore.
func TestFactsOfOneUIDEndTheSameWhicheverCameFirst(t *testing.T) {
	fact := func(body string) json.RawMessage {
		return json.RawMessage(`{"table":"facts","uid":"00112233445566778899aabbccddeeff","kind":"fired","subject":"f","owner":"ann","node":"cloud","at":` + fmt.Sprint(time.Now().UnixMilli()/1e9*1e9) + `,"body":` + body + `}`)
	}
	local, cloud := pair(t)
	apply := func(n *node, bodies ...string) {
		for _, b := range bodies {
			_, err := n.log.Apply(t.Context(), "peer", "", "", entries(fact(b)))
			must(t, err)
		}
	}
	apply(local, `{"n":1}`, `{"n":2}`, `{"n":1}`, `{ "n" : 2 }`)
	apply(cloud, `{"n":2}`, `{"n":1}`, `{"n":2}`)
	equal(t, "both", local.told("f"), cloud.told("f"))
	for _, n := range []*node{local, cloud} { // one of them replaced what it had
		equal(t, "told of it as news at "+n.name, strings.Join(n.facts, ", "), "fired f")
	}
	settle(t, local, cloud)
	same(t, local, cloud)
	equal(t, "facts", read[int](local, `SELECT count(*) FROM facts`), 1)
	equal(t, "a quiet round", round(local, cloud), 0)
}

// A text of the size that people may write must cross whatever it is made of.
func TestFactOfALongTextCrosses(t *testing.T) {
	local, cloud := pair(t)
	for _, c := range []string{"<", "\n", "\x01", "\u2028", "日", `"`} {
		local.fact("fired", "f"+c, map[string]string{"text": strings.Repeat(c, (64<<10)/len(c))})
	}
	settle(t, local, cloud)
	same(t, local, cloud)
}

func TestKeyedUIDDependsOnItsPartsAndOnNothingElse(t *testing.T) {
	first, second := sync.KeyedUID("a", "bc"), sync.KeyedUID("a", "bc")
	equal(t, "the second time", second, first)
	seen := map[sync.UID]string{}
	for _, parts := range [][]string{{"a", "bc"}, {"ab", "c"}, {"abc"}, {"a", "bc", ""}, {"", "a", "bc"}, {"bc", "a"}, {}} {
		uid := sync.KeyedUID(parts...)
		if other, ok := seen[uid]; ok {
			t.Errorf("%q and %s are one", parts, other)
		}
		seen[uid] = fmt.Sprintf("%q", parts)
	}
}
