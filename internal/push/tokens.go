package push

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"tandem/internal/fault"
	"tandem/internal/loop"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// keptGone is how long the authority remembers that a device was to ring no more,
// or that a registration is dead. A node that has been away for longer may bring
// one back.
const keptGone = 90 * 24 * time.Hour

// TokenOptions say which part this node plays.
type TokenOptions struct {
	Authority bool          // the set lives here: at the cloud, or at the only node
	Life      func() string // of the database, at the authority; nil: it has but one
	Log       *slog.Logger

	// OnChange, when set, runs after each commit that changed the authority's set.
	// It runs on the writer: it wakes others and returns.
	OnChange func()
}

// Tokens is where push reaches people. Where the set is a copy, what is changed
// here counts at once and goes on to the authority as soon as that can be reached.
type Tokens struct {
	db      *sqlite.DB
	o       TokenOptions
	forward *loop.Loop // nil at the authority

	// How often the authority has confirmed something since the start, now and when
	// the set was last asked for: what was exported in between may lack it.
	confirmed, asked atomic.Int64
}

// NewTokens returns the store of one node.
func NewTokens(db *sqlite.DB, o TokenOptions) *Tokens {
	if o.Life == nil {
		o.Life = func() string { return "" }
	}
	return &Tokens{db: db, o: o}
}

// RegisterTx has a device ring for the owner from now on. One installation has one
// row: a token or a device that was another owner's moves wholly.
func (t *Tokens) RegisterTx(tx *sqlite.Tx, owner string, r Registration) (Device, error) {
	if err := r.check(); err != nil {
		return Device{}, err
	}
	others, _, err := sqlite.One(tx, sqlite.Value[int], `
		SELECT count(*)
		FROM push_tokens
		WHERE owner = ? AND device_id <> ?`, owner, r.DeviceID)
	if err != nil {
		return Device{}, err
	}
	if others >= maxDevices {
		return Device{}, errTooMany
	}
	// Above what it replaces whatever the clock says, as with rows.
	newest, _, err := sqlite.One(tx, sqlite.Value[*int64], `
		SELECT max(at)
		FROM (
		  SELECT updated_at AS at FROM push_tokens WHERE token = ?1 OR device_id = ?2
		  UNION ALL
		  SELECT forgotten_at FROM push_forgotten WHERE owner IN (?3, '') AND device_id = ?2
		)`, r.Token, r.DeviceID, owner)
	if err != nil {
		return Device{}, err
	}
	at := tx.Millis()
	if newest != nil {
		at = max(at, *newest+1)
	}
	since, known, err := sqlite.One(tx, sqlite.Value[int64], `
		SELECT registered_at
		FROM push_tokens
		WHERE token = ? AND platform = ? AND device_id = ? AND owner = ?`, r.Token, r.Platform, r.DeviceID, owner)
	if err != nil {
		return Device{}, err
	}
	if !known {
		since = at
	}
	row := Registered{r.Token, r.Platform, r.DeviceID, owner, sync.UID(tx.Random(16)), since, at}
	var pending *int64
	if !t.o.Authority {
		pending = &at
	}
	tx.AfterCommit(t.changed)
	return row.device(), replaceTx(tx, row, pending)
}

// replaceTx stores a registration in place of any that has its token or device.
func replaceTx(tx *sqlite.Tx, r Registered, pending *int64) error {
	if _, err := tx.Exec(`DELETE FROM push_tokens WHERE token = ? OR device_id = ?`, r.Token, r.DeviceID); err != nil {
		return err
	}
	_, err := tx.Exec(`
		INSERT INTO push_tokens (`+registeredColumns+`, pending_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, append(r.args(), pending)...)
	return err
}

// ForgetTx has a device of the owner ring no more, and reports whether it was
// known here. One that is not may be known to the other node, and is forgotten
// there too.
func (t *Tokens) ForgetTx(tx *sqlite.Tx, owner, deviceID string) (bool, error) {
	if !visible(deviceID, 128) {
		return false, nil
	}
	stamp, known, err := sqlite.One(tx, sqlite.Value[int64],
		`SELECT updated_at FROM push_tokens WHERE owner = ? AND device_id = ?`, owner, deviceID)
	if err != nil {
		return false, err
	}
	_, err = forgetTx(tx, Forgotten{Owner: owner, DeviceID: deviceID, At: max(tx.Millis(), stamp)})
	if err == nil && t.o.Authority {
		err = pruneTx(tx)
	}
	if known || !t.o.Authority {
		tx.AfterCommit(t.changed)
	}
	return known, err
}

// forgetTx applies f, and reports whether a device went. What others had of that
// device before its last owner did does not come back either.
func forgetTx(tx *sqlite.Tx, f Forgotten) (bool, error) {
	stamp, went, err := sqlite.One(tx, sqlite.Value[int64], `
		DELETE FROM push_tokens
		WHERE device_id = ? AND ? IN (owner, '') AND updated_at <= ?
		RETURNING updated_at`, f.DeviceID, f.Owner, f.At)
	if err == nil && went {
		err = markForgottenTx(tx, Forgotten{DeviceID: f.DeviceID, At: stamp})
	}
	if err == nil {
		err = markForgottenTx(tx, f)
	}
	return went, err
}

func markForgottenTx(tx *sqlite.Tx, f Forgotten) error {
	_, err := tx.Exec(`
		INSERT INTO push_forgotten (owner, device_id, forgotten_at)
		VALUES (?, ?, ?)
		ON CONFLICT (owner, device_id) DO UPDATE SET forgotten_at = max(forgotten_at, excluded.forgotten_at)`, f.Owner, f.DeviceID, f.At)
	return err
}

// pruneTx is the authority's: elsewhere a row goes when it was confirmed.
func pruneTx(tx *sqlite.Tx) error {
	before := tx.Now.Add(-keptGone).UnixMilli()
	if _, err := tx.Exec(`DELETE FROM push_forgotten WHERE forgotten_at < ?`, before); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM push_unregistered WHERE at < ?`, before)
	return err
}

// buryTx forgets a registration that the push service called dead, and has the
// authority forget it. A newer one of the same device stays.
func (t *Tokens) buryTx(tx *sqlite.Tx, dead Target) error {
	return t.lapseTx(tx, Lapsed{TokenSHA256: tokenHash(dead.Address), Registration: dead.registration})
}

func (t *Tokens) lapseTx(tx *sqlite.Tx, d Lapsed) error {
	row, found, err := sqlite.One(tx, scanRegistered, `SELECT `+registeredColumns+` FROM push_tokens WHERE registration = ?`, d.Registration[:])
	if err != nil || found && tokenHash(row.Token) != d.TokenSHA256 {
		return err
	}
	if found { // and with it what others had of the device before
		if _, err := forgetTx(tx, Forgotten{DeviceID: row.DeviceID, At: row.UpdatedAt}); err != nil {
			return err
		}
	}
	n, err := tx.Exec(`
		INSERT INTO push_unregistered (registration, token_sha256, at)
		VALUES (?, ?, ?)
		ON CONFLICT (registration) DO NOTHING`, d.Registration[:], d.TokenSHA256, tx.Millis())
	if found || n > 0 && !t.o.Authority {
		tx.AfterCommit(t.changed)
	}
	return err
}

// changed passes a change on.
func (t *Tokens) changed() {
	switch {
	case t.forward != nil:
		t.forward.Wake()
	case t.o.Authority && t.o.OnChange != nil:
		t.o.OnChange()
	}
}

// List returns the owner's devices.
func (t *Tokens) List(ctx context.Context, owner string) ([]Device, error) {
	rows, err := t.of(ctx, owner)
	var out []Device
	for _, r := range rows {
		out = append(out, r.device())
	}
	return out, err
}

// Targets returns where the owner can be rung now. It is the Targets of the route
// whose channel reaches devices.
func (t *Tokens) Targets(ctx context.Context, owner string) ([]Target, error) {
	rows, err := t.of(ctx, owner)
	var out []Target
	for _, r := range rows {
		out = append(out, Target{Address: r.Token, Platform: r.Platform, device: r.DeviceID, registration: r.Registration})
	}
	return out, err
}

func (t *Tokens) of(ctx context.Context, owner string) ([]Registered, error) {
	return sqlite.Read(ctx, t.db, func(tx *sqlite.Tx) ([]Registered, error) {
		return sqlite.All(tx, scanRegistered, `SELECT `+registeredColumns+` FROM push_tokens WHERE owner = ? ORDER BY device_id`, owner)
	})
}

// own refuses what is the authority's to do.
func (t *Tokens) own() error {
	if t.o.Authority {
		return nil
	}
	return fault.New(fault.Conflict, "push_tokens_live_elsewhere", "Push tokens live at the other node; this one copies them.")
}
