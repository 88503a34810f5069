package users

import (
	"sync"
	"time"
)

// maxCached bounds the sessions kept in memory, a few hundred bytes each. A session
// that is not there costs one look-up.
const maxCached = 4096

// sessionKey is the SHA-256 of a token: what the file holds of it.
type sessionKey [32]byte

// cache spares most requests the look-up of their session. What it holds is good
// until a change says otherwise; the expiry is looked at each time.
type cache struct {
	mu      sync.RWMutex
	epoch   uint64 // changes so far
	entries map[sessionKey]entry
}

type entry struct {
	identity Identity
	expires  time.Time
}

func newCache() *cache { return &cache{entries: map[sessionKey]entry{}} }

// get returns who holds the session. When it does not know, it returns the epoch to
// hand to put, taken before the caller looks the session up.
func (c *cache) get(key sessionKey, now time.Time) (who Identity, ok bool, epoch uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[key]
	if ok && now.Before(e.expires) {
		return e.identity, true, 0
	}
	return Identity{}, false, c.epoch
}

// put keeps e, unless something has changed since epoch: the look-up may then have
// seen what was true before.
func (c *cache) put(key sessionKey, e entry, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		return
	}
	if len(c.entries) >= maxCached {
		for old := range c.entries { // any one: what is in use is soon back
			delete(c.entries, old)
			break
		}
	}
	c.entries[key] = e
}

// forget drops one session.
func (c *cache) forget(key sessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	delete(c.entries, key)
}

// clear drops all.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	clear(c.entries)
}
