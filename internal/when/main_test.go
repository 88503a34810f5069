package when

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"tandem/internal/fault"
)

// TestMain gives the properties one seed, unless the command line names another,
// so that a run can be repeated.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("rapid.seed").Value.String() == "0" {
		_ = flag.Set("rapid.seed", "20260308")
	}
	_ = flag.Set("rapid.nofailfile", "true")
	os.Exit(m.Run())
}

// vector is a schedule with its right answers, Next null where it has ended.
type vector struct {
	Cron, RRule, Zone, Why string
	After                  time.Time
	Next                   []*string
}

func vectors(t testing.TB) []vector {
	t.Helper()
	text, err := os.ReadFile("testdata/schedules.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func parse(t testing.TB, r Rule) Schedule {
	t.Helper()
	s, err := Parse(r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return s
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// refused checks that err is a fault of the caller with this code and a hint.
func refused(t testing.TB, err error, code string) {
	t.Helper()
	if f := fault.From(err); err == nil || f.Kind != fault.Invalid || f.Code != code || f.Detail == "" {
		t.Errorf("got %v, want the fault %s", err, code)
	}
}

func codes(ws []Warning) string {
	text := ""
	for _, w := range ws {
		text += w.Code + " "
	}
	return text
}
