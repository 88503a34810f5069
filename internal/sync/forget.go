package sync

import "tandem/internal/sqlite"

// ForgetPeerTx forgets how far the peer and this log have read each other: a node
// that comes in its place reads, and is read, from the start.
func (l *Log) ForgetPeerTx(tx *sqlite.Tx) error {
	for _, statement := range []string{`DELETE FROM sync_cursors`, `DELETE FROM sync_tokens`, `DELETE FROM sync_marks`} {
		if _, err := tx.Exec(statement); err != nil {
			return err
		}
	}
	return nil
}
