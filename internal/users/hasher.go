package users

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/alexedwards/argon2id"

	"tandem/internal/fault"
)

// Cost is what one password costs to check, here and for whoever steals the file.
type Cost struct {
	Memory uint32 // KiB
	Passes uint32
}

// Standard is the least that OWASP recommends of argon2id: some 20 ms.
var Standard = Cost{Memory: 19 * 1024, Passes: 2}

// maxQueued callers wait while one works; the last of them waits about half a second.
const maxQueued = 16

var errBusy = fault.New(fault.TooMany, "busy_passwords", "Too many people are logging in at this moment. Try again in a second.").After(time.Second)

// Hasher makes and checks password hashes, one at a time in the whole node: side by
// side a few hundred logins would take gigabytes and every core.
type Hasher struct {
	params *argon2id.Params
	decoy  string // a hash nobody's password has, for addresses nobody has

	room chan struct{} // held from joining the queue to the end
	turn chan struct{} // held while working

	create func(password string, p *argon2id.Params) (string, error)
	check  func(password, hash string) (bool, error)
}

// NewHasher returns a hasher that makes hashes of cost, the zero one being Standard.
// It checks those of any cost, since a hash names its own.
func NewHasher(cost Cost) *Hasher {
	if cost == (Cost{}) {
		cost = Standard
	}
	p := &argon2id.Params{Memory: cost.Memory, Iterations: cost.Passes, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	return &Hasher{
		params: p, decoy: decoy(p),
		room: make(chan struct{}, 1+maxQueued), turn: make(chan struct{}, 1),
		create: argon2id.CreateHash, check: argon2id.ComparePasswordAndHash,
	}
}

// decoy returns a hash of the usual cost whose key is random bytes, not the image of
// any known word.
func decoy(p *argon2id.Params) string {
	random := func(n uint32) string {
		b := make([]byte, n)
		_, _ = rand.Read(b) // never fails
		return base64.RawStdEncoding.EncodeToString(b)
	}
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s",
		p.Memory, p.Iterations, p.Parallelism, random(p.SaltLength), random(p.KeyLength))
}

// Hash returns the hash to store for password. It waits its turn, and fails with
// busy_passwords at once where too many wait already.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	done, err := h.begin(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return h.create(normalPassword(password), h.params)
}

// Matches reports whether hash is of password. An empty hash is that of an unknown
// account: it matches nothing, and costs as much to find out. It waits as Hash does.
func (h *Hasher) Matches(ctx context.Context, password, hash string) (bool, error) {
	done, err := h.begin(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if hash == "" {
		hash = h.decoy
	}
	return h.check(normalPassword(password), hash)
}

// begin waits for the turn, and returns what ends it.
func (h *Hasher) begin(ctx context.Context) (func(), error) {
	select {
	case h.room <- struct{}{}:
	default:
		return nil, errBusy
	}
	select {
	case h.turn <- struct{}{}:
		return func() { <-h.turn; <-h.room }, nil
	case <-ctx.Done():
		<-h.room
		return nil, ctx.Err()
	}
}

// soundHash reports whether a hash that came from the other node can be checked here
// for a bearable price. The bounds leave room for a dearer cost than Standard.
func soundHash(hash string) bool {
	p, _, _, err := argon2id.DecodeHash(hash)
	return err == nil &&
		p.Memory >= 8 && p.Memory <= 256*1024 &&
		p.Iterations >= 1 && p.Iterations <= 16 &&
		p.Parallelism >= 1 && p.Parallelism <= 4 &&
		p.SaltLength >= 8 && p.SaltLength <= 64 &&
		p.KeyLength >= 16 && p.KeyLength <= 64
}
