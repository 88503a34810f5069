package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/internal/pairing"
	"tandem/internal/sync/link"
)

// inPair runs a test with two nodes that are a pair, whose secret is in a file.
func inPair(t *testing.T, test func(*testing.T, *bubble)) {
	t.Helper()
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		must(t, b.pairs(homesPassword))
		healed()
		b.login()
		test(t, b)
	})
}

// talks checks that both directions work at once, by a secret in use.
func (b *bubble) talks(round string) {
	b.Helper()
	b.home.add("from home " + round)
	b.cloud.add("from the cloud " + round)
	healed()
	for _, m := range []*machine{b.home, b.cloud} {
		for _, from := range []string{"home", "the cloud"} {
			if !strings.Contains(m.todos(), "from "+from+" "+round) {
				b.Errorf("%s: nothing from %s at %s", round, from, m.config.Node.Name)
			}
		}
	}
}

// opens reports whether the cloud takes a secret.
func (b *bubble) opens(secret string) bool {
	b.Helper()
	err := link.NewPeer("http://cloud.test", "cloud", "home", secret, b.link).Call(b.Context(), http.MethodPost, "hello", b.home.node.hello(), nil)
	if err != nil && !errors.Is(err, link.ErrPeerRefused) {
		b.Fatal(err)
	}
	return err == nil
}

func (b *bubble) rotates() error {
	_, err := b.home.node.pairRotate(b.Context(), struct{}{})
	return err
}

func TestASecretIsChangedWhileBothNodesRun(t *testing.T) {
	inPair(t, func(t *testing.T, b *bubble) {
		old := strings.TrimSpace(secretOf(b.home))
		for round := range 2 {
			must(t, b.rotates())
			b.home.add(fmt.Sprint("at once ", round))
			settle(time.Second)
			if !strings.Contains(b.cloud.todos(), fmt.Sprint("at once ", round)) {
				t.Error("what is written after a rotation waits")
			}
			b.talks(fmt.Sprint("rotated ", round))
			next := strings.TrimSpace(secretOf(b.home))
			equal(t, "at the cloud", strings.TrimSpace(secretOf(b.cloud)), next)
			equal(t, "lines", strings.Count(next, "\n"), 0)
			equal(t, "the old one opens", b.opens(old), false)
			equal(t, "the new one opens", b.opens(next), true)
			old = next
		}
		b.link.cut()
		if err := b.rotates(); !errors.Is(err, link.ErrPeerAway) {
			t.Errorf("changed with a cloud that is away: %v", err)
		}
		equal(t, "at home", strings.TrimSpace(secretOf(b.home)), old)
		b.link.mend()
		b.home.kill()
		b.cloud.kill()
		b.cloud.on()
		b.home.on()
		b.talks("after a restart")
	})
}

func TestASecretWhoseChangeIsKilledGoesOnToWork(t *testing.T) {
	for _, at := range []string{"cloud rotate.second", "home rotate.heard", "home rotate.first", "home rotate.only"} {
		t.Run(at, func(t *testing.T) {
			inPair(t, func(t *testing.T, b *bubble) {
				old := strings.TrimSpace(secretOf(b.home))
				name, point, _ := strings.Cut(at, " ")
				m := b.home
				if name == "cloud" {
					m = b.cloud
				}
				m.diesAt(point, func() {
					survived(func() {
						if b.rotates() == nil {
							t.Error("changed by a node that is dead")
						}
					})
				})
				b.talks("cut off")
				must(t, b.rotates())
				b.talks("done again")
				next := strings.TrimSpace(secretOf(b.home))
				equal(t, "at the cloud", strings.TrimSpace(secretOf(b.cloud)), next)
				equal(t, "lines", strings.Count(next, "\n"), 0)
				equal(t, "the old one opens", b.opens(old), false)
			})
		})
	}
}

// The answer to any of the calls is lost, again and again.
func TestASecretWhoseChangeIsNotAnsweredGoesOnToWork(t *testing.T) {
	for lost := 1; lost <= 2; lost++ {
		t.Run(fmt.Sprint("call ", lost), func(t *testing.T) {
			inPair(t, func(t *testing.T, b *bubble) {
				calls := 0
				b.link.answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h, _ := b.cloud.listens()
					if strings.HasSuffix(r.URL.Path, "/secret") {
						if calls++; calls == lost {
							h.ServeHTTP(&void{http.Header{}}, r)
							panic(http.ErrAbortHandler)
						}
					}
					h.ServeHTTP(w, r)
				}))
				if b.rotates() == nil {
					t.Error("changed without an answer")
				}
				b.talks("unanswered")
				must(t, b.rotates())
				b.link.answer(nil)
				b.talks("answered")
				equal(t, "the secrets", secretOf(b.home), secretOf(b.cloud))
			})
		})
	}
}

func TestASecretIsChangedFromHomeAndOnlyByAPair(t *testing.T) {
	inStrangeBubble(t, func(t *testing.T, b *bubble) {
		before := secretOf(b.home) + secretOf(b.cloud)
		if err := b.rotates(); !errors.Is(err, link.ErrPeerRefused) {
			t.Errorf("between strangers: %v", err)
		}
		if _, err := b.cloud.node.pairRotate(t.Context(), struct{}{}); !errors.Is(err, pairing.ErrNotHome) {
			t.Errorf("at the cloud: %v", err)
		}
		equal(t, "the secrets", secretOf(b.home)+secretOf(b.cloud), before)
	})
}
