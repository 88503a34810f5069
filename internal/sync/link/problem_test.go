package link_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"tandem/internal/fault"
)

// Who is put out while it waits is told so; to who has gone there is nothing to say.
func TestACallerThatIsPutOutIsToldSo(t *testing.T) {
	_, cloud := pair(t)
	for _, c := range []struct {
		cause error
		code  int
	}{
		{fault.New(fault.Unauthenticated, "not_the_peer", "Not any more."), http.StatusUnauthorized},
		{context.Canceled, 0},
		{errors.New("the connection is gone"), 0},
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		stop(c.cause)
		w := httptest.NewRecorder()
		w.Code = 0
		newLine(cloud).server().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/peer/v1/nothing", nil))
		if w.Code != c.code {
			t.Errorf("%v: it is answered %d, not %d", c.cause, w.Code, c.code)
		}
	}
}
