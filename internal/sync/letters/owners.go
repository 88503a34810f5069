package letters

import "tandem/internal/sqlite"

// MoveOwnersTx gives the letters of some owners to others, for each pair in moved:
// the accounts of a node that was alone become those of the node it joins.
func MoveOwnersTx(tx *sqlite.Tx, moved map[string]string) error {
	for from, to := range moved {
		for _, statement := range []string{
			`UPDATE letters_sent SET owner = ? WHERE owner = ?`,
			`UPDATE letters_parked SET owner = ? WHERE owner = ?`,
		} {
			if _, err := tx.Exec(statement, to, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// AdoptTx makes another node's file this one's: the letters in it are that node's to
// send. Those that have acted stay known, so that none acts again.
func AdoptTx(tx *sqlite.Tx) error {
	for _, statement := range []string{`DELETE FROM letters_sent`, `DELETE FROM letters_reader`, `DELETE FROM letters_parked`} {
		if _, err := tx.Exec(statement); err != nil {
			return err
		}
	}
	return nil
}
