package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/internal/sqlite"
)

// S:30: a cloud that goes back to seconds ago, in whatever way, is filled again by a
// home that never stops sending, and nobody has to do anything at home.
func TestACloudThatGoesBackWhileHomeSendsIsFilledAgain(t *testing.T) {
	t.Parallel()
	for name, goBack := range map[string]func(w *pair, before string){
		"from a backup": func(w *pair, before string) {
			must(w.t, w.cloud.command("restore", before).Run())
		},
		"by hand, the fence too": func(w *pair, before string) {
			must(w.t, os.RemoveAll(w.cloud.dir))
			must(w.t, copyTree(w.cloud.dir, before))
		},
		"by hand, but for the fence": func(w *pair, before string) {
			must(w.t, os.Remove(filepath.Join(before, "todos.fence")))
			must(w.t, os.Remove(filepath.Join(w.cloud.dir, "todos.db-wal")))
			must(w.t, copyTree(w.cloud.dir, before))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			w.cloud.start()
			w.home.start()
			s := w.sends()
			s.reaches(30)
			before := filepath.Join(t.TempDir(), "before")
			if strings.HasPrefix(name, "by hand") {
				w.cloud.terminates()
				must(t, copyTree(before, w.cloud.dir))
				w.cloud.start()
			} else {
				verb(t, w.cloud.env, "", "backup", before).exits(t, exitOK)
			}
			must(t, w.cloud.add("only at the cloud", ""))
			s.reaches(90)
			eventually(t, func() error { return found(todosAt(t, w.home, "only at the cloud"), 1) })
			must(t, w.cloud.kill())
			goBack(w, before)
			w.cloud.start()
			s.reaches(120)
			sent := s.stops()
			inTime(t, time.Minute, func() error { return found(todosAt(t, w.cloud, "sent %"), sent) })
			if name == "from a backup" { // which ends the sessions
				must(t, w.cloud.login(t.Context()))
			}
			inTime(t, time.Minute, w.settle)
			must(t, w.same())
			equal(t, "at home", len(todosAt(t, w.home, "sent %")), sent)
			equal(t, "what the cloud had, at the cloud", len(todosAt(t, w.cloud, "only at the cloud")), 1)
		})
	}
}

func found(list []string, want int) error {
	if len(list) != want {
		return fmt.Errorf("%d are there, not %d", len(list), want)
	}
	return nil
}

// sender adds one todo after another at home.
type sender struct {
	*pair
	stop context.CancelFunc
	done sync.WaitGroup
	n    int
	mu   sync.Mutex
	err  error
}

func (w *pair) sends() *sender {
	ctx, stop := context.WithCancel(w.t.Context())
	s := &sender{pair: w, stop: stop}
	w.t.Cleanup(stop)
	s.done.Go(func() {
		for ctx.Err() == nil {
			err := w.home.add(fmt.Sprintf("sent %04d", s.n), "")
			s.mu.Lock()
			s.n, s.err = s.n+1, err
			s.mu.Unlock()
			if err != nil {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return s
}

// reaches waits until so many were added.
func (s *sender) reaches(n int) {
	s.t.Helper()
	eventually(s.t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		must(s.t, s.err)
		if s.n < n {
			return fmt.Errorf("%d were added, not %d", s.n, n)
		}
		return nil
	})
}

// stops ends it and returns how many were added.
func (s *sender) stops() int {
	s.t.Helper()
	s.stop()
	s.done.Wait()
	must(s.t, s.err)
	return s.n
}

// S:40: what a cloud that has lost everything does not list was not deleted.
func TestACloudThatIsEmptyDeletesNothingAndIsFilledAgain(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(w *pair){
		"its folder": func(w *pair) { must(w.t, os.RemoveAll(w.cloud.dir)) },
		"its todos": func(w *pair) {
			w.emptyTodos()
			must(w.t, os.Remove(filepath.Join(w.cloud.dir, "todos.fence")))
		},
		"its todos, beside their fence": (*pair).emptyTodos,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			w.cloud.start()
			w.home.start()
			for i := range 60 {
				must(t, []*process{w.home, w.cloud}[i%2].add(fmt.Sprint("todo ", i), ""))
			}
			eventually(t, w.settle)
			rows, err := replica(w.home, "todos")
			must(t, err)
			must(t, w.cloud.kill())
			empty(w)
			w.cloud.start()
			must(t, w.home.add("since then", ""))
			inTime(t, time.Minute, func() error { return found(todosAt(t, w.cloud, "%"), 61) })
			inTime(t, time.Minute, w.same)
			now, err := replica(w.home, "todos")
			must(t, err)
			equal(t, "what home has no more, or otherwise", len(without(rows, now)), 0)
			must(t, w.home.login(t.Context())) // accounts are not gone either
		})
	}
}

// emptyTodos replaces the cloud's database of todos by one without rows.
func (w *pair) emptyTodos() {
	w.t.Helper()
	path := filepath.Join(w.cloud.dir, sqlite.Todos.File())
	for _, end := range []string{"", "-wal", "-shm"} {
		must(w.t, os.RemoveAll(path+end))
	}
	must(w.t, open(w.t, w.cloud).Close())
}
