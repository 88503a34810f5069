package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// server is a contender that runs.
type server struct {
	contender
	site
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process is gone
	result error         // of the process; read after ended
	took   time.Duration // from spawn to the first 200
}

// settle makes a fresh folder under root and finds a free port for it.
func (c contender) settle(root string) (site, error) {
	dir, err := os.MkdirTemp(root, "site-")
	if err != nil {
		return site{}, err
	}
	addr, err := freeAddress()
	if err != nil {
		return site{}, err
	}
	s := site{dir: dir, addr: addr}
	return s, c.configure(s)
}

// freeAddress is a port that was free a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// enrol makes the account; no server runs meanwhile.
func (c contender) enrol(ctx context.Context, s site) error {
	cmd := c.command(ctx, c.account(s))
	cmd.Stdin = strings.NewReader(password + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: making the account: %w\n%s", c.name, err, out)
	}
	return nil
}

// start spawns the server and asks each millisecond whether it is ready.
func (c contender) start(ctx context.Context, at site) (*server, error) {
	log, err := os.OpenFile(at.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &server{contender: c, site: at, cmd: c.command(ctx, c.serve(at)), ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 5 * time.Second
	spawned := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.result = s.cmd.Wait()
		close(s.ended)
	}()
	if err := s.await(ctx, spawned); err != nil {
		_ = s.stop() // it has nothing to add to why it was never ready
		return nil, err
	}
	return s, nil
}

func (s *server) await(ctx context.Context, spawned time.Time) error {
	const patience = 20 * time.Second
	prober := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for tick := time.NewTicker(time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return fmt.Errorf("%s ended before it was ready: %w\n%s", s.name, s.result, s.tail())
		case <-tick.C:
		}
		if res, err := prober.Get(s.base() + s.ready); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				s.took = time.Since(spawned)
				return nil
			}
		}
		if time.Since(spawned) > patience {
			return fmt.Errorf("%s not ready after %v\n%s", s.name, patience, s.tail())
		}
	}
}

// stop asks the server to end and waits; one that does not is killed, and that
// is an error, for then its folder is not one of a clean stop.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		if err := s.cmd.Process.Kill(); err != nil {
			return err
		}
		<-s.ended
		return fmt.Errorf("%s did not stop within 10 s of SIGTERM", s.name)
	}
	if s.result != nil {
		return fmt.Errorf("%s stopped badly: %w\n%s", s.name, s.result, s.tail())
	}
	return nil
}

func (s site) log() string { return filepath.Join(s.dir, "server.log") }

// tail is the last of what the server said, for an error.
func (s *server) tail() string {
	const most = 2000
	text, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[max(0, len(text)-most):]))
}
