package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
	"tandem/internal/sync/link"
	"tandem/internal/users"
)

// SyncState is how replication stands, as this end of the link knows it, whichever it
// is. The times of the last successes are those of any process before this one too.
type SyncState struct {
	link.Status
	Silent int64 // Unix ms since when one direction works no more, where that is a day or longer; 0: both do
}

// asideShown is how many entries in quarantine, and how many parked letters, a status
// shows. The list of entries has all.
const asideShown = 20

type syncBody struct {
	State      string          `json:"state" enum:"ok,catching_up,offline,paused,attention,alone" doc:"alone: this node has no peer, or was parted from it, or has never met it"`
	Code       string          `json:"code,omitempty" doc:"What is the matter; stable"`
	Detail     string          `json:"detail" doc:"How it stands and what to do about it, for a person"`
	Banner     string          `json:"banner,omitempty" doc:"Where a direction has not worked for a day: to be shown until it is gone"`
	Peer       *syncPeer       `json:"peer,omitempty"`
	Fetch      *syncWay        `json:"fetch,omitempty" doc:"What the other node wrote, as it comes here"`
	Send       *syncWay        `json:"send,omitempty" doc:"What was written here, as the other node reads it"`
	Clock      *syncClock      `json:"clock,omitempty" doc:"Absent: the other node has not said what time it is"`
	Reset      *syncReset      `json:"reset,omitempty" doc:"The last time that one of the logs was read from its start. That only adds"`
	Compared   *syncCompared   `json:"compared,omitempty" doc:"The last time that both nodes looked whether they hold the same"`
	Ahead      int64           `json:"stamped_ahead,omitempty" doc:"How many entries say that they were written more than a day from now. They are taken, and an edit wins over them; a clock was wrong. Detail says so too"`
	Renewed    string          `json:"renewed,omitempty" doc:"Why this node's log was begun anew, at its start or since"`
	Quarantine *syncQuarantine `json:"quarantine,omitempty" doc:"What is set aside; for admins only"`
	Letters    *syncLetters    `json:"letters,omitempty" doc:"Letters between the nodes of which nothing came, for 30 days; for admins only"`
}

type syncPeer struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty" doc:"Absent: it has not said so since this node started"`
}

type syncWay struct {
	LastSuccess string `json:"last_success,omitempty"`
	Pending     *int64 `json:"pending,omitempty" doc:"How many entries are still to cross; absent: nobody knows yet"`
}

type syncClock struct {
	Skew   int64  `json:"skew_ms" doc:"The other node's clock less this one's"`
	Level  string `json:"level" enum:"green,amber,red" doc:"amber from 30 seconds, red from 5 minutes"`
	Detail string `json:"detail,omitempty"`
}

type syncReset struct {
	At     string `json:"at"`
	Reason string `json:"reason"`
}

type syncCompared struct {
	At     string `json:"at"`
	Detail string `json:"detail"`
}

type syncQuarantine struct {
	Counts map[string]int   `json:"counts" doc:"Here, by kind; without deletes that are held"`
	Held   int              `json:"held" doc:"Deletes that wait for a decision here"`
	LetGo  int64            `json:"let_go,omitempty" doc:"How many malformed entries that name no row were not kept, since this node started: there are never more than 1,000 of them"`
	Items  []asideBody      `json:"items" doc:"The oldest of all of them; the list at /v1/sync/quarantine goes on"`
	Peer   []asideThereBody `json:"peer" doc:"What is set aside at the other node: the oldest of it"`
	There  int              `json:"peer_known" doc:"How many entries the other node has told of, which is at most 100"`
}

type asideThereBody struct {
	Table  string `json:"table"`
	UID    string `json:"uid"`
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	At     string `json:"at"`
}

type syncLetters struct {
	Parked int          `json:"parked" doc:"How many here"`
	Items  []parkedBody `json:"items" doc:"The newest of them"`
	Peer   []parkedBody `json:"peer" doc:"Those at the other node, as far as it tells"`
}

// parkedBody holds nothing of what the letter says: an admin is not its owner.
type parkedBody struct {
	Key    string `json:"key"`
	Owner  string `json:"owner" doc:"The id of the account whose it is"`
	Kind   string `json:"kind"`
	Code   string `json:"code" doc:"Why; stable"`
	Detail string `json:"detail" doc:"Why, for a person"`
	Mend   string `json:"mend" doc:"What to do about it"`
	At     string `json:"at"`
}

type syncOutput struct{ Body syncBody }

// syncStatus tells everybody how replication stands, and admins what it set aside.
func (a *api) syncStatus(ctx context.Context, _ *struct{}) (*syncOutput, error) {
	b := syncBody{State: "alone", Detail: "This node has no peer: what it holds is nowhere else."}
	admin := caller(ctx).Role == users.Admin
	var s SyncState
	if a.Link != nil {
		s = a.Link()
		b = showSync(s, a.DB.Now(), admin)
	}
	b.Renewed = inWords(a.Replica.Renewed())
	var err error
	if b.Ahead, err = a.Replica.Ahead(ctx); err != nil {
		return nil, err
	}
	b.Detail = strings.TrimSpace(b.Detail + " " + sync.AheadInWords(b.Ahead))
	if !admin {
		return &syncOutput{b}, nil
	}
	if b.Quarantine, err = a.syncQuarantine(ctx, s.Aside); err != nil {
		return nil, err
	}
	b.Letters, err = a.syncLetters(ctx, s)
	return &syncOutput{b}, err
}

// showSync tells of a link. How much is in quarantine, and why, is for admins.
func showSync(s SyncState, now time.Time, admin bool) syncBody {
	b := syncBody{
		State: s.State, Code: s.Code, Detail: s.Detail, Peer: &syncPeer{s.Peer, s.Version},
		Fetch: showWay(s.FetchedAt, s.ToFetch), Send: showWay(s.OfferedAt, s.ToOffer),
	}
	switch {
	case b.State == link.OK:
		b.Detail = "What is written on one node is on the other at once."
	case b.State == link.CatchingUp && b.Detail == "":
		b.Detail = "What was written while the nodes were apart is crossing."
	case admin:
		b.Detail = s.forAdmins()
	case slices.Contains([]string{link.CodeAside, link.CodeHeld, link.CodeLetters}, b.Code):
		b.Detail = "Something that came waits for an admin. All else crosses."
	}
	if s.Silent > 0 {
		since := sqlite.Time(s.Silent)
		b.Banner = fmt.Sprintf("%s not synced for %d h, since %s.", s.Peer, int(now.Sub(since).Hours()), stamp(s.Silent))
	}
	if s.HeardAt > 0 {
		b.Clock = &syncClock{s.Skew.Milliseconds(), s.Clock, s.Clocks}
	}
	if s.Reset != "" {
		b.Reset = &syncReset{stamp(s.ResetAt), inWords(s.Reset)}
	}
	if c := s.Compared; c != nil {
		b.Compared = &syncCompared{stamp(c.At), "Both nodes hold the same."}
		switch {
		case c.Differing > 0 && admin:
			b.Compared.Detail = c.Line
		case c.Differing > 0:
			b.Compared.Detail = "The nodes did not hold the same; what differed was sent again, or waits for an admin."
		}
	}
	return b
}

// words are for the reasons that a log is read from its start, or begins anew.
var words = map[string]string{
	"cursor of another incarnation":                          "One of the two databases was put back, or begun anew, since the other node last read it.",
	"cursor not issued by this log":                          "One of the two databases is older than what the other node had read of it: it was put back.",
	"unreadable cursor":                                      "One of the nodes did not say in a readable way how far it had read the other.",
	"the database was lost":                                  "The database of this node was lost, and begun anew.",
	"the database is from another life":                      "The database of this node was put back.",
	"the database is older than its fence":                   "The database of this node is older than what the node had written: it was put back.",
	"no fence stands beside the database":                    "The file todos.fence was missing beside the database of this node, as where it was copied without it.",
	"the peer has read further than this database remembers": "The other node had read more than there is in the database of this one: it was put back.",
}

// inWords says why to people who know nothing of how nodes talk.
func inWords(why string) string {
	if said, ok := words[why]; ok {
		return said
	}
	return why
}

// forAdmins is all that is known of what is wrong, and what to do about it.
func (s SyncState) forAdmins() string {
	text := s.Detail
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return strings.TrimSpace(text + " " + s.Mend)
}

func showWay(success int64, pending *int64) *syncWay {
	w := &syncWay{Pending: pending}
	if success > 0 {
		w.LastSuccess = stamp(success)
	}
	return w
}

func (a *api) syncQuarantine(ctx context.Context, there []sync.Quarantined) (*syncQuarantine, error) {
	counts := a.Replica.QuarantineCounts()
	items, err := a.Replica.Quarantine(ctx, asideShown)
	if err != nil {
		return nil, err
	}
	q := &syncQuarantine{Counts: counts, Held: counts[sync.HeldDelete], LetGo: a.Replica.LetGo(), Items: []asideBody{}, Peer: []asideThereBody{}}
	delete(counts, sync.HeldDelete)
	for _, i := range items {
		q.Items = append(q.Items, showAside(i))
	}
	q.There = len(there)
	for _, r := range there[:min(len(there), asideShown)] {
		q.Peer = append(q.Peer, asideThereBody{r.Table, r.UID.String(), r.Kind, r.Reason, stamp(r.At)})
	}
	return q, nil
}

func (a *api) syncLetters(ctx context.Context, s SyncState) (*syncLetters, error) {
	n, err := a.Letters.CountParked(ctx)
	if err != nil {
		return nil, err
	}
	here, err := a.Letters.Parked(ctx, asideShown)
	if err != nil {
		return nil, err
	}
	return &syncLetters{n, showParked(here, "this node"), showParked(s.ParkedThere, s.Peer)}, nil
}

func showParked(list []letters.Parked, node string) []parkedBody {
	all := []parkedBody{}
	for _, p := range list {
		all = append(all, parkedBody{p.Key, p.Owner, p.Kind, p.Code, p.Detail, p.Mend(node), stamp(p.At)})
	}
	return all
}
