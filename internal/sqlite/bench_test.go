package sqlite_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sqlite/sqlitetest"
)

// BenchmarkWrite is one durable insert, by so many submitters at once.
func BenchmarkWrite(b *testing.B) {
	for _, submitters := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(submitters), func(b *testing.B) {
			db := sqlitetest.Open(b, sqlite.Todos)
			insert := func(tx *sqlite.Tx) error {
				_, err := tx.Exec(`INSERT INTO applied (effect_key, answer, at) VALUES (?, ?, ?)`, tx.NewID(), "some short text", tx.Millis())
				return err
			}
			if submitters == 1 {
				for b.Loop() {
					if err := db.Write(b.Context(), insert); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.SetParallelism(submitters / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := db.Write(b.Context(), insert); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkRead is one row by its key, in a snapshot and as a single statement.
func BenchmarkRead(b *testing.B) {
	db := sqlitetest.Open(b, sqlite.Todos)
	const rows = 1000
	err := db.Write(b.Context(), func(tx *sqlite.Tx) error {
		for i := range rows {
			if err := put(fmt.Sprint(i), "some short text")(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	const q = `SELECT answer FROM applied WHERE effect_key = ?`
	for name, read := range map[string]func(key string) (string, bool, error){
		"statement": func(key string) (string, bool, error) {
			return sqlite.ReadOne(b.Context(), db, sqlite.Value[string], q, key)
		},
		"snapshot": func(key string) (v string, found bool, err error) {
			_, err = sqlite.Read(b.Context(), db, func(tx *sqlite.Tx) (int, error) {
				v, found, err = sqlite.One(tx, sqlite.Value[string], q, key)
				return 0, err
			})
			return v, found, err
		},
	} {
		b.Run(name, func(b *testing.B) {
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, found, err := read(fmt.Sprint(n.Add(1) % rows)); !found || err != nil {
						b.Error(found, err)
						return
					}
				}
			})
		})
	}
}
