package link

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"tandem/internal/sync"
)

// comparing is one comparison under way.
type comparing struct {
	*Client
	cutoff int64
	tried  map[difference]bool
	result Comparison
}

func (r *comparing) table(ctx context.Context, table string) error {
	mine, err := r.log.Buckets(ctx, table, r.cutoff)
	if err != nil {
		return err
	}
	var theirs bucketsAnswer
	if err := r.peer.Call(ctx, http.MethodGet, "digest?"+r.query(table, nil).Encode(), nil, &theirs); err != nil {
		return err
	}
	all := maps.Clone(mine)
	maps.Copy(all, theirs.Buckets)
	for _, b := range slices.Sorted(maps.Keys(all)) {
		if mine[b] != theirs.Buckets[b] {
			if err := r.bucket(ctx, difference{r.cutoff, table, b, mine[b], theirs.Buckets[b]}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *comparing) query(table string, more url.Values) url.Values {
	q := url.Values{"table": {table}, "cutoff": {strconv.FormatInt(r.cutoff, 10)}}
	maps.Copy(q, more)
	return q
}

// bucket sends what differs in one bucket both ways. The rule decides which version
// stands, as it does for any page; no cursor moves.
func (r *comparing) bucket(ctx context.Context, d difference) error {
	mine, err := r.ownBucket(ctx, d)
	if err != nil {
		return err
	}
	theirs, err := r.fetchBucket(ctx, d)
	if err != nil {
		return err
	}
	mine, theirs = without(mine, theirs), without(theirs, mine)
	names := map[sync.UID]bool{}
	for _, e := range slices.Concat(mine, theirs) {
		names[name(e)] = true
	}
	explained, err := r.explained(ctx, d.table, slices.Collect(maps.Keys(names)))
	if err != nil {
		return err
	}
	r.result.Differing += len(names)
	r.result.Explained += len(explained)
	rest := len(names) - len(explained)
	if rest == 0 {
		return nil
	}
	if r.tried == nil {
		r.tried = map[difference]bool{}
	}
	r.tried[d] = true
	if r.compare.tried[d] {
		r.result.Lasting += rest
		return nil
	}
	r.result.Repaired += rest
	return r.repair(ctx, except(mine, explained), except(theirs, explained))
}

func (r *comparing) repair(ctx context.Context, mine, theirs []json.RawMessage) error {
	cursor, err := r.log.Cursor(ctx, r.name)
	if err != nil {
		return err
	}
	if _, err := r.log.Apply(ctx, r.name, cursor, cursor, theirs); err != nil {
		return err
	}
	for _, some := range pages(mine) {
		var ack Ack
		if err := r.post(ctx, Offer{}, some, &ack); err != nil {
			return err
		}
	}
	return nil
}

// ownBucket returns this node's entries of a bucket.
func (r *comparing) ownBucket(ctx context.Context, d difference) (all []json.RawMessage, err error) {
	for after, more := "", true; more; more = after != "" {
		var some []json.RawMessage
		if some, after, err = r.log.Bucket(ctx, d.table, d.bucket, r.cutoff, after); err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// fetchBucket returns the peer's entries of a bucket, which may be more than one
// answer holds.
func (r *comparing) fetchBucket(ctx context.Context, d difference) (all []json.RawMessage, err error) {
	for after, more := "", true; more; {
		q := r.query(d.table, url.Values{"bucket": {strconv.FormatInt(d.bucket, 10)}, "after": {after}})
		b, err := r.peer.exchange(ctx, r.peer.http, http.MethodGet, "rows?"+q.Encode(), nil)
		if err != nil {
			return nil, err
		}
		var tail rowsTail
		some, err := splitRows(b, &tail)
		if err != nil {
			return nil, ErrPeerStranger.Because(err)
		}
		all, after, more = append(all, some...), tail.Next, tail.Next != "" && len(some) > 0
	}
	return all, nil
}

// explained returns which of some entries of a table are in quarantine on one of the
// nodes.
func (r *comparing) explained(ctx context.Context, table string, uids []sync.UID) (map[sync.UID]bool, error) {
	here, err := r.log.AsideAmong(ctx, table, uids)
	if err != nil {
		return nil, err
	}
	var there asideAmong
	if err := r.peer.Call(ctx, http.MethodPost, "aside", asideAmong{table, uids}, &there); err != nil {
		return nil, err
	}
	all := map[sync.UID]bool{}
	for _, uid := range slices.Concat(here, there.UIDs) {
		all[uid] = true
	}
	return all, nil
}

// name is an entry's uid.
func name(entry json.RawMessage) sync.UID {
	var e struct{ UID sync.UID }
	_ = json.Unmarshal(entry, &e) // one that cannot be read has no name
	return e.UID
}

// without returns the entries of all that are not in other.
func without(all, other []json.RawMessage) (rest []json.RawMessage) {
	there := map[string]bool{}
	for _, e := range other {
		there[summed(e)] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(e json.RawMessage) bool { return there[summed(e)] })
}

// summed is what the digest sees of an entry: not what a version contains, and of a
// tombstone no more than that it is one.
func summed(entry json.RawMessage) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(entry, &all) != nil {
		return string(entry)
	}
	delete(all, "seen")
	if _, dead := all["deleted_at"]; dead {
		maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool {
			return !slices.Contains([]string{"table", "origin", "id", "uid", "updated_at", "updated_by", "deleted_at", "alias_of"}, name)
		})
	}
	b, _ := json.Marshal(all) // sorted by name; raw JSON marshals
	return string(b)
}

func except(all []json.RawMessage, names map[sync.UID]bool) []json.RawMessage {
	return slices.DeleteFunc(all, func(e json.RawMessage) bool { return names[name(e)] })
}

// pages cuts entries into lists that fit into a call.
func pages(entries []json.RawMessage) (all [][]json.RawMessage) {
	for len(entries) > 0 {
		n := fitting(entries)
		all, entries = append(all, entries[:n]), entries[n:]
	}
	return all
}

// fitting is how many of the entries a page holds; one at least.
func fitting(entries []json.RawMessage) int {
	size := 0
	for i, e := range entries {
		if size += len(e); i > 0 && size > sync.PageBytes {
			return i
		}
	}
	return len(entries)
}
