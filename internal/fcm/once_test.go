package fcm

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type wireFunc func(*http.Request) (*http.Response, error)

func (f wireFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Should a later Firebase client retry for reasons of its own, the wire still posts once.
func TestClientThatRetriesPostsNothingMore(t *testing.T) {
	posts := 0
	wire := &once{base: wireFunc(func(r *http.Request) (*http.Response, error) {
		posts++
		return answer{status: http.StatusOK, header: http.Header{}, body: []byte(`{"name": "n"}`)}.response(r), nil
	})}
	a := &attempt{}
	for _, want := range []int{http.StatusOK, http.StatusBadGateway} {
		r, err := http.NewRequestWithContext(context.WithValue(t.Context(), attemptKey{}, a), http.MethodPost, "http://fcm.test", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := wire.RoundTrip(r); err != nil || resp.StatusCode != want {
			t.Errorf("%v, %v; want %d", resp, err, want)
		}
	}
	if posts != 1 || !a.answer.accepted() {
		t.Errorf("%d posts", posts)
	}
}

func TestFitTakesTheRoomItHasAndNoMore(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("aü😀\"\n\x01<\u2028")))).Draw(r, "text")
		room := rapid.IntRange(-5, 60).Draw(r, "room")
		got := fit(s, room)
		size := weigh(got) - len(`""`+"\n")
		kept, cut := strings.CutSuffix(got, "…")
		switch {
		case size > max(room, 0):
			r.Fatalf("%q takes %d of %d", got, size, room)
		case got == s || got == "" && room < len("…"):
		case !cut || !strings.HasPrefix(s, kept):
			r.Fatalf("%q became %q", s, got)
		case size < room-6:
			r.Fatalf("%q uses %d of %d", got, size, room)
		}
		if b, err := json.Marshal(got); err != nil || strings.Contains(string(b), `\ufffd`) && !strings.Contains(s, "\uFFFD") {
			r.Fatalf("%q was cut within a rune", got)
		}
	})
}
