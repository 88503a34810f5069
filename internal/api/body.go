package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"tandem/internal/fault"
)

const (
	maxBody  = 1 << 20          // bytes
	bodyTime = 30 * time.Second // a phone on a bad line sends the largest body in it
)

const (
	plainJSON  = "application/json"
	mergePatch = "application/merge-patch+json" // RFC 7396
)

// readBody hands huma a body that is JSON of a bearable size. Huma's own reader
// refuses a body of exactly the limit, calls a caller who hung up an error of
// ours, and knows media types only in the usual spelling.
func (a *api) readBody(c huma.Context, next func(huma.Context)) {
	r := humaecho.Unwrap(c).Request()
	if !takes(r) {
		if r.Method == http.MethodPatch {
			c.SetHeader("Accept-Patch", mergePatch+", "+plainJSON)
		}
		a.refuse(c, refusal(http.StatusUnsupportedMediaType))
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(bodyTime)) // a recorder has none
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	slow, isNet := errors.AsType[net.Error](err)
	var why error
	switch {
	case isNet && slow.Timeout():
		a.refuse(c, refusal(http.StatusRequestTimeout))
		return
	case len(b) > maxBody:
		a.refuse(c, refusal(http.StatusRequestEntityTooLarge))
		return
	case err != nil:
		why = errors.New("was cut short")
	case len(b) == 0:
		why = errors.New("is missing")
	default:
		why = checkJSON(b, bodyDepth)
	}
	if why != nil {
		a.refuse(c, refusal(http.StatusBadRequest, fault.Field{Name: "body", Detail: why.Error()}))
		return
	}
	r.Header.Set("Content-Type", plainJSON)
	r.Body = io.NopCloser(bytes.NewReader(b))
	next(c)
}

// takes reports whether the request says that its body is JSON, or says nothing.
func takes(r *http.Request) bool {
	given := r.Header.Get("Content-Type")
	kind, _, _ := mime.ParseMediaType(given) // parameters mean nothing to JSON
	return given == "" || kind == plainJSON || kind == mergePatch && r.Method == http.MethodPatch
}
