package api

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// shape is how people know the rows of a table that replicates.
type shape struct {
	kind  string
	at    func(ref string) string // where a row is
	blank map[string]any          // its fields, as they are in a row that sets none
	times []string                // those of them that are instants
}

var shapes = map[string]shape{
	"todos": {
		kind:  "todo",
		at:    func(ref string) string { return "/v1/todos/" + ref },
		blank: map[string]any{"content": "", "due_at": nil, "due_on": nil, "tz": nil, "done": false, "notes": ""},
		times: []string{"due_at"},
	},
	"scheduled_messages": {
		kind: "scheduled_message",
		at:   func(ref string) string { return "/v1/scheduled-messages/" + ref },
		blank: map[string]any{"content": "", "action": "notify", "trigger_at": nil, "cron_expr": nil, "rrule": nil, "tz": nil, "enabled": true,
			"schedule_effective_from": nil},
		times: []string{"trigger_at", "schedule_effective_from"},
	},
	"settings": {
		kind:  "settings",
		at:    func(string) string { return "/v1/me" },
		blank: map[string]any{"tz": nil},
	},
}

type conflictBody struct {
	UID     string       `json:"uid" doc:"The conflict's, for restore"`
	At      string       `json:"at" doc:"When the two versions met"`
	Kind    string       `json:"kind" enum:"todo,scheduled_message,settings"`
	Ref     string       `json:"ref"`
	Where   string       `json:"location" doc:"Where the row is"`
	Lost    versionBody  `json:"lost" doc:"The version that gave way without having been seen by who wrote the other one"`
	Stands  *versionBody `json:"stands,omitempty" doc:"The row as it is now; absent: it is not here"`
	Back    bool         `json:"brought_back,omitempty" doc:"The row says again what the version that gave way said"`
	Differs []string     `json:"differs" doc:"In which fields; deleted_at alone where one of them is a deletion"`
}

type versionBody struct {
	UpdatedAt string         `json:"updated_at"`
	UpdatedBy string         `json:"updated_by" doc:"The node on which it was written"`
	DeletedAt *string        `json:"deleted_at" doc:"Set: this version is a deletion"`
	Fields    map[string]any `json:"fields" doc:"As in the row itself"`
}

func (s shape) version(v sync.Version) versionBody {
	b := versionBody{UpdatedAt: stamp(v.UpdatedAt), UpdatedBy: v.UpdatedBy, Fields: map[string]any{}}
	if v.DeletedAt != nil {
		at := stamp(*v.DeletedAt)
		b.DeletedAt = &at
		return b
	}
	maps.Copy(b.Fields, s.blank)
	for name, value := range v.Fields {
		b.Fields[name] = value
		if ms, err := strconv.ParseInt(string(value), 10, 64); err == nil && slices.Contains(s.times, name) {
			b.Fields[name] = stamp(ms)
		}
	}
	return b
}

func showConflict(c sync.Conflict) conflictBody {
	s := shapes[c.Table]
	b := conflictBody{UID: c.UID.String(), At: stamp(c.At), Kind: s.kind, Ref: c.Ref.String(), Differs: append([]string{}, c.Differs...)}
	if s.kind == "" { // told by a version that knows more than this one
		return b
	}
	b.Where, b.Lost = s.at(b.Ref), s.version(c.Lost)
	if c.Stands.UpdatedBy != "" {
		now := s.version(c.Stands)
		b.Stands, b.Back = &now, len(c.Differs) == 0
	}
	return b
}

func conflictPlace(c sync.Conflict) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(c.At)), c.UID[:]...)
}

// listConflicts tells the owner what gave way, newest first, for 90 days.
func (a *api) listConflicts(ctx context.Context, in *ListInput) (*listOutput[conflictBody], error) {
	owner := caller(ctx).UserID
	list := []string{"sync/conflicts", owner}
	b, err := a.place(in.Cursor, list)
	if err != nil {
		return nil, err
	}
	var after *sync.ConflictPlace
	if b != nil {
		after = &sync.ConflictPlace{At: int64(binary.BigEndian.Uint64(b)), UID: sync.UID(b[8:])}
	}
	rows, err := a.Replica.Conflicts(ctx, owner, after, in.limit()+1)
	if err != nil {
		return nil, err
	}
	out := page(a, rows, in.limit(), showConflict, conflictPlace, list)
	out.Body.Items = slices.DeleteFunc(out.Body.Items, func(c conflictBody) bool { return c.Kind == "" })
	return out, nil
}

type conflictInput struct {
	Keyed
	UID string `path:"uid" doc:"The conflict's"`
}

type restoredBody struct {
	Kind  string `json:"kind" enum:"todo,scheduled_message,settings"`
	Ref   string `json:"ref"`
	Where string `json:"location" doc:"Where the row is"`
}

// restoreConflict brings the version that lost back, as an edit like any other: what
// stood until then is not lost in turn, for who edits has seen it.
func (a *api) restoreConflict(ctx context.Context, in *conflictInput) (*onceOutput[restoredBody], error) {
	uid, ok := parseUID(in.UID)
	if !ok {
		return nil, sync.ErrNoConflict
	}
	return once(ctx, a, in.Keyed, in.UID, func(tx *sqlite.Tx) (made[restoredBody], error) {
		table, ref, err := a.Replica.BringBackTx(tx, caller(ctx).UserID, uid)
		if err != nil {
			return made[restoredBody]{}, err
		}
		s := shapes[table]
		b := restoredBody{s.kind, ref.String(), s.at(ref.String())}
		return made[restoredBody]{Location: b.Where, Body: b}, nil
	})
}

// parseUID reads a uid as it is shown: each has one address.
func parseUID(s string) (uid sync.UID, ok bool) {
	err := uid.UnmarshalText([]byte(s))
	return uid, err == nil && uid.String() == s
}
