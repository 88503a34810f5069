package fcm_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.seed", "20260506") // the same texts in each run
	os.Exit(m.Run())
}
