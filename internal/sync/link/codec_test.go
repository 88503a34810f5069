package link_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// packed is b as zstd.
func packed(t testing.TB, b []byte) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	must(t, err)
	return e.EncodeAll(b, nil)
}

// bomb is a short text that unpacks to so many MiB of spaces and then JSON.
func bomb(t testing.TB, mib int) []byte {
	t.Helper()
	var out bytes.Buffer
	e, err := zstd.NewWriter(&out)
	must(t, err)
	for range mib {
		_, err := e.Write(bytes.Repeat([]byte{' '}, 1<<20))
		must(t, err)
	}
	_, err = io.WriteString(e, `{"rows":[],"cursor":"c"}`)
	must(t, err)
	must(t, e.Close())
	return out.Bytes()
}

// tally keeps what went over a line, call by call.
type tally struct {
	to    http.RoundTripper
	calls []string
}

func (m *tally) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(sent))
	res, err := m.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	m.calls = append(m.calls, fmt.Sprintf("%s %s up %q %v down %q %v", r.Method, strings.TrimPrefix(r.URL.Path, "/peer/v1/"),
		r.Header.Get("Content-Encoding"), len(sent) > 20_000, res.Header.Get("Content-Encoding"), res.ContentLength > 20_000))
	return res, nil
}

func TestPagesGoPackedOnceTheOtherEndSaidThatItUnderstands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		local.many(100, 500)
		cloud.many(100, 500)
		l := &tally{to: newLine(cloud)}
		c := clientOver(local, l)
		must(t, c.Greet(t.Context()))
		fetchPage(t, c)
		must(t, c.Offer(t.Context()))
		equal(t, "calls", strings.Join(l.calls, "\n"), strings.Join([]string{
			`POST hello up "" false down "" false`,
			`GET changes up "" false down "zstd" false`,
			`POST changes up "" false down "" false`,
			`POST changes up "zstd" false down "" false`,
		}, "\n"))
		fetchPage(t, c)
		same(t, local, cloud)
	})
}

// A proxy or a version that knows no zstd gets plain JSON.
func TestPagesGoPlainWhereNobodySaidThatHeUnderstands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		local.many(100, 500)
		cloud.many(100, 500)
		l := newLine(cloud)
		plain := &tally{to: answers(func(r *http.Request) (*http.Response, error) {
			r.Header.Del("Accept-Encoding")
			res, err := l.RoundTrip(r)
			if err == nil {
				res.Header.Del("Accept-Encoding")
			}
			return res, err
		})}
		c := clientOver(local, plain)
		must(t, c.Greet(t.Context()))
		fetchPage(t, c)
		must(t, c.Offer(t.Context()))
		for _, call := range plain.calls {
			if strings.Contains(call, "zstd") {
				t.Error(call)
			}
		}
		equal(t, "the page down", plain.calls[1], `GET changes up "" false down "" true`)
		fetchPage(t, c)
		same(t, local, cloud)
	})
}

func TestAnswerThatUnpacksToTooMuchIsGivenUpBeforeItIsThere(t *testing.T) {
	for name, body := range map[string][]byte{"half a GiB": bomb(t, 512), "17 MiB": bomb(t, 17), "no zstd": []byte("junk"), "cut short": packed(t, []byte(`{"rows":[]}`))[:9]} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res := says(200, "application/json", string(body))
		p := newPeer(answers(func(r *http.Request) (*http.Response, error) {
			a, err := res(r)
			a.Header.Set("Content-Encoding", "zstd")
			return a, err
		}))
		err := p.Call(t.Context(), http.MethodGet, "changes", nil, &struct{}{})
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, link.ErrPeerStranger) || grown > 150<<20 {
			t.Errorf("%s: %v after %d MiB", name, err, grown>>20)
		}
	}
	var page struct{ Cursor string }
	res := answer(200, "application/json", bytes.NewReader(bomb(t, 15)))
	res.Header.Set("Content-Encoding", "zstd")
	must(t, newPeer(answers(func(*http.Request) (*http.Response, error) { return res, nil })).Call(t.Context(), http.MethodGet, "changes", nil, &page))
	equal(t, "within the limit", page.Cursor, "c")
}

// crowd is a page of so many entries that are none.
func crowd(n int) []byte {
	return []byte(`{"from":"","to":"","cursor":"c","rows":[{}` + strings.Repeat(",{}", n-1) + `]}`)
}

func TestBodyThatCannotBeUnpackedIsRefused(t *testing.T) {
	_, cloud := pair(t)
	s := newLine(cloud).server()
	for _, c := range []struct {
		coding string
		body   []byte
		want   string
	}{
		{"zstd", bomb(t, 512), "413 body_too_large"},
		{"zstd", bomb(t, 17), "413 body_too_large"},
		{"zstd", []byte("junk"), "400 bad_page"},
		{"gzip", []byte("junk"), "415 unsupported_encoding"},
		{"", bytes.Repeat([]byte{' '}, 17<<20), "413 body_too_large"},
		{"", []byte(`{"rows":[`), "400 bad_page"},
		{"zstd", packed(t, []byte(`{"from":"","to":"","rows":[]}`)), `200 {"cursor":""}`},
		{"zstd", packed(t, crowd(sync.PageRows+1)), "413 too_many_entries"}, // each would be set aside, on the one writer
	} {
		r := httptest.NewRequest(http.MethodPost, "/peer/v1/changes", bytes.NewReader(c.body))
		r.Header.Set("Content-Encoding", c.coding)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		code, said, _ := strings.Cut(c.want, " ")
		if fmt.Sprint(w.Code) != code || !strings.Contains(w.Body.String(), said) {
			t.Errorf("%q of %d bytes: %d %s, want %s", c.coding, len(c.body), w.Code, w.Body, c.want)
		}
	}
}

// slowly is a body that takes so long to come.
type slowly struct {
	io.Reader
	took time.Duration
}

func (s *slowly) Read(b []byte) (int, error) {
	time.Sleep(s.took)
	s.took = 0
	return s.Reader.Read(b)
}

func (*slowly) Close() error { return nil }

// Within a house packing costs more than it saves; a line from a home is slower.
func TestLineThatIsFasterThanPackingIsAskedForPlainPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took time.Duration
		size := 0
		accepted, packs := "", false
		p := link.NewPeer("http://cloud.test", "cloud", "local", "secret", answers(func(r *http.Request) (*http.Response, error) {
			accepted, packs = r.Header.Get("Accept-Encoding"), r.Header.Get("Content-Encoding") == "zstd"
			body := `{"pad":"` + strings.Repeat("x", size) + `"}`
			return &http.Response{
				StatusCode: http.StatusOK, ContentLength: int64(len(body)), Body: &slowly{strings.NewReader(body), took},
				Header: http.Header{"Content-Type": {"application/json"}, "Accept-Encoding": {"zstd"}},
			}, nil
		}))
		long := map[string]string{"pad": strings.Repeat("y", 10_000)}
		for _, c := range []struct {
			size int
			took time.Duration
			want string // of the call that follows
		}{
			{100_000, 10 * time.Millisecond, "zstd true"},
			{100_000, time.Microsecond, "identity false"},
			{1_000, time.Second, "identity false"}, // too short to tell
			{100_000, 10 * time.Millisecond, "zstd true"},
			{1_000, time.Microsecond, "zstd true"},
		} {
			size, took = c.size, c.took
			must(t, p.Call(t.Context(), http.MethodPost, "changes", long, nil))
			size, took = 0, 0
			must(t, p.Call(t.Context(), http.MethodPost, "changes", long, nil))
			equal(t, fmt.Sprint("after ", c.size, " bytes in ", c.took), fmt.Sprint(accepted, " ", packs), c.want)
		}
	})
}
