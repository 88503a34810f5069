package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// refuses returns nil where a call was answered with 401.
func refuses(err error) error {
	if err == nil {
		return errors.New("it was let in")
	}
	if !strings.Contains(err.Error(), fmt.Sprint(": ", http.StatusUnauthorized)) {
		return err
	}
	return nil
}

func TestABanAtTheCloudLogsOutOnBothNodesUntilItIsLifted(t *testing.T) { // E10
	t.Parallel()
	w := barePair(t, t.TempDir())
	w.cloud.start()
	w.home.start()
	verb(t, w.cloud.env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitOK)
	must(t, w.cloud.login(t.Context()))
	eventually(t, func() error { return w.home.login(t.Context()) })

	verb(t, w.cloud.env, "", "user", "disable", "ADA@example.org").exits(t, exitOK, demoEmail+" is banned")
	for _, n := range []*process{w.cloud, w.home} {
		eventually(t, func() error { return refuses(n.call(t.Context(), http.MethodGet, "/v1/me", nil, nil)) })
	}
	must(t, refuses(w.cloud.login(t.Context())))
	verb(t, w.cloud.env, "", "user", "enable", demoEmail).exits(t, exitOK, "may log in again")
	must(t, w.cloud.login(t.Context()))
	eventually(t, func() error { return w.home.login(t.Context()) })
}

func TestANewPasswordEndsTheSessionsOfTheOld(t *testing.T) {
	t.Parallel()
	w := barePair(t, t.TempDir())
	verb(t, w.cloud.env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitOK)
	w.cloud.start()
	must(t, w.cloud.login(t.Context()))
	verb(t, w.cloud.env, "another battery\n", "user", "password", "--password-stdin", demoEmail).exits(t, exitOK, "new password")
	must(t, refuses(w.cloud.call(t.Context(), http.MethodGet, "/v1/me", nil, nil)))
	must(t, refuses(w.cloud.login(t.Context())))
	must(t, w.cloud.kill())
	verb(t, w.cloud.env, adasPassword, "user", "password", "--password-stdin", demoEmail).exits(t, exitOK) // while none runs
	w.cloud.start()
	must(t, w.cloud.login(t.Context()))
}

func TestUserRefusesWhomItDoesNotKnow(t *testing.T) {
	t.Parallel()
	env, _ := inhabited(t)
	verb(t, env, "", "user", "disable", "eve@example.org").exits(t, exitFailed, "no such account")
	verb(t, env, "short\n", "user", "password", "--password-stdin", demoEmail).exits(t, exitFailed, "8 to 256 characters")
	verb(t, env, "", "user", "disable").exits(t, exitUsage, "--help")
	verb(t, env, "", "user", "fly", demoEmail).exits(t, exitUsage)
}
