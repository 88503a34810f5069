package users

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// addUser puts a second account into the file, as the way to register will.
func addUser(t testing.TB, n node, email string) (id string) {
	t.Helper()
	hash, err := NewHasher(cheap).Hash(t.Context(), password)
	ok(t, err)
	ok(t, n.change(t.Context(), func(tx *sqlite.Tx) (bool, error) {
		id = tx.NewID()
		_, err := tx.Exec(`
			INSERT INTO users (id, email, password_hash, role, created_at, updated_at, password_at, ban_at)
			VALUES (?1, ?2, ?3, 'user', ?4, ?4, ?4, ?4)`, id, email, hash, tx.Millis())
		return true, err
	}))
	return id
}

func TestInitMakesTheFirstAdminAndNoSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := run(t, 1, true)
		if _, found, err := n.FirstAdmin(t.Context()); found || err != nil {
			t.Fatal(found, err)
		}
		made, err := n.Init(t.Context(), " Ada@Example.org", password)
		ok(t, err)
		equal(t, "account", made, Account{ID: made.ID, Email: ada, Role: Admin, CreatedAt: time.Now().UTC(), UpdatedAt: time.Now().UTC()})
		found, err := n.Find(t.Context(), " ADA@example.org")
		ok(t, err)
		equal(t, "found", found, made)
		login(t, n, ada, password)

		for _, email := range []string{ada, "bob@example.org"} {
			_, err = n.Init(t.Context(), email, "another horse")
			refused(t, err, fault.Conflict, "already_initialised")
		}
		equal(t, "accounts", n.count(t, `SELECT count(*) FROM users`), 1)
		_, err = n.Find(t.Context(), "bob@example.org")
		refused(t, err, fault.NotFound, "user_not_found")
	})
}

func TestOfTwoInitsAtOnceOneWins(t *testing.T) {
	n := run(t, 1, true)
	var won atomic.Int32
	var both sync.WaitGroup
	for _, email := range []string{ada, "bob@example.org", ada, "eve@example.org"} {
		both.Go(func() {
			if _, err := n.Init(t.Context(), email, password); err == nil {
				won.Add(1)
			} else if !errors.Is(err, errInitialised) {
				t.Error(err)
			}
		})
	}
	both.Wait()
	equal(t, "won", won.Load(), 1)
	equal(t, "accounts", n.count(t, `SELECT count(*) FROM users`), 1)
}

func TestInitNamesEachFieldThatIsWrong(t *testing.T) {
	n := run(t, 1, true)
	for _, c := range []struct{ email, password, fields string }{
		{"ada", password, "email"},
		{ada, "short", "password"},
		{"", "", "email password"},
		{ada, strings.Repeat("x", 257), "password"},
		{ada, "with a \x00 in it", "password"},
	} {
		_, err := n.Init(t.Context(), c.email, c.password)
		e := refused(t, err, fault.Invalid, "invalid_account")
		var names []string
		for _, f := range e.Fields {
			names = append(names, f.Name)
			if c.password != "" && strings.Contains(f.Detail, c.password) {
				t.Errorf("%q tells the password", f.Detail)
			}
		}
		equal(t, c.email+" "+c.password, strings.Join(names, " "), c.fields)
	}
	equal(t, "argon2 calls", n.hashes.Load(), 0)
	equal(t, "accounts", n.count(t, `SELECT count(*) FROM users`), 0)
	equal(t, "fields kept from call to call", len(errInvalid.Fields), 0)
}

func TestAccountsChangeAtTheirAuthorityOnly(t *testing.T) {
	cloud, home, id := twoNodes(t)
	_, err := home.Init(t.Context(), "bob@example.org", password)
	_, _, exported := home.Export(t.Context())
	for what, err := range map[string]error{
		"init": err, "export": exported,
		"password": home.SetPassword(t.Context(), id, "another horse"),
		"disable":  home.Disable(t.Context(), id),
		"enable":   home.Enable(t.Context(), id),
	} {
		e := refused(t, err, fault.Conflict, "accounts_live_elsewhere")
		if !strings.Contains(e.Detail, "https://cloud.example") {
			t.Errorf("%s: %q does not say where", what, e.Detail)
		}
	}
	generation, body, err := cloud.Export(t.Context())
	ok(t, err)
	refused(t, cloud.Import(t.Context(), generation, body), fault.Conflict, "accounts_live_here")
	login(t, home, ada, password)
}

func TestANewPasswordEndsEverySessionOfTheAccount(t *testing.T) { // R:G2
	n := run(t, 1, true)
	id := first(t, n)
	bob := addUser(t, n, "bob@example.org")
	mine := []string{login(t, n, ada, password), login(t, n, ada, password)}
	his := login(t, n, "bob@example.org", password)
	equal(t, "mine", alive(t, n, mine[0]), true)
	equal(t, "his", alive(t, n, his), true)

	ok(t, n.SetPassword(t.Context(), id, "another horse"))
	for _, token := range mine {
		equal(t, "mine after", alive(t, n, token), false)
	}
	equal(t, "his after", alive(t, n, his), true)
	equal(t, "passwords so far", n.count(t, `SELECT password_version FROM users WHERE id = ?`, id), 2)
	_, _, err := n.Login(t.Context(), ada, password)
	refused(t, err, fault.Unauthenticated, "wrong_credentials")
	equal(t, "with the new one", alive(t, n, login(t, n, ada, "another horse")), true)

	e := refused(t, n.SetPassword(t.Context(), bob, "short"), fault.Invalid, "invalid_account")
	equal(t, "fields", len(e.Fields), 1)
	equal(t, "his after a refusal", alive(t, n, his), true)
	refused(t, n.SetPassword(t.Context(), "nobody", "another horse"), fault.NotFound, "user_not_found")
}

func TestABanEndsSessionsAndKeepsTheAccount(t *testing.T) { // E10
	synctest.Test(t, func(t *testing.T) {
		n := run(t, 1, true)
		id := first(t, n)
		token := login(t, n, ada, password)
		equal(t, "before", alive(t, n, token), true)
		banned := time.Now().UTC()
		for range 2 { // twice is once
			ok(t, n.Disable(t.Context(), id))
			equal(t, "session", alive(t, n, token), false)
			a, err := n.Find(t.Context(), ada)
			ok(t, err)
			if a.DisabledAt == nil || !a.DisabledAt.Equal(banned) || a.Email != ada {
				t.Errorf("account: %+v", a)
			}
			equal(t, "disabled", slices.Equal(n.Disabled(), []string{id}), true)
			admin, _, err := n.FirstAdmin(t.Context())
			ok(t, err)
			equal(t, "first admin", admin, id)
			time.Sleep(time.Hour)
		}
		equal(t, "changes", n.changes.Load(), 2) // init and one ban

		for range 2 {
			ok(t, n.Enable(t.Context(), id))
			equal(t, "disabled", len(n.Disabled()), 0)
			equal(t, "the old session", alive(t, n, token), false)
			login(t, n, ada, password)
		}
		equal(t, "changes", n.changes.Load(), 3)
		refused(t, n.Disable(t.Context(), "nobody"), fault.NotFound, "user_not_found")
		refused(t, n.Enable(t.Context(), "nobody"), fault.NotFound, "user_not_found")
	})
}

func TestTheFirstAdminIsTheOldestOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := run(t, 1, true)
		id := first(t, n)
		time.Sleep(time.Minute)
		bob := addUser(t, n, "bob@example.org")
		n.sql(t, `UPDATE users SET role = 'admin' WHERE id = ?`, bob)
		got, found, err := n.FirstAdmin(t.Context())
		ok(t, err)
		equal(t, "found", found, true)
		equal(t, "first admin", got, id)
		n.sql(t, `UPDATE users SET role = 'user' WHERE id = ?`, id)
		got, _, err = n.FirstAdmin(t.Context())
		ok(t, err)
		equal(t, "the other", got, bob)
	})
}

// A ban whose transaction fails half-way is no ban.
func TestAChangeThatIsCutShortChangesNothing(t *testing.T) {
	n := run(t, 1, true)
	id := first(t, n)
	token := login(t, n, ada, password)
	before, err := n.Generation(t.Context())
	ok(t, err)
	n.sql(t, `CREATE TRIGGER cut BEFORE UPDATE ON directory BEGIN SELECT RAISE(ABORT, 'cut'); END`)
	for _, change := range []func() error{
		func() error { return n.Disable(t.Context(), id) },
		func() error { return n.SetPassword(t.Context(), id, "another horse") },
	} {
		if err := change(); err == nil {
			t.Fatal("no error")
		}
		equal(t, "session", alive(t, n, token), true)
		equal(t, "disabled", len(n.Disabled()), 0)
		login(t, n, ada, password)
	}
	n.sql(t, `DROP TRIGGER cut`)
	after, err := n.Generation(t.Context())
	ok(t, err)
	equal(t, "generation", after, before)
	ok(t, n.Disable(t.Context(), id))
	equal(t, "session", alive(t, n, token), false)
}
