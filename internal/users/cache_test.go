package users

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestWhatWasReadBeforeAChangeIsNotKeptAfterIt(t *testing.T) {
	tomorrow := time.Now().Add(SessionLife)
	for name, change := range map[string]func(*cache){
		"clear":          (*cache).clear,
		"forget":         func(c *cache) { c.forget(sessionKey{1}) },
		"forget another": func(c *cache) { c.forget(sessionKey{2}) },
	} {
		c := newCache()
		_, _, epoch := c.get(sessionKey{1}, time.Now())
		change(c)
		c.put(sessionKey{1}, entry{expires: tomorrow}, epoch)
		if _, ok, _ := c.get(sessionKey{1}, time.Now()); ok {
			t.Errorf("%s: kept", name)
		}
		_, _, epoch = c.get(sessionKey{1}, time.Now())
		c.put(sessionKey{1}, entry{expires: tomorrow}, epoch)
		if _, ok, _ := c.get(sessionKey{1}, time.Now()); !ok {
			t.Errorf("%s: the next one was not kept", name)
		}
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	c := newCache()
	var last sessionKey
	for i := range maxCached + 100 {
		last = sessionKey{byte(i), byte(i >> 8)}
		c.put(last, entry{expires: time.Now().Add(SessionLife)}, 0)
	}
	equal(t, "entries", len(c.entries), maxCached)
	_, kept, _ := c.get(last, time.Now())
	equal(t, "the newest is kept", kept, true)
}

func TestASessionSeenBeforeIsNotLookedUpAgain(t *testing.T) {
	n := run(t, 1, true)
	first(t, n)
	token := login(t, n, ada, password)
	equal(t, "first", alive(t, n, token), true)
	n.sql(t, `DELETE FROM sessions`) // behind its back: no change it was told of
	equal(t, "from memory", alive(t, n, token), true)
	n.cache.clear()
	equal(t, "from the file", alive(t, n, token), false)
}

// Crowds look a session in and out of memory while it ends: whoever asks after the
// answer is refused, whatever those before had read.
func TestNobodyIsLetInAfterALogout(t *testing.T) {
	n := run(t, 1, true)
	first(t, n)
	for range 30 {
		token := login(t, n, ada, password)
		var ended atomic.Bool
		var crowd sync.WaitGroup
		for range 8 {
			crowd.Go(func() {
				for {
					late := ended.Load()
					n.cache.forget(sessionKey{}) // so that others' look-ups are void, and repeated
					_, err := n.Authenticate(context.Background(), token)
					switch {
					case late && err == nil:
						t.Error("let in after the logout was answered")
						return
					case errors.Is(err, errNoSession):
						if late {
							return
						}
					case err != nil:
						t.Error(err)
						return
					}
				}
			})
		}
		ok(t, n.Logout(t.Context(), token))
		ended.Store(true)
		crowd.Wait()
		equal(t, "kept in memory", len(n.cache.entries), 0)
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	n := run(b, 1, true)
	first(b, n)
	token := login(b, n, ada, password)
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := n.Authenticate(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hits of many", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := n.Authenticate(context.Background(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("miss", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n.cache.clear()
			if _, err := n.Authenticate(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
}
