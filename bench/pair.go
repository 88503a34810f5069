package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// pair is two nodes of Tandem that know each other: the one in the cloud, where the
// account lives, and the one at home, which calls it.
type pair struct {
	dir         string
	cloud, home *node
	via         string // where home calls the cloud
}

// node is a contender with the place it runs at.
type node struct {
	contender
	at site
	s  *server // nil while it does not run
}

// newPair makes a pair of fresh nodes, or of copies of those in the folder from.
func (b *bench) newPair(from string) (*pair, error) {
	dir, err := os.MkdirTemp(b.root, "pair-")
	if err != nil {
		return nil, err
	}
	p := &pair{dir: dir}
	if err := os.WriteFile(p.secret(), []byte(rand.Text()+rand.Text()+"\n"), 0o600); err != nil {
		return nil, err
	}
	if p.cloud, err = b.newNode(p.dir, "cloud", from, func(s site) string {
		return fmt.Sprintf("node: {name: cloud, origin: 1, data: %q, tz: UTC}\nhttp: {listen: %q}\npeer: {name: home, token_file: %q}\nscheduler: {mode: standby}\n",
			s.data(), s.addr, p.secret())
	}); err != nil {
		return nil, err
	}
	p.via = p.cloud.at.base()
	p.home, err = b.newNode(p.dir, "home", from, func(s site) string {
		return fmt.Sprintf("node: {name: home, origin: 0, data: %q, tz: UTC}\nhttp: {listen: %q}\npeer: {name: cloud, url: %q, token_file: %q}\nscheduler: {mode: active}\n",
			s.data(), s.addr, p.via, p.secret())
	})
	return p, err
}

// secret is the file of what both nodes know.
func (p *pair) secret() string { return filepath.Join(p.dir, "peer.token") }

// lead has home call the cloud at another address.
func (p *pair) lead(addr string) error {
	p.via = "http://" + addr
	return p.home.configure(p.home.at)
}

func (b *bench) newNode(dir, name, from string, config func(site) string) (*node, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	n := &node{contender: tandemNode(b.contenders[ours].binary, config), at: site{dir: filepath.Join(dir, name), addr: addr}}
	if err := os.Mkdir(n.at.dir, 0o700); err != nil {
		return nil, err
	}
	if from != "" {
		was := site{dir: filepath.Join(from, name)}
		if _, err := os.Stat(was.data()); err == nil {
			if err := os.CopyFS(n.at.data(), os.DirFS(was.data())); err != nil {
				return nil, err
			}
		}
	}
	return n, errors.Join(private(n.at.dir), n.configure(n.at))
}

// private takes from others what a copy has given them.
func private(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
}

// run starts the node. What is in the page cache is written first, so that nobody
// pays for it.
func (n *node) run(ctx context.Context) (err error) {
	syscall.Sync()
	n.s, err = n.start(ctx, n.at)
	return err
}

// halt stops the node where it runs.
func (n *node) halt() error {
	if n.s == nil {
		return nil
	}
	s := n.s
	n.s = nil
	return s.stop()
}

// end stops both nodes and removes their folders.
func (p *pair) end() error {
	return errors.Join(p.home.halt(), p.cloud.halt(), os.RemoveAll(p.dir))
}

// both starts the cloud, then home, and logs in at both once the account is at home.
func (p *pair) both(ctx context.Context) (cloud, home session, err error) {
	if err = p.cloud.enrol(ctx, p.cloud.at); err != nil {
		return
	}
	if err = p.cloud.run(ctx); err != nil {
		return
	}
	if cloud, err = p.cloud.s.logIn(); err != nil {
		return
	}
	if err = p.home.run(ctx); err != nil {
		return
	}
	err = within(ctx, 20*time.Second, 100*time.Millisecond, func() (err error) {
		home, err = p.home.s.logIn()
		return err
	})
	return
}

// within tries until it succeeds, and returns the last error when it has taken too
// long.
func within(ctx context.Context, patience, pause time.Duration, try func() error) error {
	for start := time.Now(); ; {
		err := try()
		if err == nil {
			return nil
		}
		if time.Since(start) > patience {
			return fmt.Errorf("not within %v: %w", patience, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
