package push

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnlyARequestThatWentOutMayHaveBeenTaken(t *testing.T) {
	cut := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	plain := httptest.NewServer(cut)
	defer plain.Close()
	secure := httptest.NewUnstartedServer(cut)
	secure.EnableHTTP2 = true
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	free.Close()
	mute := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done() // a network that swallows what is sent into it
		return nil, ctx.Err()
	}}
	defer mute.CloseIdleConnections()
	for _, c := range []struct {
		name  string
		base  http.RoundTripper
		url   string
		maybe bool
	}{
		{"cut after the request", http.DefaultTransport, plain.URL, true},
		{"cut after the request, over HTTP/2", secure.Client().Transport, secure.URL, true},
		{"a closed port", http.DefaultTransport, "http://" + free.Addr().String(), false},
		{"an unknown certificate", http.DefaultTransport, secure.URL, false},
		{"silence as it dials", mute, "http://push.test", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if c.base == mute {
				time.AfterFunc(time.Millisecond, cancel)
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader("ring"))
			must(t, err)
			_, maybe, err := Post(c.base, r)
			if err == nil || maybe != c.maybe {
				t.Errorf("may have been taken: %t, %v", maybe, err)
			}
			cancel()
			if _, maybe, err := Post(c.base, r); err == nil || maybe {
				t.Errorf("after its end: %t, %v", maybe, err)
			}
		})
	}
}

// A service may have taken what it did not answer: each later try there says so, and
// what goes elsewhere does not.
func TestASendWhoseAnswerWasLostSaysSoWhenItIsRepeated(t *testing.T) { // R:C1
	lost := func(context.Context, Target) error {
		return &Failure{Verdict: Retry, Code: "network", MaybeTaken: true}
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("bob", "b", "c")
		w.fcm.will(each(map[string]func(context.Context, Target) error{"b": lost, "c": fail(Retry, "503")}))
		w.enqueue(ring("fire", "bob"))
		w.deliver()
		w.start() // it outlives the process
		w.fcm.will(fail(Retry, "503"))
		time.Sleep(firstBackoff * 5 / 4)
		w.deliver()
		w.fcm.will(take)
		time.Sleep(2 * firstBackoff * 5 / 4)
		w.deliver()
		said := map[string][][]string{}
		for _, p := range w.fcm.posts {
			said[p.Address] = append(said[p.Address], p.Notes)
		}
		again := "sent again, the first may have arrived"
		same(t, said["b"], [][]string{{}, {again}, {again}})
		same(t, said["c"], [][]string{{}, {}, {}})
		equal(t, w.of("fire").State, Accepted)
	})
	t.Run("and is not called dead when its time is up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.phone("bob", "b")
			w.fcm.will(lost)
			n := ring("fire", "bob")
			n.TTL = 10 * time.Minute
			w.enqueue(n)
			w.deliver()
			w.fcm.will(fail(Retry, "503"))
			w.run(w.outbox.Loops(), 11*time.Minute)
			equal(t, w.of("fire").State, Unknown)
		})
	})
}
