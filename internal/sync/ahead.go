package sync

import (
	"context"
	"fmt"
	"sync/atomic"

	"tandem/internal/sqlite"
)

// ahead remembers whether rows may be here that say they were written more than a day
// from now. It is above 0 from the start until somebody has looked and found none, and
// where one came since: to look through all rows each time that somebody asks would cost
// more than the answer is worth.
type ahead struct{ seen atomic.Int64 }

func (a *ahead) note() { a.seen.Add(1) }

// Ahead is how many rows say that they were written more than a day from now. They are
// taken like all others, and an edit of theirs wins over them; a clock was wrong
// somewhere. The number falls as the time comes that they name.
func (l *Log) Ahead(ctx context.Context) (n int64, err error) {
	seen := l.ahead.seen.Load()
	if seen == 0 {
		return 0, nil
	}
	n, err = sqlite.Read(ctx, l.db, l.aheadTx)
	if err == nil && n == 0 {
		l.ahead.seen.CompareAndSwap(seen, 0) // unless one came meanwhile
	}
	return n, err
}

func (l *Log) aheadTx(tx *sqlite.Tx) (n int64, err error) {
	for _, t := range l.order {
		some, _, err := sqlite.One(tx, sqlite.Value[int64], `SELECT count(*) FROM `+t.Name+` WHERE updated_at > ?`, tx.Millis()+day)
		if err != nil {
			return 0, err
		}
		n += some
	}
	return n, nil
}

// AheadInWords tells people of so many rows; of none it says nothing.
func AheadInWords(n int64) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "One entry says that it was written more than a day from now: a clock was wrong."
	}
	return fmt.Sprintf("%d entries say that they were written more than a day from now: a clock was wrong.", n)
}
