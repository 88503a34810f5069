package link_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sync/link"
)

// The log has one line when the link breaks, one more when it breaks in another way,
// and one when it works again, however long that takes.
func TestLinkThatIsDownIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		c, said := client(local, l, nil, nil)
		running(t, c)
		time.Sleep(time.Second)
		l.cut()
		time.Sleep(time.Hour)
		l.heal()
		l.answers(func(string) *http.Response { return answer(502, "text/html", strings.NewReader("<h1>Bad Gateway")) })
		time.Sleep(time.Hour)
		l.answers(nil)
		time.Sleep(time.Hour)
		var lines []string
		for line := range strings.Lines(said.String()) {
			_, msg, _ := strings.Cut(line, " level=")
			lines = append(lines, msg)
		}
		all := strings.Join(lines, "")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "WARN") || !strings.Contains(lines[0], "peer_away") || !strings.HasPrefix(lines[1], "WARN") ||
			!strings.Contains(lines[1], "peer_stranger") || !strings.HasPrefix(lines[2], "INFO") || !strings.Contains(lines[2], "after=2h") {
			t.Errorf("%d lines:\n%s", len(lines), all)
		}
	})
}

// S:66. The end that does not call says that nobody calls it, and since when it is so
// is in the times.
func TestCloudTellsThatNobodyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		s := l.server()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Loop().Run(ctx) }()
		equal(t, "just started", s.Status().State, link.CatchingUp)
		time.Sleep(85 * time.Second)
		equal(t, "a minute later", s.Status().State+" "+s.Status().Code, "offline peer_silent")
		c, _ := client(local, l, nil, nil)
		must(t, c.Greet(t.Context()))
		_, err := c.OfferPage(t.Context())
		must(t, err)
		fetchPage(t, c)
		heard := time.Now().UnixMilli()
		status := s.Status()
		equal(t, "once it calls", status.State, link.OK)
		equal(t, "times", fmt.Sprint(status.HeardAt, status.FetchedAt, status.OfferedAt), fmt.Sprint(heard, heard, heard))
		time.Sleep(25 * time.Hour)
		status = s.Status()
		equal(t, "a day later", status.State+" "+status.Code, "offline peer_silent")
		equal(t, "the last call", time.Since(time.UnixMilli(max(status.HeardAt, status.FetchedAt, status.OfferedAt))), 25*time.Hour)
		stop()
		<-done
		equal(t, "lines in the log", strings.Count(l.said.String(), "\n"), 3)
	})
}

func TestBothEndsKnowWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		c, _ := client(local, l, nil, nil)
		must(t, c.Greet(t.Context()))
		if s := c.Status(); s.ToOffer != nil || s.ToFetch != nil {
			t.Error("it is known before anybody has read anything")
		}
		more, err := c.OfferPage(t.Context())
		must(t, err)
		equal(t, "more", more || fetchPage(t, c), false)
		local.many(3, 0)
		cloud.many(5, 0)
		must(t, c.Greet(t.Context()))
		mine, theirs := c.Status(), l.server().Status()
		equal(t, "at local", fmt.Sprint(*mine.ToFetch, *mine.ToOffer), "5 3")
		equal(t, "at the cloud", fmt.Sprint(*theirs.ToFetch, *theirs.ToOffer), "3 5")
	})
}

func TestClocksThatDifferAreToldInWords(t *testing.T) {
	for skew, want := range map[time.Duration]string{
		29 * time.Second:                  "ok",
		-29 * time.Second:                 "ok",
		30*time.Second - time.Millisecond: "ok",
		30 * time.Second:                  "ok The clock of cloud is 30s ahead of this one. Turn",
		-4 * time.Minute:                  "ok The clock of cloud is 4m0s behind this one. Turn",
		5 * time.Minute:                   "attention clock_skew The clock of cloud is 5m0s ahead of this one. Of two edits the wrong one",
		-365 * 24 * time.Hour:             "attention clock_skew The clock of cloud is 8760h0m0s behind this one. Of two",
	} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local, cloud := pair(t)
				cloud.skew = skew
				l := newLine(cloud)
				c, _ := client(local, l, nil, nil)
				must(t, c.Greet(t.Context()))
				s := c.Status()
				got := strings.Join(strings.Fields(s.State+" "+s.Code+" "+s.Clocks), " ")
				if !strings.HasPrefix(got, want) || want == "ok" && got != "ok" {
					t.Errorf("got %q, want %q", got, want)
				}
				other := l.server().Status()
				equal(t, "at the cloud", other.Skew, -skew)
				equal(t, "state there", other.State+" "+other.Clock, s.State+" "+s.Clock)
			})
		})
	}
}
