package letters

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"tandem/internal/sqlite"
)

const (
	// PageBytes is where the letters of one call end however few they are.
	PageBytes = 1 << 20
	// kept is how long a letter stays after its ack, and a parked one after that.
	kept = 30 * 24 * time.Hour
)

// Options say what a node does with the letters of the other.
type Options struct {
	// Handle does what a letter is for, in the transaction that notes its key. What
	// it returns decides whether the letter is parked: see Box.Receive. Nil knows no kind.
	Handle func(tx *sqlite.Tx, l Letter) error

	OnChange func() // called after each commit that leaves a letter to be read; nil: nobody waits
}

// Box is the letters of one file: those that this node sends, and those that it has
// taken from the other. Its methods may be called from many goroutines.
type Box struct {
	db *sqlite.DB
	Options
	reopened atomic.Bool // what the version before did not know has been tried
}

// NewBox returns the letters of a todos file.
func NewBox(db *sqlite.DB, o Options) *Box {
	if o.Handle == nil {
		o.Handle = func(*sqlite.Tx, Letter) error { return ErrUnknownKind }
	}
	if o.OnChange == nil {
		o.OnChange = func() {}
	}
	return &Box{db: db, Options: o}
}

// SendTx has a letter wait for the other node. A second one of the same key is the
// same letter, and is not sent.
func (b *Box) SendTx(tx *sqlite.Tx, l Letter) error {
	if err := l.check(); err != nil {
		return err
	}
	n, err := tx.Exec(`
		INSERT INTO letters_sent (key, owner, kind, body) VALUES (?, ?, ?, ?)
		ON CONFLICT (key) DO NOTHING`, l.Key, l.Owner, l.Kind, string(l.Body))
	if n > 0 {
		tx.AfterCommit(b.OnChange)
	}
	return err
}

// Oldest returns the letters that were not acked, oldest first: at most limit, and
// fewer where they are large. Where there are more, each owner has his turn, since an
// owner whose letters the reader cannot take yet would else fill every call. One that
// cannot be sent is parked. After names the last letter that the reader has acked: it
// goes with these, since a reader that does not know it has lost letters.
func (b *Box) Oldest(ctx context.Context, limit int) (letters []Letter, after string, err error) {
	var bad []int64
	after, err = sqlite.Read(ctx, b.db, func(tx *sqlite.Tx) (string, error) {
		places, err := nextTx(tx, limit)
		for _, n := range places {
			l, _, err := sqlite.One(tx, scanLetter, selectSent, n)
			switch {
			case err != nil:
				return "", err
			case l.check() != nil:
				bad = append(bad, n)
			default:
				letters = append(letters, l)
			}
		}
		if err != nil {
			return "", err
		}
		return lastTx(tx)
	})
	if err != nil || len(bad) == 0 {
		return letters, after, err
	}
	return letters, after, b.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, n := range bad {
			if err := parkSentTx(tx, n); err != nil {
				return err
			}
		}
		return nil
	})
}

const selectSent = `SELECT key, owner, kind, body FROM letters_sent WHERE n = ?`

func scanLetter(r sqlite.Row) (l Letter, err error) {
	var body []byte
	err = r.Scan(&l.Key, &l.Owner, &l.Kind, &body)
	l.Body = body
	return l, err
}

// Next returns the key of the oldest letter that waits; empty: none does.
func (b *Box) Next(ctx context.Context) (string, error) {
	key, _, err := sqlite.ReadOne(ctx, b.db, sqlite.Value[string], selectNext)
	return key, err
}

const selectNext = `
	SELECT key FROM letters_sent WHERE n = (
		SELECT min((SELECT min(n) FROM letters_sent WHERE owner = w.owner AND acked_at IS NULL))
		FROM (` + selectWaiting + `) AS w)`

// selectTurns are the letters of one owner, oldest first.
const selectTurns = `
	SELECT n, octet_length(body)
	FROM letters_sent
	WHERE owner = ? AND acked_at IS NULL
	ORDER BY n
	LIMIT ?`

// selectWaiting finds the owners of letters that wait by one step in the index for each,
// however many letters each has.
const selectWaiting = `
	WITH RECURSIVE waiting (owner) AS (
		SELECT min(owner) FROM letters_sent WHERE acked_at IS NULL
		UNION ALL
		SELECT (SELECT min(owner) FROM letters_sent WHERE acked_at IS NULL AND owner > waiting.owner)
		FROM waiting
		WHERE owner IS NOT NULL)
	SELECT owner FROM waiting WHERE owner IS NOT NULL`

// nextTx returns which letters go into a call, in their order: of each owner the
// oldest, then of each the next.
func nextTx(tx *sqlite.Tx, limit int) ([]int64, error) {
	owners, err := sqlite.All(tx, sqlite.Value[string], selectWaiting)
	if err != nil {
		return nil, err
	}
	type waiting struct{ turn, n, size int64 }
	var all []waiting
	for _, owner := range owners {
		turn := int64(0)
		some, err := sqlite.All(tx, func(r sqlite.Row) (waiting, error) {
			turn++
			w := waiting{turn: turn}
			return w, r.Scan(&w.n, &w.size)
		}, selectTurns, owner, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.n, b.n)) })
	var places []int64
	var size int64
	for i, w := range all[:min(limit, len(all))] {
		if size += w.size; i > 0 && size > PageBytes {
			break
		}
		places = append(places, w.n)
	}
	slices.Sort(places)
	return places, nil
}

// parkSentTx parks a letter of this node that cannot be sent: it was written by
// something else than SendTx.
func parkSentTx(tx *sqlite.Tx, n int64) error {
	l, found, err := sqlite.One(tx, scanLetter, selectSent, n)
	if err != nil || !found {
		return err
	}
	if err := parkTx(tx, l, l.check()); err != nil {
		return err
	}
	_, err = tx.Exec(`DELETE FROM letters_sent WHERE n = ?`, n)
	return err
}

// Acked has the letters of these keys wait no more. After is what Oldest returned
// with them: acks that follow upon another letter than the last one are void. They may
// be of a call from long ago, and the reader may have lost since what it acked then.
func (b *Box) Acked(ctx context.Context, after string, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return b.db.Write(ctx, func(tx *sqlite.Tx) error {
		if last, err := lastTx(tx); err != nil || last != after {
			return err
		}
		for _, key := range keys {
			if _, err := tx.Exec(`UPDATE letters_sent SET acked_at = ? WHERE key = ? AND acked_at IS NULL`, tx.Millis(), key); err != nil {
				return err
			}
		}
		return setLastTx(tx, short(keys[len(keys)-1]))
	})
}

// OfferAgain has the reader be offered all that is still here: it does not know after,
// so its file was put back to before it took that. Where after is not the last letter
// any more, this was said long ago and means nothing.
func (b *Box) OfferAgain(ctx context.Context, after string) error {
	return b.db.Write(ctx, func(tx *sqlite.Tx) error {
		if last, err := lastTx(tx); err != nil || last != after {
			return err
		}
		n, err := tx.Exec(`UPDATE letters_sent SET acked_at = NULL WHERE acked_at IS NOT NULL`)
		if n > 0 {
			tx.AfterCommit(b.OnChange)
		}
		if err != nil {
			return err
		}
		return setLastTx(tx, "")
	})
}

// lastTx names the letter that the reader acked last; empty: none.
func lastTx(tx *sqlite.Tx) (string, error) {
	last, _, err := sqlite.One(tx, sqlite.Value[string], `SELECT last FROM letters_reader`)
	return last, err
}

func setLastTx(tx *sqlite.Tx, last string) error {
	_, err := tx.Exec(`INSERT INTO letters_reader (one, last) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET last = excluded.last`, last)
	return err
}

// PurgeTx forgets letters 30 days after their ack, and parked ones after 30 days, a
// bounded number at a time, and reports whether there may be more. That a letter was
// taken is never forgotten, and one that waits stays, however old it is.
func PurgeTx(tx *sqlite.Tx) (bool, error) {
	const some = 200
	before := tx.Now.Add(-kept).UnixMilli()
	acked, err := tx.Exec(`
		DELETE FROM letters_sent WHERE n IN (
			SELECT n FROM letters_sent WHERE acked_at <= ? ORDER BY acked_at LIMIT ?)`, before, some)
	if err != nil {
		return false, err
	}
	parked, err := tx.Exec(`
		DELETE FROM letters_parked WHERE n IN (
			SELECT n FROM letters_parked WHERE parked_at <= ? ORDER BY parked_at LIMIT ?)`, before, some)
	return acked == some || parked == some, err
}
