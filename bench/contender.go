package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The one account of either server.
const (
	email    = "bench@example.org"
	password = "a bench is not a secret"
)

// contender is a server under test: how to set it up and what to ask of it.
// Tandem and PocketBase differ in nothing else.
type contender struct {
	name      string
	binary    string
	configure func(s site) error     // what must exist before the binary runs
	account   func(s site) []string  // arguments that make the account; the password comes on stdin
	serve     func(s site) []string  // arguments that serve until SIGTERM
	ready     string                 // answers 200 without a login once requests are taken
	login     string                 // answers {"token"}
	loginBody map[string]string      // to login
	create    string                 // takes a todo, answers its row
	made      int                    // the status of that answer
	id        string                 // the member of a row that names it
	view      func(id string) string // path of one row
	lists     map[work]string        // paths of 50 rows, by the line they count for
}

// site is a folder and an address for one server.
type site struct {
	dir  string
	addr string
}

func (s site) base() string { return "http://" + s.addr }

// command leaves the environment bare, so that no variable of the caller tunes
// one contender and not the other.
func (c contender) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.binary, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	return cmd
}

// build compiles a package of the module in dir as a release is built, and
// returns the path of the binary.
func build(ctx context.Context, module, pkg, into string) (string, error) {
	into, err := filepath.Abs(into)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", into, pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return into, nil
}
