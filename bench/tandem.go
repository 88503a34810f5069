package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// tandem builds the node of the module around this one. It runs as one node
// without a peer, its scheduler on, with synchronous=FULL, which it has no
// setting to lower.
func tandem(ctx context.Context, bin string) (contender, error) {
	binary, err := build(ctx, "..", "./cmd/node", filepath.Join(bin, "tandem"))
	return tandemNode(binary, func(s site) string {
		return fmt.Sprintf("node: {name: bench, origin: 0, data: %q, tz: UTC}\nhttp: {listen: %q}\n", s.data(), s.addr)
	}), err
}

// tandemNode is a node with the configuration that config writes.
func tandemNode(binary string, config func(s site) string) contender {
	path := func(s site) string { return filepath.Join(s.dir, "tandem.yaml") }
	return contender{
		name:      ours,
		binary:    binary,
		configure: func(s site) error { return os.WriteFile(path(s), []byte(config(s)), 0o600) },
		account: func(s site) []string {
			return []string{"init", "--config", path(s), "--email", email, "--password-stdin"}
		},
		serve:     func(s site) []string { return []string{"serve", "--config", path(s)} },
		ready:     "/readyz",
		login:     "/v1/auth/login",
		loginBody: map[string]string{"email": email, "password": password},
		create:    "/v1/todos",
		made:      http.StatusCreated,
		id:        "ref",
		view:      func(id string) string { return "/v1/todos/" + id },
		lists: map[work]string{
			listPlain:   "/v1/todos?limit=50",
			listCounted: "/v1/todos?limit=50",
		},
	}
}

// data is where a node of Tandem keeps its files.
func (s site) data() string { return filepath.Join(s.dir, "data") }
