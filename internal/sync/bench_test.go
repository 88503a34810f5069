package sync_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"tandem/internal/sync"
)

// full returns a page of new rows, and one of newer versions of them.
func full(b *testing.B, round int) (made, edited []json.RawMessage) {
	for i := range sync.PageRows {
		row := map[string]any{
			"id": round*sync.PageRows + i + 1, "uid": sync.KeyedUID(fmt.Sprint(round, "-", i)), "content": "Water the plants on the balcony",
			"notes": "The can is behind the door.", "due_at": 1_900_000_000_000, "tz": "Europe/Berlin",
		}
		made = append(made, wire(b, row))
		row["updated_at"], row["done"] = 2000, true
		edited = append(edited, wire(b, row))
	}
	return made, edited
}

// BenchmarkApply is one row of a full page that is new, newer, or not news.
func BenchmarkApply(b *testing.B) {
	for _, kind := range []string{"insert", "update", "stale"} {
		b.Run(kind, func(b *testing.B) {
			n := newNode(b, "local", 0)
			apply := func(page []json.RawMessage) {
				if _, err := n.log.Apply(b.Context(), "cloud", "", "", page); err != nil {
					b.Fatal(err)
				}
			}
			rows := 0
			for round := 0; rows < b.N; round++ {
				b.StopTimer()
				page, edited := full(b, round)
				if kind != "insert" {
					apply(page)
					page = edited
				}
				if kind == "stale" {
					apply(page)
				}
				b.StartTimer()
				apply(page)
				rows += len(page)
			}
		})
	}
}

// BenchmarkPage is one row of a page that is served, as long as a page may be.
func BenchmarkPage(b *testing.B) {
	n := newNode(b, "local", 0)
	made, _ := full(b, 0)
	if _, err := n.log.Apply(b.Context(), "cloud", "", "", made); err != nil {
		b.Fatal(err)
	}
	for rows := 0; rows < b.N; {
		p, err := n.log.Page(b.Context(), "", sync.PageRows)
		if err != nil || len(p.Entries) == 0 {
			b.Fatal(len(p.Entries), err)
		}
		rows += len(p.Entries)
	}
}

// BenchmarkDecode is one row of a full page that is read.
func BenchmarkDecode(b *testing.B) {
	n := newNode(b, "local", 0)
	made, _ := full(b, 0)
	b.ReportAllocs()
	for rows := 0; rows < b.N; rows += len(made) {
		n.log.Decode(made)
	}
}
