package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// numbers are the last ones given out. They live in memory and are used on the
// writer alone: a number that went to a transaction which was rolled back is never
// given out again, which leaves a gap and costs nothing.
type numbers struct {
	seq int64
	ids map[string]int64 // of the rows made here, each table that counts
}

// countTx finds the last numbers in the file. A reader's cursor may stand behind a
// row that is no longer there, but never behind the last page that was issued.
func (l *Log) countTx(tx *sqlite.Tx) (numbers, error) {
	last := numbers{ids: map[string]int64{}}
	for _, t := range l.order {
		if t.Derived != nil {
			continue
		}
		id, err := t.highestTx(tx, l.origin)
		if err != nil {
			return last, err
		}
		last.ids[t.Name] = max(id, l.guard.fence.Floor[t.Name])
	}
	for _, table := range append(tableNames(l.order), FactsTable, "sync_tokens") {
		seq, _, err := sqlite.One(tx, sqlite.Value[int64], `SELECT coalesce(max(seq), 0) FROM `+table)
		if err != nil {
			return last, err
		}
		last.seq = max(last.seq, seq)
	}
	return last, nil
}

func (t *Table) highestTx(tx *sqlite.Tx, origin int64) (int64, error) {
	id, _, err := sqlite.One(tx, sqlite.Value[int64], `SELECT coalesce(max(id), 0) FROM `+t.Name+` WHERE origin = ?`, origin)
	return id, err
}

// seqTx gives out the next place in the order of the whole file.
func (l *Log) seqTx(tx *sqlite.Tx) int64 {
	l.last.seq++
	l.announceTx(tx)
	return l.last.seq
}

// announceTx has those who wait told once what was written is durable.
func (l *Log) announceTx(tx *sqlite.Tx) {
	if l.announced != tx {
		l.announced = tx
		tx.BeforeCommit(l.issueAhead)
		tx.AfterCommit(l.Announce)
	}
}

// errNoIDs is met only where somebody wrote a number near the end into the file.
var errNoIDs = fault.New(fault.Unavailable, "numbers_exhausted", "This node has no numbers left for new rows. Its database holds one that is far too high: restore a backup.")

// nextID gives out the next id of a table for a row made here. It stands in the
// fence before it is in a row.
func (l *Log) nextID(table string) (int64, error) {
	id := l.last.ids[table] + 1
	if id > maxID {
		return 0, errNoIDs.Because(errors.New(table))
	}
	if err := l.reserve(table, id); err != nil {
		return 0, fmt.Errorf("reserve ids of %s: %w", table, err)
	}
	l.last.ids[table] = id
	return id, nil
}

func (l *Log) reserve(table string, id int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guard.reserve(table, id)
}

func (l *Log) floor(table string, id int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guard.raise(table, id)
}

// Highest is the largest id of each origin in each table that counts its ids. The
// peer gives out none that is not above.
func (l *Log) Highest(ctx context.Context) (map[string][2]int64, error) {
	return sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (map[string][2]int64, error) {
		all := map[string][2]int64{}
		for _, t := range l.order {
			if t.Derived != nil {
				continue
			}
			var ids [2]int64
			for origin := range ids {
				id, err := t.highestTx(tx, int64(origin))
				if err != nil {
					return nil, err
				}
				ids[origin] = id
			}
			all[t.Name] = ids
		}
		return all, nil
	})
}

// Raise has ids begin above those that the peer has of this node: a file that was
// lost does not remember what it gave out. An id that cannot be is ignored.
func (l *Log) Raise(ctx context.Context, peer map[string][2]int64) error {
	return l.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, table := range slices.Sorted(maps.Keys(l.last.ids)) {
			id := l.last.ids[table]
			theirs := peer[table][l.origin]
			if theirs <= id || theirs > believedID {
				continue
			}
			if l.blind {
				theirs += gap(tx) // the peer may not have read the last ones either
			}
			if err := l.floor(table, theirs); err != nil {
				return err
			}
			l.last.ids[table] = theirs
		}
		return nil
	})
}

// End is the last place in the log.
func (l *Log) End(ctx context.Context) (int64, error) {
	return sqlite.Read(ctx, l.db, l.endTx)
}

func (l *Log) endTx(tx *sqlite.Tx) (end int64, err error) {
	for _, table := range append(tableNames(l.order), FactsTable) {
		seq, _, err := sqlite.One(tx, sqlite.Value[int64], `SELECT coalesce(max(seq), 0) FROM `+table)
		if err != nil {
			return 0, err
		}
		end = max(end, seq)
	}
	return end, nil
}

// Pending is how many entries of the log a reader with cursor has not read.
func (l *Log) Pending(ctx context.Context, cursor string) (int64, error) {
	l.pages.RLock()
	defer l.pages.RUnlock()
	return sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (n int64, err error) {
		from, _, err := l.positionTx(tx, cursor)
		if err != nil {
			return 0, err
		}
		for _, table := range append(tableNames(l.order), FactsTable) {
			some, _, err := sqlite.One(tx, sqlite.Value[int64], `SELECT count(*) FROM `+table+` WHERE seq > ?`, from)
			if err != nil {
				return 0, err
			}
			n += some
		}
		return n, nil
	})
}
