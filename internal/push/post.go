package push

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// Post makes the one request of an attempt. Where no answer comes, maybeTaken says
// whether the far end may have acted all the same; it may not where no connection
// came about. A transport that does not say so is believed only in an error of
// dialling.
func Post(base http.RoundTripper, r *http.Request) (resp *http.Response, maybeTaken bool, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, false, err
	}
	var dialling atomic.Bool
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { dialling.Store(true) }, // also before it tries another, having written nothing on the last
		GotConn: func(httptrace.GotConnInfo) { dialling.Store(false) },
	})
	resp, err = base.RoundTrip(r.WithContext(ctx))
	if err == nil {
		return resp, false, nil
	}
	op, ok := errors.AsType[*net.OpError](err)
	return nil, !dialling.Load() && !(ok && op.Op == "dial"), err
}
