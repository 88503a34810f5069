package link

import (
	"encoding/json"
	"strings"
	"testing"
)

// No word of a greeting is kept that is longer than a node's can be.
func TestEachWordOfAGreetingIsBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	process := map[string]any{"id": long, "host": long}
	said, err := json.Marshal(map[string]any{
		"node": long, "peer": long, "incarnation": long, "version": long, "scheduler": long, "secret_at": long, "read": long, "process": process, "twin": process,
		"highest": map[string][2]int64{long: {1, 1}, "todos": {1, 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := readHello(said)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) > 4000 || len(h.Highest) != 1 {
		t.Errorf("%d bytes of it are kept: %.300s", len(kept), kept)
	}
	var s status
	s.met(h, 1, 0)
	if s.theirs.Highest != nil {
		t.Error("the ids are kept after they were read")
	}
}
