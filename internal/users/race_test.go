package users

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tandem/internal/fault"
)

// held returns a node on the same file whose logins stop between the check of the
// password and the session, until release is called.
func held(t *testing.T, n node) (slow node, checked <-chan struct{}, release func()) {
	t.Helper()
	o := n.o
	o.Hasher = NewHasher(cheap)
	check := o.Hasher.check
	reached, gate := make(chan struct{}), make(chan struct{})
	o.Hasher.check = func(p, hash string) (bool, error) {
		same, err := check(p, hash)
		reached <- struct{}{}
		<-gate
		return same, err
	}
	s, err := NewStore(t.Context(), n.db, o)
	ok(t, err)
	return node{Store: s, db: n.db}, reached, func() { close(gate) }
}

func TestALoginOvertakenByAChangeIsRefused(t *testing.T) { // E10, R:G2
	for name, change := range map[string]func(cloud node, id string) error{
		"reset":             func(cloud node, id string) error { return cloud.SetPassword(t.Context(), id, "another horse") },
		"reset to the same": func(cloud node, id string) error { return cloud.SetPassword(t.Context(), id, password) },
		"ban":               func(cloud node, id string) error { return cloud.Disable(t.Context(), id) },
	} {
		t.Run(name, func(t *testing.T) {
			cloud, home, id := twoNodes(t)
			for _, n := range []node{cloud, home} {
				slow, checked, release := held(t, n)
				answer := make(chan error)
				go func() {
					_, _, err := slow.Login(context.Background(), ada, password)
					answer <- err
				}()
				<-checked
				if n.Store == cloud.Store {
					ok(t, change(cloud, id))
				} else {
					carry(t, cloud, home)
				}
				release()
				refused(t, <-answer, fault.Unauthenticated, "wrong_credentials")
				equal(t, "sessions", n.count(t, `SELECT count(*) FROM sessions`), 0)
			}
		})
	}
}

func TestALoginBesideAnUnrelatedChangeHolds(t *testing.T) {
	cloud, home, _ := twoNodes(t)
	bob := addUser(t, cloud, "bob@example.org")
	slow, checked, release := held(t, cloud)
	answer := make(chan error)
	go func() {
		_, _, err := slow.Login(context.Background(), ada, password)
		answer <- err
	}()
	<-checked
	ok(t, cloud.Disable(t.Context(), bob))
	carry(t, cloud, home)
	release()
	ok(t, <-answer)
}

// Many log in and look in while the password changes and a ban comes and goes. What
// was opened with an old password is dead once the change has been answered, from
// memory as from the file.
func TestNoSessionSurvivesAStormOfResetsAndBans(t *testing.T) { // E10, R:G2
	n := run(t, 1, true)
	id := first(t, n)
	ok(t, n.SetPassword(t.Context(), id, secret(0)))
	for round := range 20 {
		before := []string{login(t, n, ada, secret(round))}
		var mu sync.Mutex
		var over atomic.Bool
		var crowd sync.WaitGroup
		for range 8 {
			crowd.Go(func() {
				for !over.Load() {
					token, _, err := n.Login(context.Background(), ada, secret(round))
					if err == nil {
						_, _ = n.Authenticate(context.Background(), token)
						mu.Lock()
						before = append(before, token)
						mu.Unlock()
					} else if !errors.Is(err, errCredentials) && !errors.Is(err, errBusy) {
						t.Error(err)
						return
					}
					mu.Lock()
					known := before[len(before)-1]
					mu.Unlock()
					_, _ = n.Authenticate(context.Background(), known)
				}
			})
		}
		if round%2 == 0 {
			ok(t, n.SetPassword(t.Context(), id, secret(round+1)))
		} else {
			ok(t, n.Disable(t.Context(), id))
		}
		mu.Lock()
		known := slices.Clone(before)
		mu.Unlock()
		for _, token := range known { // at once, while the crowd goes on
			if alive(t, n, token) {
				t.Fatalf("round %d: a session outlived the answer", round)
			}
		}
		over.Store(true)
		crowd.Wait()
		for _, token := range before {
			if alive(t, n, token) {
				t.Fatalf("round %d: a session was opened too late", round)
			}
		}
		equal(t, "sessions", n.count(t, `SELECT count(*) FROM sessions`), 0)
		if round%2 == 1 {
			ok(t, n.Enable(t.Context(), id))
			ok(t, n.SetPassword(t.Context(), id, secret(round+1)))
		}
	}
}

func secret(round int) string { return fmt.Sprintf("password number %d", round) }
