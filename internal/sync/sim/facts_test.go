package sim

import (
	"fmt"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// tellFact has a node tell what happened; now and then the same event once more.
func (w *world) tellFact() {
	n := w.pick()
	subject, key := fmt.Sprint("fire", w.rand.IntN(6)), fmt.Sprint(w.rand.IntN(2))
	var isNew bool
	n.write(func(tx *sqlite.Tx) (err error) {
		isNew, err = n.log.FactTx(tx, "attempt", subject, "ann", key, map[string]any{"channel": "push", "at": tx.Millis()})
		return err
	})
	n.ought.facts[sync.KeyedUID("attempt", subject, n.name, key)] = true
	w.count.written++
	w.tell("%s tells the fact %s/%s: new %v", n, subject, key, isNew)
}
