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
	if err != nil {
		return contender{}, err
	}
	config := func(s site) string { return filepath.Join(s.dir, "tandem.yaml") }
	return contender{
		name:   "Tandem",
		binary: binary,
		configure: func(s site) error {
			text := fmt.Sprintf("node: {name: bench, origin: 0, data: %q, tz: UTC}\nhttp: {listen: %q}\n",
				filepath.Join(s.dir, "data"), s.addr)
			return os.WriteFile(config(s), []byte(text), 0o600)
		},
		account: func(s site) []string {
			return []string{"init", "--config", config(s), "--email", email, "--password-stdin"}
		},
		serve:     func(s site) []string { return []string{"serve", "--config", config(s)} },
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
	}, nil
}
