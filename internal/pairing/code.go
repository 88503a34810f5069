package pairing

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"sync"
	"time"
)

// What a code is good for.
const (
	CodeLife  = 10 * time.Minute
	CodeTries = 5 // wrong ones void it
	// codeLetters stand for four bits each. Without vowels they make no words, and
	// none of them looks like another.
	codeLetters = "bcdfghjkmnpqrstv"
	CodeLength  = 32 // letters: 128 bits
)

// codes is the one code that is good at a time. Only its hash is kept, and in
// memory: a restart voids it.
type codes struct {
	mu    sync.Mutex
	hash  [sha256.Size]byte
	until time.Time
	tries int // that are left; 0: no code is good
}

// open makes a code, which voids the one before.
func (c *codes) open(now time.Time) (code string, until time.Time) {
	var random [CodeLength / 2]byte
	_, _ = rand.Read(random[:]) // never fails
	var b strings.Builder
	for _, v := range random {
		b.WriteByte(codeLetters[v>>4])
		b.WriteByte(codeLetters[v&15])
	}
	code = b.String()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hash, c.until, c.tries = sha256.Sum256([]byte(code)), now.Add(CodeLife), CodeTries
	return code, c.until
}

// admit reports whether code is the one that is good now. A wrong one costs a try.
func (c *codes) admit(code string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.admitLocked(code, now)
}

// spend is admit, and voids the code: of two who come with one at once, one is let in.
func (c *codes) spend(code string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok := c.admitLocked(code, now)
	if ok {
		c.tries = 0
	}
	return ok
}

func (c *codes) admitLocked(code string, now time.Time) bool {
	if c.tries == 0 || !now.Before(c.until) {
		return false
	}
	got := sha256.Sum256([]byte(code))
	if subtle.ConstantTimeCompare(got[:], c.hash[:]) == 1 {
		return true
	}
	c.tries--
	return false
}

// Spell writes a code as people can type it: bcdf-ghjk-…
func Spell(code string) string {
	var groups []string
	for i := 0; i < len(code); i += 4 {
		groups = append(groups, code[i:i+4])
	}
	return strings.Join(groups, "-")
}

// ReadCode undoes Spell, whatever stands between the letters, and reports whether
// it can be a code at all.
func ReadCode(typed string) (string, bool) {
	code := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(typed))
	strange := strings.ContainsFunc(code, func(r rune) bool { return !strings.ContainsRune(codeLetters, r) })
	return code, len(code) == CodeLength && !strange
}
