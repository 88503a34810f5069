package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// pouchVersion is the one that pouch/package.json pins.
const pouchVersion = "9.0.0"

//go:embed pouch/*.js pouch/*.json
var pouchFiles embed.FS

// pouch is PouchDB with its server, installed in a folder of the user's cache, which
// outlives the run.
type pouch struct {
	dir   string
	node  string // the program
	stock string // folder of a server with todos
}

// errNoNode is why PouchDB is left out.
var errNoNode = errors.New("node or npm is missing (Debian: apt-get install nodejs npm)")

// newPouch installs the versions of the lock file unless they are there.
func newPouch(ctx context.Context, progress io.Writer) (*pouch, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errNoNode
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, errNoNode
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	p := &pouch{dir: filepath.Join(cache, "tandem-bench", "pouch"), node: node}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := pouchFiles.ReadFile("pouch/package-lock.json")
	if err != nil {
		return nil, err
	}
	done := filepath.Join(p.dir, "installed") // a copy of the lock file that was installed
	there, err := os.ReadFile(done)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := p.unpack(); err != nil || bytes.Equal(there, lock) {
		return p, err
	}
	fmt.Fprintf(progress, "installing PouchDB in %s\n", p.dir)
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return p, os.WriteFile(done, lock, 0o600)
}

func (p *pouch) unpack() error {
	files, err := pouchFiles.ReadDir("pouch")
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := pouchFiles.ReadFile("pouch/" + f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(p.dir, f.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (p *pouch) script(name string) string { return filepath.Join(p.dir, name) }

// server is express-pouchdb as a contender; there are no accounts.
func (p *pouch) server() contender {
	return contender{
		name:      pouchName,
		binary:    p.node,
		configure: func(s site) error { return os.MkdirAll(s.data(), 0o700) },
		serve: func(s site) []string {
			_, port, _ := net.SplitHostPort(s.addr)
			return []string{p.script("server.js"), port, s.data()}
		},
		ready: "/todos",
	}
}

// with runs do beside a server on the folder of a site, or on a fresh one.
func (p *pouch) with(ctx context.Context, dir string, do func(*server) error) error {
	addr, err := freeAddress()
	if err != nil {
		return err
	}
	c, at := p.server(), site{dir: dir, addr: addr}
	if err := c.configure(at); err != nil {
		return err
	}
	s, err := c.start(ctx, at)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.stop())
}

// stocked returns the folder of a server with n todos, made once.
func (p *pouch) stocked(ctx context.Context, b *bench, n int) (string, error) {
	if p.stock != "" {
		return p.stock, nil
	}
	fmt.Fprintf(b.progress, "  filling PouchDB with %d todos\n", n)
	dir, err := os.MkdirTemp(b.root, "pouch-")
	if err != nil {
		return "", err
	}
	err = p.with(ctx, dir, func(s *server) error {
		const batch = 1000
		for i := 0; i < n; i += batch {
			var docs []map[string]any
			for k := i; k < min(i+batch, n); k++ {
				docs = append(docs, document(k))
			}
			if err := s.ask(http.MethodPost, "/todos/_bulk_docs", "", map[string]any{"docs": docs}, http.StatusCreated, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		p.stock = dir
	}
	return dir, err
}

// document is the todo of a number as PouchDB has it.
func document(number int) map[string]any {
	return map[string]any{
		"_id": "todo-" + strconv.Itoa(number), "content": sentence(number), "due_at": "2026-12-01T09:00:00Z", "done": false,
		"owner": email, "created_at": "2026-11-30T10:00:00.000Z", "updated_at": "2026-11-30T10:00:00.000Z", "updated_by": "cloud",
	}
}

// pull is one pull of the database at url into an empty one in dir.
func (p *pouch) pull(ctx context.Context, url, dir string, want int) (firstSync, error) {
	cmd := exec.CommandContext(ctx, p.node, p.script("pull.js"), url, dir)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return firstSync{}, fmt.Errorf("pull: %w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return firstSync{}, err
	}
	var said struct {
		Docs    int
		Seconds float64
		CPU     int64   // µs
		Peak    float64 // KiB
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return firstSync{}, fmt.Errorf("pull said %q: %w", out, err)
	}
	if said.Docs != want {
		return firstSync{}, fmt.Errorf("pull ended with %d documents, not %d", said.Docs, want)
	}
	return firstSync{took: time.Duration(said.Seconds * float64(time.Second)), cpu: time.Duration(said.CPU) * time.Microsecond, reader: memory{peak: said.Peak / 1024}}, nil
}

// pouchLive is liveDown of the rival: documents PUT at the server, seen in the local
// feed of a database that pulls live.
func (b *bench) pouchLive(ctx context.Context) error {
	dir, err := os.MkdirTemp(b.root, "pouch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return b.pouch.with(ctx, dir, func(s *server) error {
		seen := &sightings{at: map[int]int64{}}
		stop, err := b.pouch.follow(ctx, s.base()+"/todos", filepath.Join(dir, "pull"), seen)
		if err != nil {
			return err
		}
		err = b.live(ctx, pouchName, liveAlone, liveAmong, seen, func(number int) error {
			return s.ask(http.MethodPut, "/todos/todo-"+strconv.Itoa(number), "", document(number), http.StatusCreated, nil)
		})
		return errors.Join(err, stop())
	})
}

// follow starts a live pull and notes what it tells, once it has caught up.
func (p *pouch) follow(ctx context.Context, url, dir string, s *sightings) (stop func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, p.node, p.script("live.js"), url, dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			id, at, _ := strings.Cut(lines.Text(), " ")
			if id == "ready" {
				close(ready)
				continue
			}
			number, err := strconv.Atoi(strings.TrimPrefix(id, "todo-"))
			when, bad := strconv.ParseInt(at, 10, 64)
			if err == nil && bad == nil {
				s.add(number, when)
			}
		}
		ended <- errors.Join(lines.Err(), cmd.Wait())
	}()
	stop = func() error { return errors.Join(in.Close(), <-ended) }
	select {
	case <-ready:
		return stop, nil
	case err := <-ended:
		return nil, fmt.Errorf("live pull ended: %w", err)
	case <-time.After(20 * time.Second):
		return nil, errors.Join(errors.New("the live pull did not catch up"), stop())
	}
}
