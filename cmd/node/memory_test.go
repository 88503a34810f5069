package main

import (
	"io"
	"math"
	"net"
	"runtime/debug"
	"testing"
)

func TestServeBoundsItsMemoryUnlessTheOperatorDoes(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	percent := debug.SetGCPercent(100)
	defer debug.SetGCPercent(percent)
	taken, err := net.Listen("tcp", "127.0.0.1:0") // serve gets as far as this
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	env := []string{"TANDEM_NODE_NAME=n", "TANDEM_NODE_ORIGIN=0", "TANDEM_NODE_DATA=" + t.TempDir(), "TANDEM_HTTP_LISTEN=" + taken.Addr().String()}
	for _, c := range []struct {
		env     []string
		limit   int64
		percent int
	}{
		{append(env, "GOGC=150", "GOMEMLIMIT=1GiB"), math.MaxInt64, 100},
		{env, memoryLimit, gcPercent},
	} {
		if code := execute(t.Context(), []string{"serve"}, terminal{out: io.Discard, err: io.Discard, env: c.env}); code != exitFailed {
			t.Fatalf("exit %d", code)
		}
		got := debug.SetGCPercent(100)
		if limit := debug.SetMemoryLimit(-1); limit != c.limit || got != c.percent {
			t.Errorf("limit %d, percent %d; want %d, %d", limit, got, c.limit, c.percent)
		}
	}
}
