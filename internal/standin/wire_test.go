package standin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/standin"
)

// echo repeats what it sees of a request.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Seen", r.Method+" "+r.Host+" "+r.RequestURI)
	w.WriteHeader(http.StatusTeapot)
	w.Write(body)
})

func post(t *testing.T, via http.RoundTripper, url string) (*http.Response, error) {
	t.Helper()
	return (&http.Client{Transport: via}).Post(url, "text/plain", strings.NewReader("hello"))
}

func TestWireCarriesARequestAsASocketWould(t *testing.T) {
	server := httptest.NewServer(echo)
	defer server.Close()
	for name, via := range map[string]http.RoundTripper{"memory": standin.Transport(echo), "loopback": http.DefaultTransport} {
		resp, err := post(t, via, server.URL+"/a%20b?c=d")
		if err != nil {
			t.Fatal(name, err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		want := "POST " + strings.TrimPrefix(server.URL, "http://") + " /a%20b?c=d"
		if err != nil || string(body) != "hello" || resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-Seen") != want {
			t.Errorf("%s: %v, %d %q, seen %q", name, err, resp.StatusCode, body, resp.Header.Get("X-Seen"))
		}
		if resp.ContentLength != 5 || resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d bytes of %s", name, resp.ContentLength, resp.Header.Get("Content-Type"))
		}
	}
}

func TestCutWireReachesNobody(t *testing.T) {
	calls := 0
	w := standin.Transport(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	w.Cut()
	if _, err := post(t, w, "http://far.test"); !errors.Is(err, syscall.ECONNREFUSED) || calls != 0 {
		t.Errorf("%v, %d calls", err, calls)
	}
	w.Mend()
	if _, err := post(t, w, "http://far.test"); err != nil || calls != 1 {
		t.Errorf("%v, %d calls", err, calls)
	}
}

func TestDroppedAnswerComesAfterTheWork(t *testing.T) {
	calls := 0
	w := standin.Transport(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	w.DropAnswers(1)
	if _, err := post(t, w, "http://far.test"); !errors.Is(err, syscall.ECONNRESET) || calls != 1 {
		t.Errorf("%v, %d calls", err, calls)
	}
	if _, err := post(t, w, "http://far.test"); err != nil {
		t.Error(err)
	}
}

func TestHandlerThatHangsUpTearsTheAnswer(t *testing.T) {
	w := standin.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	}))
	resp, err := post(t, w, "http://far.test")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || string(body) != "half" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestWireHonoursTheContextInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := standin.Transport(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://far.test", nil)
		if _, err := w.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := w.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a late request: %v", err)
		}
	})
}
