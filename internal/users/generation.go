package users

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"tandem/internal/sqlite"
)

// generation names one state of the directory. Of the same incarnation, a start of
// the authority, the larger n is newer; of two incarnations nothing can be said but
// that they differ.
type generation struct {
	incarnation string
	n           uint64
}

// String is its form on the wire and in the file; empty before there is any.
func (g generation) String() string {
	if g == (generation{}) {
		return ""
	}
	return fmt.Sprintf("%s/%d", g.incarnation, g.n)
}

func parseGeneration(text string) (generation, bool) {
	incarnation, count, _ := strings.Cut(text, "/")
	n, err := strconv.ParseUint(count, 10, 63)
	g := generation{incarnation, n}
	return g, err == nil && incarnation != "" && len(text) <= 64 && g.String() == text
}

// includes reports whether g is other or came after it.
func (g generation) includes(other generation) bool {
	return g.incarnation == other.incarnation && g.n >= other.n
}

// Generation names the directory held here; empty where none has come yet. Two nodes
// of one name hold the same accounts.
func (s *Store) Generation(ctx context.Context) (string, error) {
	g, err := sqlite.Read(ctx, s.db, heldTx)
	return g.String(), err
}

func heldTx(tx *sqlite.Tx) (generation, error) {
	text, found, err := sqlite.One(tx, sqlite.Value[string], `SELECT generation FROM directory`)
	if err != nil || !found {
		return generation{}, err
	}
	g, ok := parseGeneration(text)
	if !ok {
		return g, fmt.Errorf("directory: %q is no generation", text)
	}
	return g, nil
}

// holdTx names the directory held. Own says that it is made here.
func holdTx(tx *sqlite.Tx, g generation, own bool) error {
	_, err := tx.Exec(`
		INSERT INTO directory (one, generation, own)
		VALUES (1, ?, ?)
		ON CONFLICT (one) DO UPDATE SET generation = excluded.generation, own = excluded.own`, g.String(), own)
	return err
}
