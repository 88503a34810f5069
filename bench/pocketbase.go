package main

import (
	"context"
	"net/http"
	"path/filepath"
)

// pocketbaseVersion is the one go.mod pins; newer ones want a newer Go.
const pocketbaseVersion = "v0.36.8"

// pocketbase builds the rival in the folder of the same name, which spells out
// its settings.
func pocketbase(ctx context.Context, bin string) (contender, error) {
	binary, err := build(ctx, ".", "./pocketbase", filepath.Join(bin, "pocketbase"))
	if err != nil {
		return contender{}, err
	}
	const records = "/api/collections/todos_auth/records"
	data := func(s site) string { return filepath.Join(s.dir, "data") }
	return contender{
		name:      pocketbaseName,
		binary:    binary,
		configure: func(site) error { return nil },
		account:   func(s site) []string { return []string{"prepare", email, "--dir", data(s)} },
		serve:     func(s site) []string { return []string{"serve", "--dir", data(s), "--http", s.addr} },
		ready:     "/api/health",
		login:     "/api/collections/users/auth-with-password",
		loginBody: map[string]string{"identity": email, "password": password},
		create:    records,
		made:      http.StatusOK,
		id:        "id",
		view:      func(id string) string { return records + "/" + id },
		lists: map[work]string{
			listPlain:   records + "?perPage=50&skipTotal=1",
			listCounted: records + "?perPage=50",
		},
	}, nil
}
