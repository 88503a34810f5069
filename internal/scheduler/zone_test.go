package scheduler

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"tandem/internal/loop"
)

// took is what differs between two runs that are alike.
var took = regexp.MustCompile(`\(\d+\.\d+s\)|(?m)^(ok|PASS).*$`)

// large are the tests that are about how much and not about when.
const large = "^Test(NothingIsLost|MoreThanABatch|TheLongestText|AStartDerives|AListIsRead)"

// The suite runs again on machines of other zones, and each row and notice that a
// test leaves behind is the same there.
func TestTheZoneOfTheMachineChangesNothing(t *testing.T) { // R:A9
	if os.Getenv("TANDEM_ZONE_TEST") != "" {
		t.Skip("within itself")
	}
	zones := []string{"UTC", "Asia/Kolkata", "America/New_York"}
	said := make([][]byte, len(zones))
	err := loop.Each(t.Context(), len(zones), []int{0, 1, 2}, func(ctx context.Context, i int) error {
		c := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.count=1", "-test.skip="+large)
		c.Env = append(os.Environ(), "TZ="+zones[i], "TANDEM_ZONE_TEST=1")
		out, err := c.CombinedOutput()
		said[i] = took.ReplaceAll(out, nil)
		return err
	})
	if err != nil {
		t.Errorf("%v\n%s", err, bytes.Join(said, nil))
	}
	for i := range zones[1:] {
		if !bytes.Equal(said[0], said[i+1]) {
			t.Errorf("under %s:\n%s\nunder %s:\n%s", zones[0], said[0], zones[i+1], said[i+1])
		}
	}
	if !bytes.Contains(said[0], []byte(`"call May"`)) {
		t.Errorf("no row was shown:\n%s", said[0])
	}
}
