package users

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fault"
)

func TestLoginOpensASessionForADay(t *testing.T) { // E11
	synctest.Test(t, func(t *testing.T) {
		n := run(t, 1, true)
		id := first(t, n)
		token, expires, err := n.Login(t.Context(), " ADA@example.org ", password)
		ok(t, err)
		equal(t, "expires", time.Until(expires), 24*time.Hour)
		if secret, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "tnd_")); err != nil || len(secret) != 32 {
			t.Errorf("token of %d bytes, %v", len(secret), err)
		}
		who, err := n.Authenticate(t.Context(), token)
		ok(t, err)
		equal(t, "identity", who, Identity{UserID: id, Email: ada, Role: Admin, Session: sha256.Sum256([]byte(token))})

		time.Sleep(24*time.Hour - time.Millisecond)
		equal(t, "a moment before", alive(t, n, token), true)
		time.Sleep(time.Millisecond)
		equal(t, "from memory, a day later", alive(t, n, token), false)
		n.cache.clear()
		equal(t, "from the file, a day later", alive(t, n, token), false)
	})
}

func TestExpiredSessionsAreDeletedAndOthersStay(t *testing.T) { // E11, R:G1: the clean-up itself
	synctest.Test(t, func(t *testing.T) {
		n := run(t, 1, true)
		first(t, n)
		old := login(t, n, ada, password)
		time.Sleep(time.Hour)
		young := login(t, n, ada, password)
		time.Sleep(SessionLife - time.Hour)
		ok(t, n.PurgeExpired(t.Context()))
		equal(t, "sessions", n.count(t, `SELECT count(*) FROM sessions`), 1)
		equal(t, "old", alive(t, n, old), false)
		equal(t, "young", alive(t, n, young), true)
		ok(t, n.PurgeExpired(t.Context()))
		equal(t, "young, after a second round", alive(t, n, young), true)
	})
}

func TestTheTokenIsNowhereInTheFile(t *testing.T) { // E11
	path := filepath.Join(t.TempDir(), "users.db")
	n := start(t, path, 1, true)
	first(t, n)
	token := login(t, n, ada, password)
	equal(t, "alive", alive(t, n, token), true)
	secret, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, tokenPrefix))
	ok(t, err)
	hash := sha256.Sum256([]byte(token))

	n.stop(t) // before looking: another handle on the file would drop its locks
	files := folder(t, filepath.Dir(path))
	all := slices.Concat(slices.Collect(maps.Values(files))...)
	if !bytes.Contains(all, hash[:]) || !bytes.Contains(all, []byte(ada)) {
		t.Error("the session is not there to be looked for")
	}
	for name, content := range files {
		for what, needle := range map[string][]byte{"token": []byte(token), "its text": []byte(token[4:]), "its bits": secret, "password": []byte(password)} {
			if bytes.Contains(content, needle) {
				t.Errorf("%s: holds the %s", name, what)
			}
		}
	}
}

// folder returns the content of each file in dir.
func folder(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	files := map[string][]byte{}
	for _, e := range entries {
		files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
		ok(t, err)
	}
	return files
}

func TestLoginSaysTheSameForUnknownWrongAndBanned(t *testing.T) { // E10, R:G4
	cloud, home, id := twoNodes(t)
	ok(t, cloud.Disable(t.Context(), id))
	carry(t, cloud, home)
	good := run(t, 3, true)
	first(t, good)
	for name, c := range map[string]struct {
		n               node
		email, password string
	}{
		"unknown":                {good, "eve@example.org", password},
		"no address":             {good, "eve\x00", password},
		"wrong password":         {good, ada, "wrong horse"},
		"empty":                  {good, ada, ""},
		"too long":               {good, ada, strings.Repeat("x", 10_000)},
		"banned":                 {cloud, ada, password},
		"banned, wrong":          {cloud, ada, "wrong horse"},
		"banned elsewhere":       {home, ada, password},
		"unknown elsewhere":      {home, "eve@example.org", password},
		"unknown, empty":         {good, "", ""},
		"the stored placeholder": {good, id, password},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.n.hashes.Load()
			token, expires, err := c.n.Login(t.Context(), c.email, c.password)
			e := refused(t, err, fault.Unauthenticated, "wrong_credentials")
			equal(t, "detail", e.Detail, errCredentials.Detail)
			equal(t, "argon2 calls", c.n.hashes.Load()-before, 1)
			equal(t, "token", token, "")
			equal(t, "expires", expires, time.Time{})
			equal(t, "sessions", c.n.count(t, `SELECT count(*) FROM sessions`), 0)
		})
	}
	before := good.hashes.Load()
	login(t, good, ada, password)
	equal(t, "argon2 calls of a good login", good.hashes.Load()-before, 1)
}

func TestLoginWaitsForTheFirstAccountsToCome(t *testing.T) {
	cloud, home := run(t, 1, true), run(t, 2, false)
	tooEarly := func() {
		t.Helper()
		before := home.hashes.Load()
		_, _, err := home.Login(t.Context(), ada, password)
		if e := refused(t, err, fault.Unavailable, "accounts_not_here_yet"); e.RetryAfter != 5*time.Second {
			t.Errorf("retry after %v", e.RetryAfter)
		}
		equal(t, "argon2 calls", home.hashes.Load()-before, 0)
	}
	tooEarly()
	carry(t, cloud, home) // which has nobody yet
	tooEarly()
	first(t, cloud)
	carry(t, cloud, home)
	login(t, home, ada, password)

	_, _, err := run(t, 3, true).Login(t.Context(), ada, password)
	refused(t, err, fault.Unauthenticated, "wrong_credentials") // an authority waits for nobody
}

func TestLogoutEndsOneSessionForGood(t *testing.T) { // E11
	n := run(t, 1, true)
	first(t, n)
	gone, stays := login(t, n, ada, password), login(t, n, ada, password)
	equal(t, "before", alive(t, n, gone), true)
	for range 2 { // twice is once
		ok(t, n.Logout(t.Context(), gone))
		equal(t, "after", alive(t, n, gone), false)
	}
	equal(t, "the other", alive(t, n, stays), true)
	equal(t, "sessions", n.count(t, `SELECT count(*) FROM sessions`), 1)
	ok(t, n.Logout(t.Context(), "no token at all"))
}

func TestWhatIsNotATokenOpensNothing(t *testing.T) {
	n := run(t, 1, true)
	first(t, n)
	token := login(t, n, ada, password)
	hash := sha256.Sum256([]byte(token))
	for _, junk := range []string{
		"", "tnd_", token[4:], token + "x", token[:len(token)-1], strings.ToUpper(token), "tnd-" + token[4:],
		tokenPrefix + base64.RawURLEncoding.EncodeToString(hash[:]), token[:len(token)-1] + "\x00",
	} {
		_, err := n.Authenticate(t.Context(), junk)
		refused(t, err, fault.Unauthenticated, "no_session")
	}
	equal(t, "the token", alive(t, n, token), true)
}

func TestSessionsSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.db")
	n := start(t, path, 1, true)
	first(t, n)
	token := login(t, n, ada, password)
	n.stop(t)
	n = start(t, path, 2, true)
	defer n.stop(t)
	equal(t, "after the restart", alive(t, n, token), true)
}

func TestALoginThatIsGivenUpLeavesNoSession(t *testing.T) {
	n := run(t, 1, true)
	first(t, n)
	ctx, cancel := context.WithCancel(t.Context())
	check := n.o.Hasher.check
	n.o.Hasher.check = func(p, hash string) (bool, error) { cancel(); return check(p, hash) }
	if _, _, err := n.Login(ctx, ada, password); err == nil {
		t.Error("no error")
	}
	equal(t, "sessions", n.count(t, `SELECT count(*) FROM sessions`), 0)
}
