package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"sync"
	"time"
)

const (
	codeLife  = 10 * time.Minute
	codeTries = 5
	// codeLetters stand for four bits each. Without vowels they make no words, and
	// none of them looks like another.
	codeLetters = "bcdfghjkmnpqrstv"
	codeLength  = 32 // letters: 128 bits
)

// pairing is the one code that is good at a time. Only its hash is kept, and in
// memory: a restart voids it.
type pairing struct {
	mu    sync.Mutex
	hash  [sha256.Size]byte
	until time.Time
	tries int // that are left; 0: no code is good
}

// open makes a code, which voids the one before.
func (p *pairing) open(now time.Time) (code string, until time.Time) {
	var random [codeLength / 2]byte
	_, _ = rand.Read(random[:]) // never fails
	var b strings.Builder
	for _, v := range random {
		b.WriteByte(codeLetters[v>>4])
		b.WriteByte(codeLetters[v&15])
	}
	code = b.String()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hash, p.until, p.tries = sha256.Sum256([]byte(code)), now.Add(codeLife), codeTries
	return code, p.until
}

// admit reports whether code is the one that is good now. A wrong one costs a try.
func (p *pairing) admit(code string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.admitLocked(code, now)
}

// spend is admit, and voids the code: of two who come with one at once, one is let in.
func (p *pairing) spend(code string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ok := p.admitLocked(code, now)
	if ok {
		p.tries = 0
	}
	return ok
}

func (p *pairing) admitLocked(code string, now time.Time) bool {
	if p.tries == 0 || !now.Before(p.until) {
		return false
	}
	got := sha256.Sum256([]byte(code))
	if subtle.ConstantTimeCompare(got[:], p.hash[:]) == 1 {
		return true
	}
	p.tries--
	return false
}

// spell writes a code as people can type it: bcdf-ghjk-…
func spell(code string) string {
	var groups []string
	for i := 0; i < len(code); i += 4 {
		groups = append(groups, code[i:i+4])
	}
	return strings.Join(groups, "-")
}

// readCode undoes spell, whatever stands between the letters, and reports whether
// it can be a code at all.
func readCode(typed string) (string, bool) {
	code := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(typed))
	strange := strings.ContainsFunc(code, func(r rune) bool { return !strings.ContainsRune(codeLetters, r) })
	return code, len(code) == codeLength && !strange
}
