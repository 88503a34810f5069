package link_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// stock adds so many todos of the sort that people write.
func (n *node) stock(count int) {
	n.t.Helper()
	for done := 0; done < count; done += 5000 {
		n.write(func(tx *sqlite.Tx) error {
			for i := done; i < min(done+5000, count); i++ {
				h, err := n.log.AddTx(tx, "todos", "ann")
				if err != nil {
					return err
				}
				if _, err = tx.Exec(`INSERT INTO todos (`+sync.HeadColumns+`, content, notes, due_at, tz) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
					append(h.Args(), fmt.Sprint("Water the plants on the balcony, ", i), "The can is behind the door.", 1_900_000_000_000, "Europe/Berlin")...); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// BenchmarkFirstSync is a row that crosses an empty link over loopback, both files
// durable: up, and down.
func BenchmarkFirstSync(b *testing.B) {
	const rows = 100_000
	for _, way := range []string{"down", "up"} {
		b.Run(way, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				local, cloud := newNode(b, "local", 0), newNode(b, "cloud", 1)
				from, to := cloud, local
				if way == "up" {
					from, to = local, cloud
				}
				from.stock(rows)
				for _, n := range []*node{local, cloud} {
					n.durable = true
					n.restart()
				}
				s := httptest.NewServer(newLine(cloud).server())
				c := link.NewClient(local.log, link.NewPeer(s.URL, "cloud", "local", secret, &http.Transport{}), link.ClientOptions{
					Crash: func(string) {}, Logger: slog.New(slog.DiscardHandler),
					Hello: func() link.Hello { return link.Hello{Node: "local", Now: time.Now().UnixMilli()} },
				})
				ctx, stop := context.WithCancel(b.Context())
				to.log.OnChange(func() {})
				b.StartTimer()
				began := time.Now()
				work := c.Fetch
				if way == "up" {
					work = c.Offer
				}
				done := make(chan error, 1)
				go func() { done <- work(ctx) }()
				for read[int](to, `SELECT count(*) FROM todos`) < rows {
					select {
					case err := <-done:
						if way == "down" {
							b.Fatal(err)
						}
					case <-time.After(5 * time.Millisecond):
					}
				}
				took := time.Since(began)
				b.StopTimer()
				b.ReportMetric(rows/took.Seconds(), "rows/s")
				stop()
				s.CloseClientConnections()
				s.Close()
				b.StartTimer()
			}
		})
	}
}
