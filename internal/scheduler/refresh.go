package scheduler

import (
	"context"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// refresh derives every message anew: this build may know zones, rules and actions
// that the one before did not, and what was derived may have relied on a wrong
// clock. What is unchanged, which is nearly all, is only read.
func (s *Scheduler) refresh(ctx context.Context) error {
	const page = 500
	for after := (sync.Ref{Origin: -1}); ; {
		var stale []sync.UID
		read, err := sqlite.Read(ctx, s.db, func(tx *sqlite.Tx) ([]Message, error) {
			list, err := sqlite.All(tx, scan, selectMessage+`
				WHERE (origin, id) > (?, ?) AND deleted_at IS NULL
				ORDER BY origin, id
				LIMIT ?`, after.Origin, after.ID, page)
			if err == nil {
				err = s.store.table.homes(tx).fillAll(list)
			}
			if err == nil {
				stale, err = staleTx(tx, list)
			}
			return list, err
		})
		if err == nil && len(stale) > 0 {
			err = s.db.Write(ctx, func(tx *sqlite.Tx) error { return s.store.table.deriveTx(tx, stale) })
		}
		if err != nil || len(read) < page {
			return err
		}
		after = read[page-1].Ref
	}
}

// staleTx returns those whose next time is not what is written.
func staleTx(tx *sqlite.Tx, list []Message) (stale []sync.UID, err error) {
	for _, m := range list {
		next, err := nextTx(tx, m)
		if err != nil {
			return nil, err
		}
		if !sameTime(next, m.NextFireAt) {
			stale = append(stale, m.UID)
		}
	}
	return stale, nil
}

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}
