package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Each calls work for every item, at most limit at once, and returns when all
// are done. One item's error or panic does not stop the others; all are joined.
func Each[T any](ctx context.Context, limit int, items []T, work func(context.Context, T) error) error {
	var g errgroup.Group
	g.SetLimit(limit)
	var mu sync.Mutex
	var failed []error
	for _, item := range items {
		g.Go(func() error {
			if err := guarded(ctx, item, work); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
			return nil
		})
	}
	return errors.Join(append(failed, g.Wait())...)
}

func guarded[T any](ctx context.Context, item T, work func(context.Context, T) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return work(ctx, item)
}
