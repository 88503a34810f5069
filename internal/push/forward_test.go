package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// pair is the cloud, which holds the tokens, and home, which copies them.
type pair struct {
	t           *testing.T
	cloud, home shelf
	link        *link
}

func newPair(t *testing.T) pair {
	cloud := newShelf(t, true)
	return pair{t, cloud, newShelf(t, false), &link{cloud: cloud.Tokens}}
}

// export is the set as the cloud gives it.
func (p pair) export() (generation string, body []byte) {
	p.t.Helper()
	generation, body, err := p.cloud.Export(p.t.Context())
	must(p.t, err)
	return generation, body
}

// pull is what the client of replication does with a set; it reports whether there
// was anything new.
func (p pair) pull() bool {
	p.t.Helper()
	had, err := p.home.Generation(p.t.Context())
	must(p.t, err)
	has, err := p.cloud.Generation(p.t.Context())
	must(p.t, err)
	if had == has {
		return false
	}
	generation, body := p.export()
	equal(p.t, generation, has)
	must(p.t, p.home.Import(p.t.Context(), generation, body))
	return true
}

func (p pair) forward() error { return p.home.Forward(p.t.Context(), p.link) }

// pending is how much home has still to tell.
func (p pair) pending() int {
	p.t.Helper()
	f, dead, err := p.home.waiting(p.t.Context())
	must(p.t, err)
	return len(f.Registrations) + len(f.Forgotten) + len(dead)
}

func TestHomeRingsThePhonesThatRegisteredAtTheCloud(t *testing.T) { // E08
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		equal(t, p.pull(), true)
		equal(t, p.pull(), false)
		p.cloud.register("ada", "T1", "phone")
		p.cloud.register("bob", "T2", "tablet")
		equal(t, p.pull(), true)
		equal(t, p.pull(), false)
		equal(t, p.home.rings("ada"), "T1@phone")
		equal(t, p.home.rings("bob"), "T2@tablet")
		p.cloud.register("bob", "T1", "phone")
		p.cloud.forget("bob", "tablet")
		p.pull()
		equal(t, p.home.rings("ada"), "")
		equal(t, p.home.rings("bob"), "T1@phone")
		equal(t, p.pending(), 0)
	})
}

func TestRegistrationAtHomeCountsAtOnceAndGoesOnToTheCloud(t *testing.T) { // E08
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.link.away = true
		p.cloud.register("ada", "old", "phone")
		p.pull()
		p.home.register("ada", "new", "phone")
		equal(t, p.home.rings("ada"), "new@phone")
		equal(t, errors.Is(p.forward(), errAway), true)
		p.cloud.register("bob", "T2", "tablet") // another generation
		equal(t, p.pull(), true)
		equal(t, p.home.rings("ada"), "new@phone") // not dropped
		equal(t, p.home.rings("bob"), "T2@tablet")
		equal(t, p.pending(), 1)

		p.link.away = false
		must(t, p.forward())
		equal(t, p.cloud.rings("ada"), "new@phone")
		equal(t, p.pending(), 0)
		p.pull()
		equal(t, p.home.rings("ada"), "new@phone")
		calls := p.link.calls
		must(t, p.forward())
		equal(t, p.link.calls, calls) // nothing left to tell
	})
}

func TestALostAnswerIsToldTwiceAndDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.link.mute = true
		p.home.register("ada", "T1", "phone")
		equal(t, errors.Is(p.forward(), errAway), true)
		equal(t, p.cloud.rings("ada"), "T1@phone")
		equal(t, p.pending(), 1)
		before, _ := p.export()
		p.link.mute = false
		must(t, p.forward())
		after, _ := p.export()
		equal(t, after, before)
		equal(t, p.pending(), 0)

		p.home.register("ada", "T2", "phone")
		p.link.mute = true
		equal(t, errors.Is(p.forward(), errAway), true)
		p.pull() // the set itself is an answer too
		equal(t, p.pending(), 0)
		equal(t, p.home.rings("ada"), "T2@phone")
	})
}

func TestAForgottenDeviceDoesNotComeBackBeforeTheCloudKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.cloud.register("ada", "T1", "phone")
		p.pull()
		equal(t, p.home.forget("ada", "phone"), true)
		p.cloud.register("bob", "T2", "tablet")
		equal(t, p.pull(), true)
		equal(t, p.home.rings("ada"), "")
		must(t, p.forward())
		equal(t, p.cloud.rings("ada"), "")
		p.pull()
		equal(t, p.home.rings("ada"), "")
		equal(t, p.home.rings("bob"), "T2@tablet")
	})
	t.Run("a device that home never heard of", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			p.cloud.register("ada", "T1", "phone") // while the link was cut
			equal(t, p.home.forget("ada", "phone"), false)
			p.pull()
			equal(t, p.home.rings("ada"), "")
			must(t, p.forward())
			equal(t, p.cloud.rings("ada"), "")
		})
	})
	t.Run("forgotten at the cloud before home told of it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			p.home.register("ada", "T1", "phone")
			time.Sleep(time.Minute)
			p.cloud.forget("ada", "phone")
			must(t, p.forward())
			p.pull()
			equal(t, p.cloud.rings("ada"), "")
			equal(t, p.home.rings("ada"), "")
		})
	})
	t.Run("and registers again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			p.cloud.register("ada", "T1", "phone")
			p.pull()
			p.home.forget("ada", "phone")
			p.home.register("ada", "T1", "phone") // in the same millisecond
			p.pull()
			must(t, p.forward())
			p.pull()
			equal(t, p.cloud.rings("ada"), "T1@phone")
			equal(t, p.home.rings("ada"), "T1@phone")
		})
	})
}

func TestAPhoneThatWasHandedOnRingsNoFormerOwner(t *testing.T) { // R:C5
	t.Run("of two owners of one phone, the last one logs out elsewhere", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			p.home.register("bob", "T1", "phone")
			time.Sleep(time.Minute)
			p.cloud.register("ada", "T1", "phone")
			time.Sleep(time.Minute)
			p.home.forget("ada", "phone")
			must(t, p.forward())
			p.pull()
			equal(t, p.cloud.rings("ada")+p.cloud.rings("bob"), "") // bob's is older, and does not come back
			equal(t, p.home.rings("ada")+p.home.rings("bob"), "")
		})
	})
	t.Run("taken over at home, and logged out at the cloud before it heard", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			p.cloud.register("bob", "T1", "phone")
			time.Sleep(time.Minute)
			p.home.register("ada", "T1", "phone")
			time.Sleep(time.Minute)
			p.cloud.forget("ada", "phone")
			must(t, p.forward())
			p.pull()
			equal(t, p.cloud.rings("ada")+p.cloud.rings("bob"), "")
			equal(t, p.home.rings("ada")+p.home.rings("bob"), "")
		})
	})
	t.Run("somebody else's", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			p.cloud.register("ada", "T1", "phone")
			p.home.forget("bob", "phone")
			p.cloud.forget("bob", "phone")
			must(t, p.forward())
			p.pull()
			equal(t, p.cloud.rings("ada"), "T1@phone")
			equal(t, p.home.rings("ada"), "T1@phone")
		})
	})
}

func TestADeadTokenDoesNotReturnWithAnOldSet(t *testing.T) { // R:C4 UNREGISTERED
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.cloud.register("ada", "T1", "phone")
		p.pull()
		generation, old := p.export()
		p.home.buries("ada", "T1")
		equal(t, p.home.rings("ada"), "")
		must(t, p.home.Import(t.Context(), generation, old))
		equal(t, p.home.rings("ada"), "")
		equal(t, p.pending() > 0, true)

		p.cloud.register("ada", "T1", "phone") // the device itself says it lives
		p.pull()
		equal(t, p.home.rings("ada"), "T1@phone")
		must(t, p.forward())
		equal(t, p.cloud.rings("ada"), "T1@phone") // and what is said of the old one does not touch it
		equal(t, p.pending(), 0)

		p.pull()
		p.home.buries("ada", "T1")
		p.link.away = true
		equal(t, errors.Is(p.forward(), errAway), true)
		equal(t, p.pending() > 0, true)
		p.link.away = false
		must(t, p.forward())
		equal(t, p.cloud.rings("ada"), "")
		equal(t, p.pending(), 0)
	})
}

// The token outlives a reinstalled app for a while: both registrations are dead, and
// only one of them is here.
func TestADeadTokenThatHasMovedDoesNotReturnEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.cloud.register("ada", "T1", "phone")
		p.pull()
		generation, old := p.export()
		before := p.home.targets("ada")[0]
		p.home.register("ada", "T1", "phone-2")
		p.home.write(func(tx *sqlite.Tx) error { return p.home.buryTx(tx, before) })
		equal(t, p.home.rings("ada"), "T1@phone-2")
		p.home.buries("ada", "T1")
		must(t, p.home.Import(t.Context(), generation, old))
		equal(t, p.home.rings("ada"), "")
	})
	t.Run("told of a death before the birth", func(t *testing.T) {
		p := newPair(t)
		p.home.register("ada", "T1", "phone")
		r := p.home.targets("ada")[0].registration
		must(t, p.cloud.Unregistered(t.Context(), []Lapsed{{tokenHash("T1"), r}}))
		must(t, p.forward())
		equal(t, p.cloud.rings("ada"), "")
	})
}

func TestWhatChangesDuringACallIsToldInTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.home.forget("ada", "phone")
		p.link.during = func() {
			time.Sleep(time.Second)
			p.cloud.register("ada", "T1", "phone")
			p.home.register("bob", "T2", "tablet")
			time.Sleep(time.Second)
			p.home.forget("ada", "phone")
		}
		must(t, p.forward())
		equal(t, p.link.calls, 2)
		equal(t, p.cloud.rings("ada"), "")
		equal(t, p.cloud.rings("bob"), "T2@tablet")
	})
}

// What the cloud exported before it confirmed something lacks that, and may arrive
// after the confirmation.
func TestASetFromBeforeAConfirmationIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.cloud.register("bob", "T2", "tablet")
		p.home.register("ada", "T1", "phone")
		_, err := p.home.Generation(t.Context()) // the poll begins
		must(t, err)
		generation, old := p.export()
		must(t, p.forward())
		must(t, p.home.Import(t.Context(), generation, old))
		equal(t, p.home.rings("ada"), "T1@phone")
		equal(t, p.pull(), true)
		equal(t, p.home.rings("ada"), "T1@phone")
		equal(t, p.home.rings("bob"), "T2@tablet")
	})
}

func TestTheYoungerOfTwoRegistrationsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.home.register("ada", "at-home", "phone")
		time.Sleep(time.Minute)
		p.cloud.register("ada", "at-cloud", "phone")
		p.pull()
		equal(t, p.home.rings("ada"), "at-home@phone") // pending
		must(t, p.forward())
		equal(t, p.cloud.rings("ada"), "at-cloud@phone")
		equal(t, p.pull(), true)
		equal(t, p.home.rings("ada"), "at-cloud@phone")
	})
}

func TestABadSetChangesNothing(t *testing.T) {
	p := newPair(t)
	p.cloud.register("ada", "T1", "phone")
	p.pull()
	p.home.register("ada", "T3", "watch")
	held, err := p.home.Generation(t.Context())
	must(t, err)
	good := Registered{"T2", "ios", "tablet", "ada", [16]byte{1}, 5, 5}
	set := func(more ...Registered) string {
		b, err := json.Marshal(tokenSet{Tokens: append([]Registered{good}, more...)})
		must(t, err)
		return string(b)
	}
	for name, c := range map[string]struct{ generation, body string }{
		"nothing":          {"g", ""},
		"not JSON":         {"g", "<html>"},
		"no list":          {"g", "{}"},
		"null":             {"g", `{"tokens":null}`},
		"two values":       {"g", set() + "{}"},
		"no generation":    {"", set()},
		"unsound":          {"g", set(Registered{"a b", "ios", "x", "ada", [16]byte{2}, 5, 5})},
		"unknown platform": {"g", set(Registered{"a", "tv", "x", "ada", [16]byte{2}, 5, 5})},
		"no owner":         {"g", set(Registered{"a", "ios", "x", "", [16]byte{2}, 5, 5})},
		"token twice":      {"g", set(Registered{"T2", "ios", "x", "ada", [16]byte{2}, 5, 5})},
		"device twice":     {"g", set(Registered{"a", "ios", "tablet", "ada", [16]byte{2}, 5, 5})},
		"a long life":      {"g", `{"tokens":[],"life":"` + strings.Repeat("x", 65) + `"}`},
		"same twice":       {"g", set(Registered{"a", "ios", "x", "ada", [16]byte{1}, 5, 5})},
	} {
		if err := p.home.Import(t.Context(), c.generation, []byte(c.body)); fault.From(err).Code != "bad_push_tokens" {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, p.home.rings("ada"), "T1@phone T3@watch")
	now, err := p.home.Generation(t.Context())
	must(t, err)
	equal(t, now, held)
}

// The cloud's database was lost, or put back to a moment before some had registered.
func TestAnAuthorityThatForgotDevicesHasThemAgain(t *testing.T) {
	for name, forgets := range map[string]string{"all": `DELETE FROM push_tokens`, "some": `DELETE FROM push_tokens WHERE device_id = 'watch'`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				life := "first"
				p.cloud.o.Life = func() string { return life }
				p.cloud.register("ada", "T1", "phone")
				p.cloud.register("ada", "T2", "watch")
				p.cloud.register("ada", "T3", "tablet")
				p.pull()
				p.cloud.forget("ada", "tablet") // and home has not heard of it
				p.cloud.exec(forgets)
				life = "second"
				equal(t, p.pull(), true)
				equal(t, p.home.rings("ada"), "T1@phone T3@tablet T2@watch")
				must(t, p.forward())
				equal(t, p.cloud.rings("ada"), "T1@phone T2@watch") // the one that it forgot itself does not come back
				for p.pull() {
				}
				equal(t, p.home.rings("ada"), "T1@phone T2@watch")
				equal(t, p.pending(), 0)
				p.cloud.forget("ada", "watch") // within a life what is not there has gone
				p.pull()
				equal(t, p.home.rings("ada"), "T1@phone")
			})
		})
	}
}

// The first set that is copied, one of an older version, and one that is copied again
// after home was put back, say what there is and no more.
func TestOnlyAnotherLifeOfTheAuthorityBringsDevicesBack(t *testing.T) {
	for name, c := range map[string]struct {
		lives [2]string
		again func(p pair)
	}{
		"an older version":           {[2]string{"", ""}, nil},
		"one that has been upgraded": {[2]string{"", "first"}, nil},
		"home was put back": {[2]string{"first", "first"}, func(p pair) {
			p.home.write(func(tx *sqlite.Tx) error { _, err := StartOverTx(tx); return err })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			life := c.lives[0]
			p.cloud.o.Life = func() string { return life }
			p.cloud.register("ada", "T1", "phone")
			p.cloud.register("ada", "T2", "watch")
			p.pull()
			p.cloud.exec(`DELETE FROM push_tokens WHERE device_id = 'watch'`)
			life = c.lives[1]
			if c.again != nil {
				c.again(p)
			}
			p.pull()
			equal(t, p.home.rings("ada"), "T1@phone")
			equal(t, p.pending(), 0)
		})
	}
}

func TestForwardLoopFindsAPeerThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		w := &world{t: t}
		l := p.home.ForwardLoop(p.link)
		p.link.away = true
		time.AfterFunc(time.Second, func() { p.home.register("ada", "T1", "phone") })
		time.AfterFunc(10*time.Minute, func() { p.link.away = false })
		w.run(loops(l), 10*time.Minute)
		equal(t, p.cloud.rings("ada"), "")
		w.run(loops(l), 40*time.Second)
		equal(t, p.cloud.rings("ada"), "T1@phone")
		began := time.Now()
		var took time.Duration
		p.cloud.o.OnChange = func() { took = time.Since(began) }
		time.AfterFunc(2*time.Second, func() { p.home.forget("ada", "phone") }) // woken, not polled
		w.run(loops(l), 5*time.Second)
		equal(t, took, 2*time.Second)
	})
}

func TestMoreThanOneCallHoldsIsForwardedInSeveral(t *testing.T) {
	p := newPair(t)
	p.home.write(func(tx *sqlite.Tx) error {
		for i := range 2*forwardBatch + 1 {
			if _, err := p.home.RegisterTx(tx, fmt.Sprint("ada", i/maxDevices), Registration{fmt.Sprintf("T%d", i), "ios", fmt.Sprintf("D%d", i)}); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, p.forward())
	equal(t, p.link.calls, 3)
	there := 0
	for i := range 2*forwardBatch/maxDevices + 1 {
		there += len(p.cloud.targets(fmt.Sprint("ada", i)))
	}
	equal(t, there, 2*forwardBatch+1)
	equal(t, p.pending(), 0)
}

// Whatever is done on either side over whatever link, after it heals both hold the
// same, and what a person did last to a device is what counts.
func TestBothNodesEndWithTheSameTokens(t *testing.T) { // E08
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, r := newPair(t), rand.New(rand.NewPCG(seed, 8))
				last := map[string]string{} // device to owner and token; empty: forgotten
				for range 40 {
					time.Sleep(time.Duration(r.IntN(3)) * time.Second)
					p.link.away, p.link.mute = r.IntN(3) == 0, r.IntN(4) == 0
					p.act(r, last)
				}
				p.link.away, p.link.mute = false, false
				for range 2 {
					must(t, p.forward())
					p.pull()
				}
				equal(t, p.pending(), 0)
				for _, owner := range []string{"ada", "bob"} {
					equal(t, p.home.rings(owner), p.cloud.rings(owner))
				}
				for device, at := range last {
					got := ""
					for _, owner := range []string{"ada", "bob"} {
						for _, to := range p.cloud.targets(owner) {
							if to.device == device {
								got = owner + " " + to.Address
							}
						}
					}
					if got != at {
						t.Errorf("%s is %q, want %q", device, got, at)
					}
				}
			})
		})
	}
}

// act does one thing at random. A token belongs to one device here, so that what
// was done last to a device is all that counts.
func (p pair) act(r *rand.Rand, last map[string]string) {
	node := []shelf{p.cloud, p.home}[r.IntN(2)]
	owner := []string{"ada", "bob"}[r.IntN(2)]
	device := []string{"phone", "tablet", "watch"}[r.IntN(3)]
	token := fmt.Sprintf("%s-%d", device, r.IntN(2))
	switch r.IntN(6) {
	case 0, 1:
		time.Sleep(time.Millisecond) // no two at one instant: that would be a tie
		node.register(owner, token, device)
		last[device] = owner + " " + token
	case 2:
		time.Sleep(time.Millisecond)
		node.forget(owner, device)
		if at := last[device]; len(at) > 3 && at[:3] == owner {
			last[device] = ""
		}
	case 3:
		_ = p.forward() // the link may be away
	case 4:
		p.pull()
	case 5:
		for _, to := range node.targets(owner) { // the newest of the device, called dead
			if last[to.device] == owner+" "+to.Address && p.newest(to) {
				node.buries(owner, to.Address)
				last[to.device] = ""
				return
			}
		}
	}
}

// newest reports whether no node has another registration of the device.
func (p pair) newest(to Target) bool {
	for _, s := range []shelf{p.cloud, p.home} {
		for _, owner := range []string{"ada", "bob"} {
			for _, other := range s.targets(owner) {
				if other.device == to.device && other.registration != to.registration {
					return false
				}
			}
		}
	}
	return true
}
