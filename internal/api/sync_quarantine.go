package api

import (
	"context"
	"encoding/binary"
	"strings"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

var (
	errNothingHeld = fault.New(fault.Conflict, "nothing_held", "No deletes are held. Somebody has decided already, or there were none.")
	errDecideHeld  = fault.New(fault.Conflict, "held_delete", "Deletes that are held are decided about together, by POST /v1/sync/held/decision.")
)

// asideBody is an entry that was set aside. It holds nothing of what the entry says:
// an admin is not its owner.
type asideBody struct {
	ID        string  `json:"id" doc:"For retry and discard: the table and the uid" example:"todos:0123456789abcdef0123456789abcdef"`
	Table     string  `json:"table" doc:"Empty: it names none"`
	UID       string  `json:"uid" doc:"The row's; of an entry that names none, made from its bytes"`
	Ref       *string `json:"ref"`
	Owner     string  `json:"owner" doc:"The id of the account whose it is"`
	Kind      string  `json:"kind" enum:"malformed,refused,id_reuse,held_delete,unencodable"`
	Reason    string  `json:"reason" doc:"For people"`
	UpdatedAt *string `json:"updated_at" doc:"The version's; null: it has none"`
	At        string  `json:"at" doc:"When it was set aside"`
}

func showAside(q sync.Quarantined) asideBody {
	b := asideBody{ID: asideID(q.Table, q.UID), Table: q.Table, UID: q.UID.String(), Owner: q.Owner, Kind: q.Kind, Reason: q.Reason, At: stamp(q.At)}
	ref := q.Ref.String()
	if _, ok := sync.ParseRef(ref); ok {
		b.Ref = &ref
	}
	if q.UpdatedAt > 0 {
		at := stamp(q.UpdatedAt)
		b.UpdatedAt = &at
	}
	return b
}

// asideID names an entry in one part of a path. The table may be empty, or any text
// that a peer has made up.
func asideID(table string, uid sync.UID) string { return table + ":" + uid.String() }

func (a *api) asideTx(tx *sqlite.Tx, id string) (q sync.Quarantined, err error) {
	colon := strings.LastIndexByte(id, ':')
	uid, ok := parseUID(id[colon+1:])
	if colon < 0 || !ok {
		return q, sync.ErrNotQuarantined
	}
	if q, err = a.Replica.QuarantinedTx(tx, id[:colon], uid); err == nil && q.Kind == sync.HeldDelete {
		err = errDecideHeld
	}
	return q, err
}

func asidePlace(q sync.Quarantined) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(q.At))
	return append(append(b, q.UID[:]...), q.Table...)
}

func (a *api) listQuarantine(ctx context.Context, in *ListInput) (*listOutput[asideBody], error) {
	list := []string{"sync/quarantine"}
	b, err := a.place(in.Cursor, list)
	if err != nil {
		return nil, err
	}
	var after sync.QuarantinePlace
	if b != nil {
		after = sync.QuarantinePlace{At: int64(binary.BigEndian.Uint64(b)), UID: sync.UID(b[8:24]), Table: string(b[24:])}
	}
	rows, err := a.Replica.QuarantineAfter(ctx, after, in.limit()+1)
	if err != nil {
		return nil, err
	}
	return page(a, rows, in.limit(), showAside, asidePlace, list), nil
}

type asideInput struct {
	Keyed
	ID string `path:"id" doc:"The entry's, as the list names it"`
}

type retriedBody struct {
	Taken bool      `json:"taken" doc:"false: it is still set aside, for the reason in entry"`
	Entry asideBody `json:"entry"`
}

func (a *api) retryQuarantined(ctx context.Context, in *asideInput) (*onceOutput[retriedBody], error) {
	return once(ctx, a, in.Keyed, in.ID, func(tx *sqlite.Tx) (made[retriedBody], error) {
		q, err := a.asideTx(tx, in.ID)
		if err != nil {
			return made[retriedBody]{}, err
		}
		q, taken, err := a.Replica.RetryOneTx(tx, q)
		return made[retriedBody]{Body: retriedBody{taken, showAside(q)}}, err
	})
}

// discardQuarantined forgets an entry: the row stays as it is on this node.
func (a *api) discardQuarantined(ctx context.Context, in *asideInput) (*onceOutput[asideBody], error) {
	return once(ctx, a, in.Keyed, in.ID, func(tx *sqlite.Tx) (made[asideBody], error) {
		q, err := a.asideTx(tx, in.ID)
		if err == nil {
			err = a.Replica.DiscardTx(tx, q)
		}
		return made[asideBody]{Body: showAside(q)}, err
	})
}

type discardInput struct {
	Keyed
	Body struct {
		Kind string `json:"kind" enum:"malformed,refused,id_reuse,unencodable" doc:"Deletes that are held are decided about by POST /v1/sync/held/decision"`
	}
}

type discardedBody struct {
	Kind    string `json:"kind"`
	Entries int64  `json:"entries" doc:"How many were forgotten"`
}

// discardKind forgets all entries that are set aside for one reason, also those that
// the list does not show on its first page.
func (a *api) discardKind(ctx context.Context, in *discardInput) (*onceOutput[discardedBody], error) {
	return once(ctx, a, in.Keyed, in.Body, func(tx *sqlite.Tx) (made[discardedBody], error) {
		n, err := a.Replica.DiscardKindTx(tx, in.Body.Kind)
		return made[discardedBody]{Body: discardedBody{in.Body.Kind, n}}, err
	})
}

type heldInput struct {
	Keyed
	Body struct {
		Verdict string `json:"verdict" enum:"apply,keep" doc:"apply: the deletes were meant; keep: the rows are to stay, on both nodes"`
	}
}

type heldBody struct {
	Verdict string `json:"verdict" enum:"apply,keep"`
	Rows    int    `json:"rows" doc:"How many deletes were held"`
}

// decideHeld is the answer to all deletes that are held now.
func (a *api) decideHeld(ctx context.Context, in *heldInput) (*onceOutput[heldBody], error) {
	return once(ctx, a, in.Keyed, in.Body, func(tx *sqlite.Tx) (made[heldBody], error) {
		n, err := a.Replica.DecideHeldTx(tx, in.Body.Verdict == "apply")
		if err == nil && n == 0 {
			err = errNothingHeld
		}
		return made[heldBody]{Body: heldBody{in.Body.Verdict, n}}, err
	})
}
