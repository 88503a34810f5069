package sync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// Why an entry is set aside.
const (
	Malformed   = "malformed"   // not an entry of this protocol, or of a table that this version does not know
	Refused     = "refused"     // the file does not take it
	IDReuse     = "id_reuse"    // its key belongs to another row here, until it comes under another one
	HeldDelete  = "held_delete" // one of more deletes at once than a person is thought to mean
	Unencodable = "unencodable" // this file's own: it cannot be sent
)

// Quarantined is an entry that was set aside, so that all others go on. It does not
// hold what the entry says.
type Quarantined struct {
	Table     string `json:"table"`
	Ref       Ref    `json:"-"`
	UID       UID    `json:"uid"`
	Owner     string `json:"-"`
	Kind      string `json:"kind"`
	Reason    string `json:"reason"` // for people
	UpdatedAt int64  `json:"updated_at"`
	At        int64  `json:"at"` // when it was set aside

	entry json.RawMessage // as it came; nil for this file's own
}

// ErrNotQuarantined is returned for an entry that is not set aside, or not any more.
var ErrNotQuarantined = fault.New(fault.NotFound, "not_quarantined", "That entry is not in quarantine.")

// retryEvery is how often an entry that was set aside is tried again.
const retryEvery = time.Hour

// aside is what quarantine keeps of a row.
func (r *Row) aside(kind string, why error) *Quarantined {
	return &Quarantined{Table: r.Table, Ref: r.Ref, UID: r.UID, Owner: r.Owner, Kind: kind, Reason: why.Error(), UpdatedAt: r.UpdatedAt}
}

func (f *Fact) aside(kind string, why error) *Quarantined {
	return &Quarantined{Table: FactsTable, Ref: Ref{Origin: -1}, UID: f.UID, Owner: f.Owner, Kind: kind, Reason: why.Error(), UpdatedAt: f.At}
}

// unreadable is what quarantine keeps of an entry that cannot be read: whatever of
// it can.
func unreadable(raw json.RawMessage, why error) *Quarantined {
	var head struct {
		Table     string `json:"table"`
		Origin    int64  `json:"origin"`
		ID        int64  `json:"id"`
		UID       string `json:"uid"`
		Owner     string `json:"owner"`
		UpdatedAt int64  `json:"updated_at"`
		At        int64  `json:"at"`
	}
	_ = json.Unmarshal(raw, &head)
	q := &Quarantined{
		Table: head.Table, Ref: Ref{head.Origin, head.ID}, Owner: head.Owner, Kind: Malformed, Reason: why.Error(),
		UpdatedAt: max(head.UpdatedAt, head.At), entry: raw,
	}
	if q.UID.UnmarshalText([]byte(head.UID)) != nil || q.UID == (UID{}) {
		q.UID, q.Ref = KeyedUID("unreadable", string(raw)), noRow
	}
	if !plain(q.Table) || !plain(q.Owner) {
		q.Table, q.Owner = "", ""
	}
	return q
}

// noRow is the key of an entry that names no row and no fact. No version to come takes
// one, so that not all of them need be kept.
var noRow = Ref{Origin: -1}

// strayMost is how many of them are kept: enough to find out who sends them.
const strayMost = 1000

// setBadAside keeps entries of a page that could not be read. Of those that name no row
// only the newest stay; the others are counted.
func (l *Log) setBadAside(tx *sqlite.Tx, bad []*Quarantined, peerVersion string) error {
	stray := false
	for _, q := range bad {
		stray = stray || q.Ref == noRow
		if err := l.setAsideTx(tx, q, peerVersion); err != nil {
			return err
		}
	}
	if !stray {
		return nil
	}
	n, err := tx.Exec(`
		DELETE FROM sync_quarantine
		WHERE kind = 'malformed' AND origin = ? AND (at, uid) < (
			SELECT at, uid FROM sync_quarantine
			WHERE kind = 'malformed' AND origin = ?
			ORDER BY at DESC, uid DESC
			LIMIT 1 OFFSET ?)`, noRow.Origin, noRow.Origin, strayMost-1)
	tx.AfterCommit(func() { l.letGo.Add(n) })
	return err
}

// LetGo is how many entries that name no row were not kept, since the start: there were
// too many of them.
func (l *Log) LetGo() int64 { return l.letGo.Load() }

// setAside keeps entries of this file that cannot be sent.
func (l *Log) setAside(ctx context.Context, bad []*Quarantined) error {
	if len(bad) == 0 {
		return nil
	}
	return l.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, q := range bad {
			if err := l.setAsideTx(tx, q, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// setAsideTx keeps an entry, unless a newer version of it is kept. One that was kept
// before keeps its times, but for one that is being tried again.
func (l *Log) setAsideTx(tx *sqlite.Tx, q *Quarantined, peerVersion string) error {
	l.aside++
	l.recountTx(tx)
	entry := q.entry
	if entry == nil {
		entry = json.RawMessage{}
	}
	now, at := tx.Millis(), min(q.UpdatedAt, lastClock) // so that an edit that mends it is later
	_, err := tx.Exec(`
		INSERT INTO sync_quarantine (tbl, uid, kind, reason, origin, id, owner, updated_at, entry, at, retry_at, versions)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (tbl, uid) DO UPDATE SET kind = excluded.kind, reason = excluded.reason, origin = excluded.origin, id = excluded.id,
			owner = excluded.owner, updated_at = excluded.updated_at, entry = excluded.entry, retry_at = excluded.retry_at,
			versions = excluded.versions
		WHERE excluded.updated_at > updated_at OR excluded.updated_at = updated_at AND (retry_at = -1 OR kind <> excluded.kind)`,
		q.Table, q.UID[:], q.Kind, q.Reason, q.Ref.Origin, q.Ref.ID, q.Owner, at, []byte(entry), now, now+retryEvery.Milliseconds(), l.versions(peerVersion))
	return err
}

// versions are those of both nodes; empty is what the peer last said of itself.
func (l *Log) versions(peer string) string {
	if heard, ok := l.heard.Load().(string); ok && peer == "" {
		peer = heard
	}
	return l.version + " " + peer
}

// clearTx forgets what was set aside of a row whose version is here by now.
func (l *Log) clearTx(tx *sqlite.Tx, table string, uid UID, at int64) error {
	if l.aside == 0 {
		return nil
	}
	n, err := tx.Exec(`DELETE FROM sync_quarantine WHERE tbl = ? AND uid = ? AND updated_at <= ?`, table, uid[:], at)
	if n > 0 {
		l.recountTx(tx)
	}
	return err
}

// clearCameTx is clearTx but for what is this file's own: that an older version came
// from the peer does not say that the one here can be sent.
func (l *Log) clearCameTx(tx *sqlite.Tx, table string, uid UID, at int64) error {
	if l.aside == 0 {
		return nil
	}
	n, err := tx.Exec(`DELETE FROM sync_quarantine WHERE tbl = ? AND uid = ? AND updated_at <= ? AND kind <> 'unencodable'`, table, uid[:], at)
	if n > 0 {
		l.recountTx(tx)
	}
	return err
}

const quarantineColumns = `tbl, coalesce(origin, -1), coalesce(id, 0), uid, owner, kind, reason, updated_at, at, entry`

func scanQuarantined(r sqlite.Row) (q Quarantined, err error) {
	var entry []byte
	err = r.Scan(&q.Table, &q.Ref.Origin, &q.Ref.ID, &q.UID, &q.Owner, &q.Kind, &q.Reason, &q.UpdatedAt, &q.At, &entry)
	q.entry = entry
	return q, err
}

// QuarantinePlace is where an entry stands in the list, oldest first. The zero value
// is the start.
type QuarantinePlace struct {
	At    int64
	Table string
	UID   UID
}

// Quarantine returns what is set aside, oldest first, at most limit entries.
func (l *Log) Quarantine(ctx context.Context, limit int) ([]Quarantined, error) {
	return l.QuarantineAfter(ctx, QuarantinePlace{}, limit)
}

// QuarantineAfter is Quarantine from a place on.
func (l *Log) QuarantineAfter(ctx context.Context, after QuarantinePlace, limit int) ([]Quarantined, error) {
	return sqlite.ReadAll(ctx, l.db, scanQuarantined, `
		SELECT `+quarantineColumns+` FROM sync_quarantine
		WHERE (at, tbl, uid) > (?, ?, ?)
		ORDER BY at, tbl, uid
		LIMIT ?`, after.At, after.Table, after.UID[:], limit)
}

// QuarantinedTx returns one entry, or ErrNotQuarantined.
func (l *Log) QuarantinedTx(tx *sqlite.Tx, table string, uid UID) (Quarantined, error) {
	q, found, err := sqlite.One(tx, scanQuarantined, `SELECT `+quarantineColumns+` FROM sync_quarantine WHERE tbl = ? AND uid = ?`, table, uid[:])
	if err == nil && !found {
		err = ErrNotQuarantined
	}
	return q, err
}

// AsideAmong returns which of some rows or facts of a table are set aside.
func (l *Log) AsideAmong(ctx context.Context, table string, uids []UID) ([]UID, error) {
	list, err := json.Marshal(uids)
	if err != nil {
		return nil, err
	}
	return sqlite.ReadAll(ctx, l.db, sqlite.Value[UID], `
		SELECT uid FROM sync_quarantine
		WHERE tbl = ? AND uid IN (SELECT unhex(value) FROM json_each(?))`, table, string(list))
}

// QuarantineCounts returns how many entries are set aside, by kind. It is known without a
// look at the file.
func (l *Log) QuarantineCounts() map[string]int { return maps.Clone(*l.counts.Load()) }

// recountTx has what is set aside counted once more as the transaction ends, if it does.
func (l *Log) recountTx(tx *sqlite.Tx) {
	tx.BeforeCommit(func(tx *sqlite.Tx) error {
		if l.recounted == tx {
			return nil
		}
		counts, err := countsTx(tx)
		if err == nil {
			l.recounted = tx
			tx.AfterCommit(func() { l.counts.Store(&counts) })
		}
		return err
	})
}

func countsTx(tx *sqlite.Tx) (map[string]int, error) {
	type count struct {
		kind string
		n    int
	}
	counts, err := sqlite.All(tx, func(r sqlite.Row) (c count, err error) { return c, r.Scan(&c.kind, &c.n) },
		`SELECT kind, count(*) FROM sync_quarantine GROUP BY kind`)
	all := map[string]int{}
	for _, c := range counts {
		all[c.kind] = c.n
	}
	return all, err
}

// DiscardTx forgets an entry for good: the row stays as it is here.
func (l *Log) DiscardTx(tx *sqlite.Tx, q Quarantined) error {
	tx.AfterCommit(l.Announce) // the people of the other node read of it too
	l.recountTx(tx)
	_, err := tx.Exec(`DELETE FROM sync_quarantine WHERE tbl = ? AND uid = ?`, q.Table, q.UID[:])
	return err
}

// DiscardKindTx is DiscardTx for all that is set aside for one reason, and returns how
// many entries that were.
func (l *Log) DiscardKindTx(tx *sqlite.Tx, kind string) (int64, error) {
	tx.AfterCommit(l.Announce)
	l.recountTx(tx)
	return tx.Exec(`DELETE FROM sync_quarantine WHERE kind = ?`, kind)
}

// QuarantineOwn sets aside an entry of this file that the peer takes in no size.
func (l *Log) QuarantineOwn(ctx context.Context, entry json.RawMessage, reason string) error {
	q := unreadable(entry, errors.New(reason))
	q.Kind, q.entry = Unencodable, nil
	return l.setAside(ctx, []*Quarantined{q})
}

// Retry tries again what was set aside more than an hour ago, or under other versions
// of the two nodes, and returns how many entries were taken. Without a peer's version
// it is the one that was named last.
func (l *Log) Retry(ctx context.Context, peerVersion string) (taken int, err error) {
	if peerVersion != "" {
		l.heard.Store(peerVersion)
	}
	due := func(tx *sqlite.Tx) ([]Quarantined, error) {
		return sqlite.All(tx, scanQuarantined, `
			SELECT `+quarantineColumns+` FROM sync_quarantine
			WHERE kind <> 'held_delete' AND (retry_at <= ? OR versions <> ?)
			ORDER BY at, tbl, uid
			LIMIT 500`, tx.Millis(), l.versions(peerVersion))
	}
	if some, err := sqlite.Read(ctx, l.db, due); err != nil || len(some) == 0 {
		return 0, err // nearly always: the writer has not been asked
	}
	err = l.db.Write(ctx, func(tx *sqlite.Tx) error {
		all, err := due(tx)
		if err != nil {
			return err
		}
		taken, err = l.retryTx(tx, all, peerVersion)
		return err
	})
	return taken, err
}

// RetryOneTx tries one entry again now. It reports whether it was taken, and returns
// the entry as it is set aside if not.
func (l *Log) RetryOneTx(tx *sqlite.Tx, q Quarantined) (left Quarantined, taken bool, err error) {
	if _, err := l.retryTx(tx, []Quarantined{q}, ""); err != nil {
		return q, false, err
	}
	left, err = l.QuarantinedTx(tx, q.Table, q.UID)
	if errors.Is(err, ErrNotQuarantined) {
		return q, true, nil
	}
	return left, false, err
}

// retryTx applies entries again. What fails again is set aside again; what is left
// marked afterwards was taken.
func (l *Log) retryTx(tx *sqlite.Tx, due []Quarantined, peerVersion string) (taken int, err error) {
	before, err := countAside(tx)
	if err != nil {
		return 0, err
	}
	var again []json.RawMessage
	for _, q := range due {
		if _, err := tx.Exec(`UPDATE sync_quarantine SET retry_at = -1 WHERE tbl = ? AND uid = ?`, q.Table, q.UID[:]); err != nil {
			return 0, err
		}
		if q.Kind != Unencodable {
			again = append(again, q.entry)
		} else if err := l.resendTx(tx, q, peerVersion); err != nil {
			return 0, err
		}
	}
	if err := l.applyTx(tx, l.Decode(again), peerVersion, false); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(`DELETE FROM sync_quarantine WHERE retry_at = -1`); err != nil {
		return 0, err
	}
	after, err := countAside(tx)
	if err == nil {
		l.aside = after
	}
	l.recountTx(tx)
	return before - after, err
}

func countAside(tx *sqlite.Tx) (int, error) {
	n, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM sync_quarantine`)
	return n, err
}

// resendTx gives an entry of this file a new place in the log if it can be sent by
// now: the reader may have passed the place it had. Its stamp stays.
func (l *Log) resendTx(tx *sqlite.Tx, q Quarantined, peerVersion string) error {
	table, scan, byUID := FactsTable, factEntry, `SELECT `+factColumns+` FROM facts WHERE uid = ?`
	if t := l.tables[q.Table]; t != nil {
		table, scan, byUID = t.Name, t.entries(), t.byUID
	}
	e, found, err := sqlite.One(tx, scan, byUID, q.UID[:])
	switch {
	case err != nil:
		return err
	case found && e.bad != nil:
		return l.setAsideTx(tx, e.bad, peerVersion)
	case found:
		if _, err := tx.Exec(`UPDATE `+table+` SET seq = ? WHERE uid = ?`, l.seqTx(tx), q.UID[:]); err != nil {
			return fmt.Errorf("send %s again: %w", table, err)
		}
	}
	return nil
}
