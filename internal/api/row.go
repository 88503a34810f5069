package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/when"
)

var (
	errStale  = fault.New(fault.Stale, "stale", "It has changed since you read it. Read it again, then send your change with the new ETag.")
	errBadKey = fault.New(fault.Invalid, "idempotency_key_invalid", "An Idempotency-Key is 1 to 255 visible ASCII characters, without a space.")
)

// derive returns a key for one purpose, so that what is sealed for one is no good
// for another.
func derive(secret []byte, purpose string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}

// RowFields are what each row of the API begins with.
type RowFields struct {
	Ref       string `json:"ref" doc:"The row's key: the node that made it, and its number there" example:"0-42"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
	UpdatedBy string `json:"updated_by" doc:"The node that wrote this version"`
}

func fieldsOf(h sync.Head) RowFields {
	return RowFields{h.Ref.String(), stamp(h.CreatedAt), stamp(h.UpdatedAt), h.UpdatedBy}
}

func stamp(ms int64) string { return when.Format(sqlite.Time(ms)) }

// etag names a version of a row by its stamp.
func etag(h sync.Head) string {
	return `"` + strconv.FormatInt(h.UpdatedAt, 36) + "-" + h.UpdatedBy + `"`
}

// derivedTag is the tag of an answer that shows more than the row itself: the row's,
// and after a point, which no node's name has, a hash of the rest.
func derivedTag(row, rest string) string { return row[:len(row)-1] + "." + rest + `"` }

// tags are those of an If-Match or If-None-Match header. A weak tag is as good as a
// strong one, also in If-Match, where RFC 9110 would have it fail: proxies that
// compress weaken our tags on the way, and each names one version all the same.
func tags(header string) (list []string) {
	for t := range strings.SplitSeq(header, ",") {
		list = append(list, strings.TrimPrefix(strings.TrimSpace(t), "W/"))
	}
	return list
}

// lists reports whether an If-None-Match header covers an answer.
func lists(header, tag string) bool {
	return slices.ContainsFunc(tags(header), func(t string) bool { return t == "*" || t == tag })
}

// fresh returns errStale unless an If-Match header covers the version that is there.
// It goes by the row alone: an edit is not late because a reminder has rung.
func fresh(ifMatch string, h sync.Head) error {
	covers := func(t string) bool {
		if row, _, derived := strings.Cut(t, "."); derived {
			t = row + `"`
		}
		return t == "*" || t == etag(h)
	}
	if ifMatch != "" && !slices.ContainsFunc(tags(ifMatch), covers) {
		return errStale
	}
	return nil
}

// RefInput addresses one row.
type RefInput struct {
	Ref string `path:"ref" doc:"The row's key, such as 0-42"`
}

// ref returns the address, or missing where there can be no row of that name.
func (in RefInput) ref(missing error) (sync.Ref, error) {
	r, ok := sync.ParseRef(in.Ref)
	if !ok {
		return r, missing
	}
	return r, nil
}

type GetInput struct {
	RefInput
	IfNoneMatch string `header:"If-None-Match" doc:"An ETag: 304 where nothing has changed"`
}

type EditInput struct {
	RefInput
	IfMatch string `header:"If-Match" doc:"An ETag: 412 where somebody else was faster"`
}

// rowOutput is one row with its version.
type rowOutput[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// notModified is huma's way to answer 304. It names the version that stays good.
type notModified struct{ tag string }

func (notModified) Error() string             { return "not modified" }
func (notModified) GetStatus() int            { return http.StatusNotModified }
func (n notModified) GetHeaders() http.Header { return http.Header{"Etag": {n.tag}} }

// unlessKnown answers a GET: not again what the caller has.
func unlessKnown[T any](in *GetInput, out *rowOutput[T]) (*rowOutput[T], error) {
	if in.IfNoneMatch != "" && lists(in.IfNoneMatch, out.ETag) {
		return nil, notModified{out.ETag}
	}
	return out, nil
}

// Keyed is what a POST that makes something takes besides its body.
type Keyed struct {
	Key string `header:"Idempotency-Key" doc:"Any text of your own: the same key and body are done once and answered alike for seven days"`
}

// made is what a POST answers, and what is kept under its key.
type made[T any] struct {
	Location string `json:"location"`
	ETag     string `json:"etag"`
	Body     T      `json:"body"`
}

// onceOutput is the answer to a POST, whether it has made something or done something.
type onceOutput[T any] struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Replayed string `header:"Idempotent-Replayed" doc:"true where the answer is an earlier one, said again"`
	Body     T
}

// once makes something in one transaction, and under a key makes it once: the
// answer is kept with the effect, so that who asks again after a lost answer
// hears it. A second request with the key waits for the first in the queue of the
// one writer, and is then answered like any later one.
func once[T any](ctx context.Context, a *api, k Keyed, body any, do func(*sqlite.Tx) (made[T], error)) (*onceOutput[T], error) {
	var m made[T]
	var replayed bool
	r, err := a.keyed(caller(ctx), k, body)
	if err != nil {
		return nil, err
	}
	err = a.DB.Write(ctx, func(tx *sqlite.Tx) (err error) {
		if k.Key == "" {
			m, err = do(tx)
			return err
		}
		var answer []byte
		answer, replayed, err = sqlite.OnceTx(tx, r, func() ([]byte, error) {
			if m, err = do(tx); err != nil {
				return nil, err
			}
			return json.Marshal(m)
		})
		if err == nil && replayed {
			err = json.Unmarshal(answer, &m)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	a.Crash("api.committed")
	out := &onceOutput[T]{Location: m.Location, ETag: m.ETag, Body: m.Body}
	if replayed {
		out.Replayed = "true"
	}
	return out, nil
}

// asked names the request that makes a row, so that the other node, where it may be
// sent again, makes the same row of it.
func asked(ctx context.Context, k Keyed) sync.Asked {
	if k.Key == "" {
		return sync.Asked{}
	}
	return sync.Asked{Route: caller(ctx).route, Key: k.Key}
}

// keyed is what the key of a request is unique within. The body as it was
// understood, so that the order of its fields is no difference, is kept only as a
// keyed hash: it may hold what is nobody's business.
func (a *api) keyed(from request, k Keyed, body any) (sqlite.Request, error) {
	if k.Key == "" {
		return sqlite.Request{}, nil
	}
	for _, c := range []byte(k.Key) {
		if c < 0x21 || c > 0x7e || len(k.Key) > 255 {
			return sqlite.Request{}, errBadKey
		}
	}
	b, err := json.Marshal(body)
	if err != nil {
		return sqlite.Request{}, err
	}
	m := hmac.New(sha256.New, a.requests)
	m.Write(b)
	return sqlite.Request{Owner: from.UserID, Route: from.route, Key: k.Key, Body: m.Sum(nil)}, nil
}
