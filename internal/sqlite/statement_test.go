package sqlite_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

// S:54. The driver would store Go's own text for a time, which neither sorts nor
// parses everywhere.
func TestTimeIsNoArgument(t *testing.T) {
	kathmandu, err := time.LoadLocation("Asia/Kathmandu")
	must(t, err)
	now := time.Now().In(kathmandu)
	var none *time.Time
	for name, arg := range map[string]any{"a time": now, "a pointer to one": &now, "no time": none, "the zero time": time.Time{}} {
		t.Run(name, func(t *testing.T) {
			db := sqlitetest.Open(t, sqlite.Todos)
			for what, try := range map[string]func(*sqlite.Tx) error{
				"Exec": func(tx *sqlite.Tx) error {
					_, err := tx.Exec(`INSERT INTO applied (effect_key, answer, at) VALUES ('a', 'a', ?)`, arg)
					return err
				},
				"All": func(tx *sqlite.Tx) error {
					_, err := sqlite.All(tx, sqlite.Value[string], `SELECT ?`, arg)
					return err
				},
				"One": func(tx *sqlite.Tx) error {
					_, _, err := sqlite.One(tx, sqlite.Value[string], `SELECT ?`, arg)
					return err
				},
			} {
				if err := db.Write(t.Context(), try); err == nil {
					t.Error(what, "took it")
				}
			}
			equal(t, "what is there", keys(t, db), "")
		})
	}
}

// F6, S:55. Times are whole milliseconds since 1970, UTC, and order as numbers do.
func TestTimesOrderByTheirInstant(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	zone := time.FixedZone("", 2*3600)
	base := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
		for key, at := range map[string]time.Time{
			"1": base, "2": base.Add(500 * time.Millisecond).In(zone), "3": base.Add(time.Second), "0": base.Add(-time.Minute).In(zone),
		} {
			if _, err := tx.Exec(`INSERT INTO applied (effect_key, answer, at) VALUES (?, '', ?)`, key, *sqlite.MillisPtr(&at)); err != nil {
				return err
			}
		}
		return nil
	}))
	equal(t, "order", query[string](t, db, `SELECT group_concat(effect_key, '' ORDER BY at) FROM applied`), "0123")
	equal(t, "type", query[string](t, db, `SELECT group_concat(DISTINCT typeof(at)) FROM applied`), "integer")
	at := sqlite.Time(query[int64](t, db, `SELECT at FROM applied WHERE effect_key = '2'`))
	equal(t, "read back", at.String(), "2026-03-29 01:00:00.5 +0000 UTC")
	if sqlite.TimePtr(nil) != nil || sqlite.MillisPtr(nil) != nil || !sqlite.TimePtr(sqlite.MillisPtr(&at)).Equal(at) {
		t.Error("no time is not NULL, or a time is not itself")
	}
}

// A statement that runs is stepped where it stands when it is run again within its
// own scan: rows would be passed over without a word.
func TestQueryWithinAScanIsRefused(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	const numbers = `SELECT value FROM json_each('[1, 2, 3]')`
	within := func(tx *sqlite.Tx, q string) func(sqlite.Row) (int, error) {
		return func(r sqlite.Row) (int, error) {
			if _, err := sqlite.All(tx, sqlite.Value[int], q); err != nil {
				return 0, err
			}
			return sqlite.Value[int](r)
		}
	}
	for name, try := range map[string]func(tx *sqlite.Tx) error{
		"the same":     func(tx *sqlite.Tx) error { _, err := sqlite.All(tx, within(tx, numbers), numbers); return err },
		"another":      func(tx *sqlite.Tx) error { _, err := sqlite.All(tx, within(tx, `SELECT 1`), numbers); return err },
		"within One":   func(tx *sqlite.Tx) error { _, _, err := sqlite.One(tx, within(tx, numbers), numbers); return err },
		"Exec instead": func(tx *sqlite.Tx) error { return execWithin(tx, numbers) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := db.Write(t.Context(), try); err == nil {
				t.Error("it was let through")
			}
			must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error { // the next is not hindered
				all, err := sqlite.All(tx, sqlite.Value[int], numbers)
				equal(t, "rows", fmt.Sprint(all), "[1 2 3]")
				return err
			}))
		})
	}
}

func execWithin(tx *sqlite.Tx, q string) error {
	_, err := sqlite.All(tx, func(r sqlite.Row) (int, error) { return 1, put("a", "")(tx) }, q)
	return err
}

func TestStatementsBeyondThoseKeptAreStillRight(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	for range 3 {
		must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
			for i := range 300 { // more than a connection keeps
				n, _, err := sqlite.One(tx, sqlite.Value[int], fmt.Sprintf(`SELECT %d + ?`, i), i)
				if err != nil {
					return err
				}
				equal(t, "sum", n, 2*i)
			}
			return nil
		}))
	}
}

func TestOneTellsNoRowFromAnError(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, found, err := sqlite.One(tx, sqlite.Value[string], `SELECT answer FROM applied WHERE effect_key = 'none'`)
		if found || err != nil {
			t.Error("no row:", found, err)
		}
		if _, found, err := sqlite.One(tx, sqlite.Value[string], `SELECT nothing FROM nowhere`); found || err == nil {
			t.Error("no table:", found, err)
		}
		if _, found, err := sqlite.One(tx, sqlite.Value[int], `SELECT 'text'`); found || err == nil {
			t.Error("no number:", found, err)
		}
		_, err = sqlite.All(tx, func(sqlite.Row) (int, error) { return 0, errRefused }, `SELECT 1`)
		if !errors.Is(err, errRefused) {
			t.Error("refused by scan:", err)
		}
		return nil
	}))
}
