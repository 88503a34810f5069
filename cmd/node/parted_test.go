package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inSharedBubble is inBubble with two nodes that keep their secret in one file, as two
// on one machine may.
func inSharedBubble(t *testing.T, test func(*testing.T, *bubble)) {
	t.Helper()
	inNewBubble(t, func(t *testing.T, b *bubble) {
		for _, m := range []*machine{b.home, b.cloud} {
			m.config.Peer.Token, m.config.Peer.TokenFile = "", filepath.Join(m.config.Node.Data, "..", "both.token")
		}
		b.cloud.on()
		b.home.on()
		b.open()
		settle(time.Minute)
		b.login()
		test(t, b)
	})
}

// Neither a restart nor a secret that both know makes two a pair that were parted; and
// the node that parted says so from then on.
func TestTwoThatSharedATokenFileStayParted(t *testing.T) {
	for _, who := range []string{"home", "cloud"} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprint(who, " parts, killed midway: ", killed), func(t *testing.T) {
				inSharedBubble(t, func(t *testing.T, b *bubble) {
					m, other := b.home, b.cloud
					if who == "cloud" {
						m, other = b.cloud, b.home
					}
					part := func() {
						_, err := m.node.unpair(t.Context(), struct{}{})
						if m.isOn() {
							must(t, err)
						}
					}
					if killed {
						m.diesAt("unpair.marked", func() { survived(part) })
					} else {
						part()
					}
					other.add("written after it")
					for _, when := range []string{"at once", "after a minute", "after both have started anew"} {
						if s := m.syncStatus(); s.State+" "+s.Code != "alone parted" || !strings.Contains(s.Detail, "tandem pair") {
							t.Errorf("%s, the status of %s: %+v", when, who, s)
						}
						if said := m.findings(); !strings.HasPrefix(said, "warn peer: alone: ") || !strings.Contains(said, "→ To make them a pair: tandem pair") {
							t.Errorf("%s, the doctor of %s: %s", when, who, said)
						}
						settle(time.Minute)
						if when == "after a minute" {
							for _, each := range []*machine{b.home, b.cloud} {
								each.off()
								each.on()
							}
						}
					}
					settle(2 * time.Minute)
					if strings.Contains(m.todos(), "written after it") {
						t.Error("it came to the node that was parted")
					}
					if s := other.syncStatus(); s.State == "ok" {
						t.Errorf("the other one: %+v", s)
					}
					must(t, b.pairs("nobody is asked"))
					healed()
					equal(t, "paired anew: states", b.home.syncStatus().State+" "+b.cloud.syncStatus().State, "ok ok")
					equal(t, "paired anew: it came", strings.Contains(m.todos(), "written after it"), true)
					b.home.off() // and stay so
					b.home.on()
					healed()
					equal(t, "after another start", b.home.syncStatus().State, "ok")
					b.alike()
					b.quiet()
				})
			})
		}
	}
}

// A poll that is held open when the nodes are parted brings nothing that was written
// afterwards.
func TestWhatIsWrittenAfterThePartingDoesNotCross(t *testing.T) {
	inSharedBubble(t, func(t *testing.T, b *bubble) {
		settle(5 * time.Second) // home's poll waits at the cloud
		_, err := b.cloud.node.unpair(t.Context(), struct{}{})
		must(t, err)
		b.cloud.add("a secret")
		settle(time.Minute)
		equal(t, "at home", b.home.todos(), "")
		equal(t, "home is told", b.home.syncStatus().Code, "peer_refused")
	})
}

// What never was in touch is no pair: it neither catches up nor had a success.
func TestTwoThatNeverMetAreNoPair(t *testing.T) {
	inNewBubble(t, func(t *testing.T, b *bubble) {
		b.cloud.on()
		b.open()
		settle(time.Second)
		for _, after := range []time.Duration{0, 5 * time.Minute, 30 * time.Hour} {
			settle(after)
			b.cloud.login()
			s := b.cloud.syncStatus()
			equal(t, fmt.Sprint("after ", after), s.State+" "+s.Code+" "+s.Fetch.LastSuccess+s.Send.LastSuccess+s.Banner, "alone not_paired ")
			if !strings.Contains(s.Detail, "tandem pair") {
				t.Errorf("it says %q", s.Detail)
			}
		}
		b.cloud.off()
		b.cloud.on()
		settle(time.Second)
		equal(t, "after another start", b.cloud.syncStatus().Code, "not_paired")
		b.home.on()
		settle(time.Minute)
		met := time.Now()
		b.home.kill()
		b.cloud.off()
		settle(2 * time.Hour)
		b.cloud.on()
		settle(time.Second)
		s := b.cloud.syncStatus()
		at, err := time.Parse(time.RFC3339, s.Fetch.LastSuccess)
		must(t, err)
		if d := met.Sub(at); d < 0 || d > 30*time.Second {
			t.Errorf("the last success was %v before they were last in touch: %+v", d, s)
		}
	})
}

// Home calls and is not let in: the cloud says that, and not that nobody calls.
func TestTheCloudTellsOfACallerThatItDoesNotLetIn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.revoke(strings.Repeat("another-secret-", 4))
		settle(40 * time.Second)
		said := b.cloud.findings()
		if s := b.cloud.syncStatus(); s.State+" "+s.Code != "attention caller_refused" || !strings.Contains(s.Detail, "home calls and is not let in") {
			t.Errorf("the status: %+v", s)
		}
		if !strings.HasPrefix(said, "fail peer: attention: home calls and is not let in: it does not have the secret of this node. (caller_refused) → To make them a pair: ") {
			t.Errorf("the doctor: %s", said)
		}
		b.revoke(bubbleSecret)
		healed()
		equal(t, "mended", b.cloud.syncStatus().State, "ok")

		b.home.off()
		b.home.config.Node.Name = "hone"
		must(t, os.RemoveAll(b.home.config.Node.Data))
		b.home.on()
		settle(2 * time.Minute)
		if s := b.cloud.syncStatus(); s.Code != "caller_refused" || !strings.Contains(s.Detail, "A node that calls itself hone calls and is not let in: peer.name here is home.") {
			t.Errorf("the status: %+v", s)
		}
	})
}

// Two that keep their secret in one file are told so, each by its doctor.
func TestTheDoctorTellsOfOneFileForTwoSecrets(t *testing.T) {
	inSharedBubble(t, func(t *testing.T, b *bubble) {
		for _, m := range []*machine{b.home, b.cloud} {
			if said := m.findings(); !strings.Contains(said, "warn peer: both nodes keep their secret in one file, ") || !strings.Contains(said, "→ Give each node a peer.token_file of its own") {
				t.Errorf("the doctor of %s: %s", m.config.Node.Name, said)
			}
			m.off()
			equal(t, "lines in the log of "+m.config.Node.Name, strings.Count(m.log.String(), "keep their secret in one file"), 1)
			m.config.Peer.TokenFile = filepath.Join(m.config.Node.Data, "..", m.config.Node.Name+".token")
			must(t, os.WriteFile(m.config.Peer.TokenFile, []byte(bubbleSecret), 0o600))
		}
		b.cloud.on()
		b.home.on()
		settle(time.Minute)
		for _, m := range []*machine{b.home, b.cloud} {
			equal(t, "with a file each, the doctor of "+m.config.Node.Name, strings.Contains(m.findings(), "one file"), false)
		}
	})
}

// Once they are paired both say so, and not what was wrong before.
func TestTheStatusIsRightAsSoonAsTheyArePaired(t *testing.T) {
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		settle(10 * time.Minute) // home waits long between two calls
		must(t, b.pairs(homesPassword))
		settle(time.Second)
		b.login()
		equal(t, "states", b.home.syncStatus().State+" "+b.cloud.syncStatus().State, "ok ok")
	})
}
