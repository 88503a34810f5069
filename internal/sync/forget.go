package sync

import "tandem/internal/sqlite"

// ForgetPeerTx forgets how far the peer's log was read: a node that comes in its
// place is read from the start. The tokens stay: if it is the same one that comes
// back, its cursor is as good as before.
func (l *Log) ForgetPeerTx(tx *sqlite.Tx) error {
	for _, statement := range []string{`DELETE FROM sync_cursors`, `DELETE FROM sync_marks`} {
		if _, err := tx.Exec(statement); err != nil {
			return err
		}
	}
	tx.AfterCommit(l.next.forget)
	return nil
}
