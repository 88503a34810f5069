package sync_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// However many entries come that are none, the list stays as long as somebody can read.
// What names a row is kept whatever else there is: another version may take it.
func TestOfEntriesThatNameNoRowTheNewestAreKept(t *testing.T) {
	local, _ := pair(t)
	var rows, strays []json.RawMessage
	for i := range 1500 {
		rows = append(rows, wire(t, map[string]any{"table": "later", "id": i + 1, "uid": sync.KeyedUID(fmt.Sprint(i))}))
		strays = append(strays, json.RawMessage(fmt.Sprintf(`{"a":%d}`, i)))
	}
	count := func(what string) int {
		return read[int](local, `SELECT count(*) FROM sync_quarantine WHERE `+what)
	}
	local.took(append(rows, strays[:900]...)...)
	equal(t, "strays", count(`tbl = ''`), 900)
	equal(t, "let go", local.log.LetGo(), int64(0))
	local.skew += time.Minute
	local.took(strays[900:]...)
	equal(t, "strays", count(`tbl = ''`), 1000)
	equal(t, "the newest among them", count(fmt.Sprint(`tbl = '' AND at > `, local.now().Add(30*time.Second).UnixMilli())), 600)
	equal(t, "rows", count(`tbl = 'later'`), 1500)
	equal(t, "let go", local.log.LetGo(), int64(500))

	local.skew += 2 * time.Hour
	equal(t, "taken", local.retry("p"), 0)
	equal(t, "after they were tried again", count(`tbl = ''`), 1000)
	local.write(func(tx *sqlite.Tx) error {
		n, err := local.log.DiscardKindTx(tx, sync.Malformed)
		equal(t, "discarded", n, int64(2500))
		return err
	})
	equal(t, "left", local.aside(), "")
}
