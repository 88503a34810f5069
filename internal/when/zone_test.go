package when

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// R:A10
func TestZoneIsAnIANANameOrRefused(t *testing.T) {
	for _, name := range []string{
		"", "Local", "Europe/Nowhere", "europe/berlin", "localtime", "posixrules", "Factory", "right/Europe/Berlin", "posix/Europe/Berlin",
		"/etc/localtime", "../../etc/localtime", "Europe/../Local", "Europe/Berlin\x00", "Europe", "+02:00", "UTC+2", "CEST",
	} {
		loc, err := Zone(name)
		refused(t, err, "unknown_zone")
		if loc != nil {
			t.Errorf("%q became %s", name, loc)
		}
		for _, r := range []Rule{{Cron: "0 9 * * *", Zone: name}, {RRule: "FREQ=DAILY", Zone: name}} {
			_, err := Parse(r)
			refused(t, err, "unknown_zone")
		}
	}
	for _, name := range append(someZones, "Etc/GMT+5", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "EST5EDT", "NZ-CHAT") {
		loc := zone(t, name)
		equal(t, loc.String(), name)
		equal(t, zone(t, name), loc) // the second time from memory
	}
}

// marker is the environment variable that turns this test binary into a process
// that prints its answers.
const marker = "WHEN_ANSWERS"

// answers works through all vectors and writes down what comes out.
func answers(t testing.TB) string {
	var out strings.Builder
	for _, v := range vectors(t) {
		s, at := parse(t, Rule{Cron: v.Cron, RRule: v.RRule, Zone: v.Zone}), v.After.Local()
		for range 10 {
			o, ok := s.Next(at)
			if !ok {
				break
			}
			fmt.Fprintln(&out, v.Cron, v.RRule, Format(o.At), o.Key, Local(o.At, zone(t, v.Zone)))
			at = o.At.Local() // as a caller may hold it
		}
		fmt.Fprintln(&out, s.Check(v.After.Local(), time.Minute), s.Warnings())
		rule, err := WithStart("FREQ=DAILY", v.After.Local(), v.Zone)
		fmt.Fprintln(&out, rule, err)
	}
	for _, text := range []string{"2026-03-08T02:30", "2026-10-25T02:30", "2026-05-06T10:00", "2026-05-06T10:00:00Z", "2026-05-06T10:00:00+02:00"} {
		for _, name := range someZones {
			m, ws, err := Instant(text, name)
			fmt.Fprintln(&out, m, ws, err)
		}
	}
	return out.String()
}

func TestPrintAnswers(t *testing.T) {
	if os.Getenv(marker) == "" {
		t.Skip("prints for the tests that start it in another process")
	}
	fmt.Printf("here noon is %s\n%s", time.Date(2026, 1, 1, 12, 0, 0, 0, time.Local).UTC().Format("15:04"), answers(t))
}

// inProcess returns what the answers are in a process with this environment, and
// at which hour UTC it has its noon.
func inProcess(t *testing.T, cmd *exec.Cmd, env ...string) (got, noon string) {
	t.Helper()
	cmd.Env = append(cmd.Env, env...)
	cmd.Env = append(cmd.Env, marker+"=1")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, complaint.String())
	}
	first, rest, _ := strings.Cut(string(out), "\n")
	rest, _, _ = strings.Cut(rest, "PASS\n")
	return rest, strings.TrimPrefix(first, "here noon is ")
}

// R:A6, R:A9
func TestZoneOfTheProcessChangesNothing(t *testing.T) {
	want := answers(t)
	for tz, noon := range map[string]string{"UTC": "12:00", "Asia/Kolkata": "06:30", "America/New_York": "17:00"} {
		got, at := inProcess(t, exec.Command(os.Args[0], "-test.run=^TestPrintAnswers$"), "TZ="+tz)
		equal(t, at, noon) // it did run there
		if got != want {
			t.Errorf("with TZ=%s:\n%s\nhere:\n%s", tz, got, want)
		}
	}
}
