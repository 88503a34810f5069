package push

import (
	"tandem/internal/sqlite"
)

// restored is why a notice is not tried again that was waiting in a file which came
// from a backup: whether it was sent since the backup, that file cannot know.
const restored = "restored"

// parkTx takes every notice that is not done out of the queue as one that may have
// happened, and returns how many there were. It is for a file that comes from a
// backup or from another node, before anything is sent from it. Dead lists them.
func parkTx(tx *sqlite.Tx) (int, error) {
	const waiting = `next_attempt_at IS NOT NULL`
	if _, err := tx.Exec(`
		INSERT INTO delivery_events (intent_id, from_state, to_state, channel, code, at)
		SELECT id, state, 'unknown', channel, ?, ?
		FROM delivery_intents
		WHERE `+waiting+`
		ORDER BY created_at, id`, restored, tx.Millis()); err != nil {
		return 0, err
	}
	n, err := tx.Exec(`
		UPDATE delivery_intents
		SET state = 'unknown', code = ?, next_attempt_at = NULL, lease_token = NULL, lease_until = 0
		WHERE `+waiting, restored)
	return int(n), err
}

// StartOverTx is parkTx and ForgetGenerationTx.
func StartOverTx(tx *sqlite.Tx) (parked int, err error) {
	if err := ForgetGenerationTx(tx); err != nil {
		return 0, err
	}
	return parkTx(tx)
}

// ForgetGenerationTx forgets which state of the authority's set is here, so that whatever
// comes next is copied whole.
func ForgetGenerationTx(tx *sqlite.Tx) error {
	_, err := tx.Exec(`UPDATE push_tokens_held SET generation = ''`)
	return err
}

// MoveOwnersTx has the devices, chats and notices of an owner in moved be the account's there.
// At the authority too: it may have been told of devices of accounts that it did not
// know, and of one registration with two owners it would keep its own.
func MoveOwnersTx(tx *sqlite.Tx, moved map[string]string) error {
	for from, to := range moved {
		for _, statement := range []string{
			`UPDATE push_tokens SET owner = ? WHERE owner = ?`,
			`UPDATE delivery_intents SET owner = ? WHERE owner = ?`,
			`UPDATE OR REPLACE push_forgotten SET owner = ? WHERE owner = ?`,
			`UPDATE push_chats SET owner = ? WHERE owner = ?`,
		} {
			if _, err := tx.Exec(statement, to, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// JoinTx makes the devices and notices of this node those of a pair: it moves them as
// MoveOwnersTx does, and every device is told to the authority as if it had just been
// registered here.
func (t *Tokens) JoinTx(tx *sqlite.Tx, moved map[string]string) error {
	if err := MoveOwnersTx(tx, moved); err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE push_tokens SET pending_at = ? WHERE pending_at IS NULL`, tx.Millis()); err != nil {
		return err
	}
	tx.AfterCommit(t.changed)
	return ForgetGenerationTx(tx)
}
