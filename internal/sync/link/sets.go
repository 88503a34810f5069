package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Set is something that one node holds whole and the other copies whole, by
// generation: the accounts, the push tokens. Two generations that differ are
// two contents; they are not ordered.
type Set struct {
	Name       string                                                            // in the poll and in Page.Sets
	Path       string                                                            // below /peer/v1/
	Generation func(context.Context) (string, error)                             // of what is here
	Export     func(context.Context) (generation string, body []byte, err error) // where it lives
	Import     func(ctx context.Context, generation string, body []byte) error   // where it is copied
}

// Whole is a Set as it crosses.
type Whole struct {
	Generation string          `json:"generation"`
	Body       json.RawMessage `json:"body"`
}

// newer returns the sets whose generation is not the one in has, by name. One that
// has does not name was not asked about.
func newer(ctx context.Context, sets []Set, has map[string]string) (map[string]string, error) {
	var all map[string]string
	for _, s := range sets {
		had, asked := has[s.Name]
		if !asked {
			continue
		}
		generation, err := s.Generation(ctx)
		if err != nil {
			return nil, err
		}
		if generation != had {
			if all == nil {
				all = map[string]string{}
			}
			all[s.Name] = generation
		}
	}
	return all, nil
}

// copySets copies what is newer at the peer. One that cannot be taken does not keep
// the others away.
func (c *Client) copySets(ctx context.Context, newer map[string]string) error {
	var failed []error
	for _, s := range c.sets {
		if _, ok := newer[s.Name]; !ok {
			continue
		}
		var whole Whole
		err := c.peer.Call(ctx, http.MethodGet, s.Path, nil, &whole)
		if err == nil {
			err = s.Import(ctx, whole.Generation, whole.Body)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	return errors.Join(failed...)
}
