package link_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sync/link"
)

// Whatever the peer says of itself, people can read it, and it takes little room.
func TestWhatAPeerSaysOfItselfIsBounded(t *testing.T) {
	long := strings.Repeat("ä\x1b[2J\n", 50_000)
	var aside, parked []map[string]any
	for i := range 300 {
		text := "x"
		if i == 0 {
			text = long
		}
		aside = append(aside, map[string]any{"table": text, "uid": strings.Repeat("1", 32), "kind": text, "reason": text, "updated_at": math.MaxInt64, "at": math.MaxInt64})
		parked = append(parked, map[string]any{"key": text, "owner": text, "kind": text, "code": text, "detail": text, "at": math.MinInt64})
	}
	schemas, highest := map[string][]string{}, map[string][2]int64{}
	for i := range 5000 {
		schemas[fmt.Sprint("t", i)], highest[fmt.Sprint("t", i)] = []string{"x"}, [2]int64{1, 1}
	}
	for name, c := range map[string]struct {
		number int64
		words  string
	}{
		"the largest":  {math.MaxInt64, "ahead of this one"},
		"the smallest": {math.MinInt64, "behind this one"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local, cloud := pair(t)
				said, err := json.Marshal(map[string]any{
					"node": "cloud", "origin": 1, "incarnation": long, "protocol": 1, "version": long, "scheduler": long, "now": c.number, "page_limit": c.number,
					"schemas": schemas, "highest": highest, "aside": aside, "parked": parked, "pending": c.number, "read": long,
					"compared": map[string]any{"at": c.number, "line": long, "differing": c.number, "repaired": c.number, "explained": c.number, "lasting": c.number},
				})
				must(t, err)
				l := newLine(cloud)
				l.answers(func(string) *http.Response { return answer(200, "application/json", bytes.NewReader(said)) })
				client, _ := client(local, l, nil, nil)
				must(t, client.Greet(t.Context()))
				s := client.Status()
				equal(t, "lists", fmt.Sprint(len(s.Aside), " ", len(s.ParkedThere)), "100 100")
				shown, err := json.Marshal(s)
				must(t, err)
				if len(shown) > 50_000 || bytes.Contains(shown, []byte(`\u001b`)) || !strings.HasSuffix(s.Version, "…") {
					t.Errorf("%d bytes: %.300s", len(shown), shown)
				}
				if !strings.Contains(s.Clocks, c.words) || s.Clock != link.Red || (s.Skew > 0) != (c.number > 0) {
					t.Error(s.Skew, s.Clocks)
				}
				if r := s.Compared; min(r.Differing, r.Repaired, r.Explained, r.Lasting) < 0 || s.ToFetch != nil {
					t.Errorf("%+v, %v to fetch", r, s.ToFetch)
				}
				for _, at := range []int64{s.Aside[0].At, s.Aside[0].UpdatedAt, s.ParkedThere[0].At, s.Compared.At} {
					if year := time.UnixMilli(at).UTC().Year(); year < 1970 || year > 9999 {
						t.Error("a time of the year", year)
					}
				}
			})
		})
	}
}
