package link

import (
	"context"
	"encoding/json"
	"time"

	"tandem/internal/sync"
)

// MaxWait bounds how long a poll is held open; many proxies cut at 60 s.
const MaxWait = 50 * time.Second

// Set is something that one node holds whole and the other copies whole, by
// generation: the accounts, the push tokens. Two generations that differ are
// two contents; they are not ordered.
type Set struct {
	Name   string // in the poll and in Page.Sets
	Path   string // below /peer/v1/
	Held   func(context.Context) (generation string, err error)
	Export func(context.Context) (generation string, body []byte, err error) // where it is held
	Import func(ctx context.Context, generation string, body []byte) error   // where it is copied
}

// Whole is a Set as it crosses.
type Whole struct {
	Generation string          `json:"generation"`
	Body       json.RawMessage `json:"body"`
}

// Page is what answers a poll: a stretch of the log, and what else is news.
type Page struct {
	sync.Page
	Sets map[string]string `json:"sets,omitempty"` // newer generations of what is copied whole
}

// Poll returns the page of l after cursor. When that is empty it waits, until a
// change, a generation that differs from the one in held, or wait (at most MaxWait).
func Poll(ctx context.Context, l *sync.Log, cursor string, sets []Set, held map[string]string, wait time.Duration) (Page, error) {
	ctx, stop := context.WithTimeout(ctx, min(wait, MaxWait))
	defer stop()
	for {
		changed := l.Changed() // before the look, so that no change falls between
		stretch, err := l.Page(context.WithoutCancel(ctx), cursor, sync.PageRows)
		page := Page{Page: stretch}
		if err != nil {
			return page, err
		}
		for _, s := range sets {
			generation, err := s.Held(context.WithoutCancel(ctx))
			if err != nil {
				return page, err
			}
			if had, asked := held[s.Name]; asked && generation != had {
				if page.Sets == nil {
					page.Sets = map[string]string{}
				}
				page.Sets[s.Name] = generation
			}
		}
		if len(page.Entries) > 0 || len(page.Sets) > 0 || page.Reset != "" {
			return page, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return page, nil
		}
	}
}
