package sqlite_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

func TestIDsSortByTimeAndAreUniqueWithinAMillisecond(t *testing.T) {
	inBubble(t, func(t *testing.T, db *sqlite.DB) {
		var ids []string
		for range 20 {
			must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
				for range 100 { // all of one millisecond
					ids = append(ids, tx.NewID())
				}
				return nil
			}))
			if len(ids)%200 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		equal(t, "in order", slices.IsSorted(ids), true)
		equal(t, "different", len(slices.Compact(slices.Clone(ids))), 2000)
		for _, id := range ids {
			equal(t, "length of "+id, len(id), 26)
		}
	})
}

func TestIDsStayDifferentWhenTheClockIsSetBack(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := options(tempFile(t))
	o.Now = func() time.Time { return now }
	db := open(t, o)
	seen := map[string]bool{}
	for i := range 200 {
		now = now.Add(time.Duration(i%3-1) * time.Minute)
		must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
			id := tx.NewID()
			equal(t, id+" was there before", seen[id], false)
			seen[id] = true
			return nil
		}))
	}
}

func TestReadHasNoIDsToGive(t *testing.T) {
	db := sqlitetest.Open(t, sqlite.Todos)
	defer func() {
		if recover() == nil {
			t.Error("it gave one that others would be given too")
		}
	}()
	_, _ = sqlite.Read(t.Context(), db, func(tx *sqlite.Tx) (string, error) { return tx.NewID(), nil })
}

func TestTransactionHasOneTimeInWholeMillisecondsUTC(t *testing.T) {
	zone := time.FixedZone("", 5*3600+45*60)
	now := time.Date(2026, 3, 1, 12, 0, 0, 123_456_789, zone)
	o := options(tempFile(t))
	o.Now = func() time.Time { now = now.Add(time.Hour); return now }
	db := open(t, o)
	must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error {
		equal(t, "zone", tx.Now.Location(), time.UTC)
		equal(t, "below the millisecond", tx.Now.Nanosecond()%1e6, 0)
		equal(t, "the same as text for SQL", sqlite.Time(tx.Millis()), tx.Now)
		return nil
	}))
	equal(t, "outside", db.Now().Nanosecond()%1e6, 0)
}

func TestRandomnessComesFromTheStoreAlone(t *testing.T) {
	draw := func() (b []byte) {
		db := sqlitetest.Open(t, sqlite.Todos)
		must(t, db.Write(t.Context(), func(tx *sqlite.Tx) error { b = tx.Random(16); return nil }))
		return b
	}
	a, b := draw(), draw()
	if !bytes.Equal(a, b) || bytes.Equal(a, make([]byte, 16)) {
		t.Fatalf("%x, %x", a, b)
	}
}
