package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
	"tandem/internal/sync/link"
)

// linked gives the node a link that stands as s says.
func (n *node) linked(s SyncState) {
	s.Clock = cmp.Or(s.Clock, link.Green)
	n.services.Link = func() SyncState { return s }
	n.handler = New(n.services)
}

func TestTheStatusOfANodeWithoutAPeer(t *testing.T) {
	n := newNode(t)
	n.services.Link = nil
	n.handler = New(n.services)
	a := n.ben.get("/v1/sync/status").wants(200)
	equal(t, "fields", fmt.Sprint(len(a.json()), " ", a.text("state")), "2 alone")
	a = n.anna.get("/v1/sync/status").wants(200)
	equal(t, "counts", fmt.Sprint(a.at("quarantine")), "map[counts:map[] held:0 items:[] peer:[] peer_known:0]")
	equal(t, "letters", fmt.Sprint(a.at("letters")), "map[items:[] parked:0 peer:[]]")
	n.anna.post("/v1/sync/status", "").refuses(405, "method_not_allowed")
}

// The node that is called tells of the peer's calls.
func TestTheStatusFollowsThePeersCalls(t *testing.T) {
	n := newNode(t)
	a := n.ben.get("/v1/sync/status").wants(200)
	equal(t, "before any call", a.text("state"), "catching_up")
	equal(t, "clock", a.at("clock"), nil)
	n.wait(2 * time.Minute)
	a = n.ben.get("/v1/sync/status").wants(200)
	equal(t, "while nobody calls", a.text("state")+" "+a.text("code"), "offline peer_silent")

	theirs := n.hello()
	theirs.Node, theirs.Origin, theirs.Incarnation, theirs.Version = "local", 0, "other", "v9"
	theirs.Now = n.now().Add(40 * time.Second).UnixMilli()
	greeting, err := json.Marshal(theirs)
	n.must(err)
	n.local().post("/peer/v1/hello", string(greeting)).wants(200)
	n.fromPeer(entry)
	n.local().get("/peer/v1/changes?cursor=x").wants(200)
	a = n.ben.get("/v1/sync/status").wants(200)
	for path, want := range map[string]any{
		"state": "ok", "code": nil, "banner": nil, "peer.name": "local", "peer.version": "v9",
		"fetch.last_success": "2026-02-01T12:02:00Z", "fetch.pending": 0.0, "send.last_success": "2026-02-01T12:02:00Z",
		"clock.skew_ms": 40000.0, "clock.level": "amber", "reset.at": "2026-02-01T12:02:00Z", "quarantine": nil,
	} {
		equal(t, path, a.at(path), want)
	}
	if a.text("detail") == "" || a.text("clock.detail") == "" || a.text("reset.reason") != "One of the nodes did not say in a readable way how far it had read the other." {
		t.Errorf("it says nothing to a person: %s", a.body)
	}
}

// Words for each state, and colours for each skew.
func TestWhatAStatusSays(t *testing.T) {
	n := newNode(t)
	at := n.now().UnixMilli()
	three := int64(3)
	for name, c := range map[string]struct {
		state SyncState
		want  map[string]any
	}{
		"well": {SyncState{Status: link.Status{State: link.OK, HeardAt: at, FetchedAt: at, ToFetch: &three}},
			map[string]any{"state": "ok", "fetch.pending": 3.0, "send.pending": nil, "send.last_success": nil, "clock.level": "green", "compared": nil}},
		"just started": {SyncState{Status: link.Status{State: link.CatchingUp, Detail: "Not yet."}}, map[string]any{"state": "catching_up", "detail": "Not yet.", "clock": nil}},
		"catching up":  {SyncState{Status: link.Status{State: link.CatchingUp, HeardAt: at}}, map[string]any{"state": "catching_up"}},
		"paused": {SyncState{Status: link.Status{State: link.Paused, Code: "peer_version", Detail: "Upgrade it."}},
			map[string]any{"state": "paused", "code": "peer_version", "detail": "Upgrade it."}},
		"behind": {SyncState{Status: link.Status{State: link.OK, HeardAt: at, Skew: -5 * time.Minute, Clock: link.Red, Clocks: "Late."}},
			map[string]any{"clock.level": "red", "clock.skew_ms": -300000.0, "clock.detail": "Late."}},
		"dead for a day": {SyncState{Status: link.Status{Peer: "home", State: link.Offline, Detail: "It is away."}, Silent: at - 25*3600_000},
			map[string]any{"banner": "home not synced for 25 h, since 2026-01-31T11:00:00Z.", "detail": "It is away."}},
		"alike": {SyncState{Status: link.Status{State: link.OK, HeardAt: at, Compared: &link.Comparison{At: at, Line: "x"}}},
			map[string]any{"compared.at": "2026-02-01T12:00:00Z", "compared.detail": "Both nodes hold the same."}},
	} {
		n.linked(c.state)
		for _, who := range []person{n.anna, n.ben} {
			a := who.get("/v1/sync/status").wants(200)
			for path, want := range c.want {
				equal(t, name+": "+path, a.at(path), want)
			}
			if a.text("detail") == "" {
				t.Errorf("%s: no words: %s", name, a.body)
			}
		}
	}
}

// How much is set aside, and why, is an admin's to know, in whatever form it comes.
func TestWhatAStatusTellsAnAdminOnly(t *testing.T) {
	n := newNode(t)
	var rows []string
	for i := range 25 {
		rows = append(rows, later(fmt.Sprintf("%032d", i)))
	}
	n.fromPeer(rows...)
	for i := range 60 {
		n.anna.post("/v1/todos", fmt.Sprintf(`{"content": "todo %d"}`, i)).wants(201)
	}
	n.wait(time.Minute)
	massDelete(n, n.now())
	uid, _ := parseUID(junkUID)
	s := SyncState{Status: link.Status{
		State: link.Attention, Code: "quarantine", Detail: "77 entries could not be taken.", HeardAt: 1,
		Quarantine: map[string]int{"malformed": 25},
		Aside:      []sync.Quarantined{{Table: "todos", UID: uid, Kind: "refused", Reason: "it is 77 characters too long", At: 1000}},
		Compared:   &link.Comparison{At: 1, Differing: 77, Explained: 77, Line: "77 in quarantine"},
	}}
	for _, code := range []string{"quarantine", "deletes_held"} {
		s.Code = code
		n.linked(s)
		a := n.ben.get("/v1/sync/status").wants(200)
		for _, secret := range []string{"77", "malformed", "refused", "later", junkUID, "unknown table"} {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("a user is told of %q: %s", secret, a.body)
			}
		}
		equal(t, "state", a.text("state")+" "+a.text("code"), "attention "+code)
	}
	a := n.anna.get("/v1/sync/status").wants(200)
	for path, want := range map[string]any{
		"detail": "77 entries could not be taken.", "compared.detail": "77 in quarantine",
		"quarantine.held": 60.0, "quarantine.counts.malformed": 25.0, "quarantine.counts.held_delete": nil,
		"quarantine.items.0.kind": "malformed", "quarantine.items.19.kind": "malformed", "quarantine.items.20": nil,
		"quarantine.peer.0.reason": "it is 77 characters too long", "quarantine.peer.0.uid": junkUID, "quarantine.peer.0.at": "1970-01-01T00:00:01Z",
	} {
		equal(t, path, a.at(path), want)
	}
	if strings.Contains(string(a.body), "hunter2") {
		t.Errorf("it tells what an entry says: %s", a.body)
	}
}

// S:9, S:25. Why a log began anew is told.
func TestTheStatusTellsWhyTheLogBeganAnew(t *testing.T) {
	n := newNode(t)
	n.anna.post("/v1/todos", `{"content": "x"}`).wants(201)
	cursor := n.local().get("/peer/v1/changes").wants(200).text("cursor")
	equal(t, "before", n.ben.get("/v1/sync/status").at("renewed"), nil)
	n.sql(`DELETE FROM sync_tokens`) // as a file is that was put back
	n.local().get("/peer/v1/changes?cursor=" + cursor).wants(200)
	a := n.ben.get("/v1/sync/status").wants(200)
	if a.text("renewed") == "" || a.text("reset.reason") == "" {
		t.Errorf("it tells neither: %s", a.body)
	}
}

// Letters of which nothing came are an admin's to see, with what mends them; what they
// say is nobody's.
func TestTheStatusTellsOfLettersThatCameToNothing(t *testing.T) {
	n := newNode(t)
	n.services.Letters = letters.NewBox(n.db, letters.Options{Handle: func(_ *sqlite.Tx, l letters.Letter) error {
		if l.Kind == "decision" {
			return fault.New(fault.Conflict, "run_over", "That run is over.")
		}
		return letters.ErrUnknownKind
	}})
	there := letters.Parked{Key: "k", Owner: n.ben.id, Kind: "turn", Code: letters.ErrUnknownKind.Code, Detail: "Too new.", At: 1000}
	n.linked(SyncState{Status: link.Status{Peer: "home", State: link.Attention, Code: link.CodeLetters, Detail: "77 letters.", HeardAt: 1, ParkedThere: []letters.Parked{there}}})
	var come []letters.Letter
	for i := range 25 {
		come = append(come, letters.Letter{Key: fmt.Sprint("m", i), Owner: n.ben.id, Kind: "message", Body: json.RawMessage(`"hunter2"`)})
	}
	come = append(come, letters.Letter{Key: "d", Owner: n.ben.id, Kind: "decision", Body: json.RawMessage(`"hunter2"`)})
	_, err := n.services.Letters.Receive(t.Context(), "", come)
	n.must(err)

	a := n.anna.get("/v1/sync/status").wants(200)
	for path, want := range map[string]any{
		"detail": "77 letters.", "letters.parked": 26.0, "letters.items.0.key": "d", "letters.items.0.code": "run_over", "letters.items.0.detail": "That run is over.",
		"letters.items.0.mend": "It is not tried again. What it was for can be done anew on either node.", "letters.items.0.owner": n.ben.id,
		"letters.items.1.mend": "Upgrade this node: the letter is tried again when it has been started anew.", "letters.items.1.at": "2026-02-01T12:00:00Z",
		"letters.items.20": nil, "letters.peer.0.kind": "turn", "letters.peer.0.at": "1970-01-01T00:00:01Z",
		"letters.peer.0.mend": "Upgrade home: the letter is tried again when it has been started anew.",
	} {
		equal(t, path, a.at(path), want)
	}
	if strings.Contains(string(a.body), "hunter2") {
		t.Errorf("it tells what a letter says: %s", a.body)
	}
	a = n.ben.get("/v1/sync/status").wants(200)
	equal(t, "a user is told", fmt.Sprint(a.at("letters"), " ", a.text("detail")), "<nil> Something that came waits for an admin. All else crosses.")
}
