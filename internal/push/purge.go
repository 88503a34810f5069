package push

import (
	"time"

	"tandem/internal/sqlite"
)

// keptSettled is how long a notice that is done is kept, with its text and its
// account. No occurrence of that age rings, so none can come again under its fire.
const keptSettled = 90 * 24 * time.Hour

// PurgeTx forgets notices that are done and were made longer ago than that, a
// bounded number at a time so that others may write in between, and reports whether
// there may be more. What is still tried stays, whatever its age.
func PurgeTx(tx *sqlite.Tx) (bool, error) {
	const some = 200 // and with each its targets and events
	n, err := tx.Exec(`
		DELETE FROM delivery_intents WHERE id IN (
			SELECT id
			FROM delivery_intents
			WHERE next_attempt_at IS NULL AND created_at <= ?
			ORDER BY created_at
			LIMIT ?)`, tx.Now.Add(-keptSettled).UnixMilli(), some)
	return n == some, err
}
