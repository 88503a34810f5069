package users

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// dump is everything the file says of accounts and sessions.
func (n node) dump(t testing.TB) string {
	t.Helper()
	text, err := sqlite.Read(context.Background(), n.db, func(tx *sqlite.Tx) (string, error) {
		lines, err := sqlite.All(tx, sqlite.Value[string], `
			SELECT concat_ws('|', id, email, password_hash, role, password_version, disabled_at, created_at, updated_at) FROM users
			UNION ALL SELECT concat_ws('|', hex(token_hash), user_id, password_version, expires_at) FROM sessions
			UNION ALL SELECT generation FROM directory
			ORDER BY 1`)
		return strings.Join(lines, "\n"), err
	})
	ok(t, err)
	return text
}

func (n node) accounts(t testing.TB) string {
	t.Helper()
	records, err := sqlite.Read(context.Background(), n.db, recordsTx)
	ok(t, err)
	text, err := json.Marshal(records)
	ok(t, err)
	return string(text)
}

func generationOf(t testing.TB, n node) string {
	t.Helper()
	g, err := n.Generation(context.Background())
	ok(t, err)
	return g
}

func TestABanEndsSessionsOnBothNodes(t *testing.T) { // E10
	cloud, home, id := twoNodes(t)
	atCloud, atHome := login(t, cloud, ada, password), login(t, home, ada, password)
	equal(t, "at the cloud, before", alive(t, cloud, atCloud), true)
	equal(t, "at home, before", alive(t, home, atHome), true)
	equal(t, "the cloud's token at home", alive(t, home, atCloud), false) // sessions never cross

	ok(t, cloud.Disable(t.Context(), id))
	equal(t, "at the cloud", alive(t, cloud, atCloud), false)
	carry(t, cloud, home)
	equal(t, "at home", alive(t, home, atHome), false)
	for _, n := range []node{cloud, home} {
		_, _, err := n.Login(t.Context(), ada, password)
		refused(t, err, fault.Unauthenticated, "wrong_credentials")
		equal(t, "disabled", slices.Equal(n.Disabled(), []string{id}), true)
		equal(t, "rows", n.count(t, `SELECT count(*) FROM users WHERE id = ?`, id), 1)
	}

	ok(t, cloud.Enable(t.Context(), id))
	carry(t, cloud, home)
	equal(t, "disabled at home", len(home.Disabled()), 0)
	equal(t, "the old session", alive(t, home, atHome), false)
	login(t, home, ada, password)
}

func TestANewPasswordEndsSessionsAsItArrives(t *testing.T) { // R:G2
	cloud, home, id := twoNodes(t)
	addUser(t, cloud, "bob@example.org")
	carry(t, cloud, home)
	mine, his := login(t, home, ada, password), login(t, home, "bob@example.org", password)
	ok(t, cloud.SetPassword(t.Context(), id, "another horse"))
	equal(t, "until it arrives", alive(t, home, mine), true)
	carry(t, cloud, home)
	equal(t, "mine", alive(t, home, mine), false)
	equal(t, "his", alive(t, home, his), true)
	again := login(t, home, ada, "another horse")
	equal(t, "accounts", home.accounts(t), cloud.accounts(t))

	ok(t, cloud.change(t.Context(), func(tx *sqlite.Tx) (bool, error) { // another version alone is enough
		_, err := tx.Exec(`UPDATE users SET password_version = password_version + 1 WHERE id = ?`, id)
		return true, err
	}))
	carry(t, cloud, home)
	equal(t, "sessions of mine", home.count(t, `SELECT count(*) FROM sessions WHERE user_id = ?`, id), 0)
	equal(t, "the last one", alive(t, home, again), false)
}

func TestADirectoryImportedTwiceIsImportedOnce(t *testing.T) {
	cloud, home, _ := twoNodes(t)
	token := login(t, home, ada, password)
	before, changes := home.dump(t), home.changes.Load()
	for range 2 {
		carry(t, cloud, home)
	}
	equal(t, "file", home.dump(t), before)
	equal(t, "changes", home.changes.Load(), changes)
	equal(t, "session", alive(t, home, token), true)
	equal(t, "generation", generationOf(t, home), generationOf(t, cloud))
}

func TestAnOlderDirectoryDoesNotUndoANewerOne(t *testing.T) {
	cloud, home, id := twoNodes(t)
	older, body, err := cloud.Export(t.Context())
	ok(t, err)
	ok(t, cloud.Disable(t.Context(), id))
	carry(t, cloud, home)
	before := home.dump(t)
	ok(t, home.Import(t.Context(), older, body)) // an answer that was long on its way
	equal(t, "file", home.dump(t), before)
	equal(t, "disabled", slices.Equal(home.Disabled(), []string{id}), true)
}

func TestADirectoryCutMidwayLeavesTheOldOne(t *testing.T) {
	cloud, home, id := twoNodes(t)
	token := login(t, home, ada, password)
	ok(t, cloud.SetPassword(t.Context(), id, "another horse"))
	addUser(t, cloud, "bob@example.org")
	eve := addUser(t, cloud, "eve@example.org")
	before, changes := home.dump(t), home.changes.Load()
	for _, cut := range []string{
		`BEFORE INSERT ON users WHEN NEW.id = '` + eve + `'`, // the others are written by then
		`BEFORE UPDATE ON directory`,
	} {
		home.sql(t, `CREATE TRIGGER cut `+cut+` BEGIN SELECT RAISE(ABORT, 'cut'); END`)
		generation, body, err := cloud.Export(t.Context())
		ok(t, err)
		if err := home.Import(t.Context(), generation, body); err == nil {
			t.Fatal("no error")
		}
		equal(t, "file", home.dump(t), before)
		equal(t, "session", alive(t, home, token), true)
		equal(t, "changes", home.changes.Load(), changes)
		home.sql(t, `DROP TRIGGER cut`)
	}
	carry(t, cloud, home)
	equal(t, "accounts", home.accounts(t), cloud.accounts(t))
	equal(t, "session", alive(t, home, token), false)
}

// The authority's folder was put back to before bob came: no account goes by itself.
func TestAnAccountThatTheAuthorityHasLostStaysHere(t *testing.T) {
	cloud, home, _ := twoNodes(t)
	bob := addUser(t, cloud, "bob@example.org")
	carry(t, cloud, home)
	his, before := login(t, home, "bob@example.org", password), home.dump(t)
	ok(t, cloud.change(t.Context(), func(tx *sqlite.Tx) (bool, error) {
		_, err := tx.Exec(`DELETE FROM users WHERE id = ?`, bob)
		return true, err
	}))
	generation, body, err := cloud.Export(t.Context())
	ok(t, err)
	refused(t, home.Import(t.Context(), generation, body), fault.Conflict, "accounts_put_back")
	equal(t, "file", home.dump(t), before)
	equal(t, "his session", alive(t, home, his), true)
	returned(t, home, cloud)
	equal(t, "at the cloud again", len(login(t, cloud, "bob@example.org", password)) > 0, true)
}

// returned has the authority take in what home holds, twice, and home take over what
// comes of it.
func returned(t *testing.T, home, cloud node) {
	t.Helper()
	for range 2 {
		held, err := home.Carry(t.Context(), nil)
		ok(t, err)
		ok(t, cloud.TakeIn(t.Context(), held))
	}
	carry(t, cloud, home)
	equal(t, "accounts", home.accounts(t), cloud.accounts(t))
}

// A password that was changed after a theft and a ban are not undone by a backup, at
// neither node, and what is newer at the authority is not undone by home.
func TestAnAuthorityThatWasPutBackUndoesNeitherAPasswordNorABan(t *testing.T) {
	cloud, home, id := twoNodes(t)
	bob := addUser(t, cloud, "bob@example.org")
	carol := addUser(t, cloud, "carol@example.org")
	carry(t, cloud, home)
	backup, err := cloud.Carry(t.Context(), nil)
	ok(t, err)
	ok(t, cloud.SetPassword(t.Context(), id, "another password"))
	ok(t, cloud.Disable(t.Context(), bob))
	carry(t, cloud, home)
	ok(t, cloud.change(t.Context(), func(tx *sqlite.Tx) (bool, error) {
		now, err := recordsTx(tx)
		ok(t, err)
		old, err := parse(backup)
		ok(t, err)
		return true, replaceTx(tx, now, old)
	}))
	stolen := login(t, cloud, ada, password)
	ok(t, cloud.SetPassword(t.Context(), carol, "carol's new password"))
	before := home.dump(t)
	generation, body, err := cloud.Export(t.Context())
	ok(t, err)
	refused(t, home.Import(t.Context(), generation, body), fault.Conflict, "accounts_put_back")
	equal(t, "file", home.dump(t), before)
	returned(t, home, cloud)
	equal(t, "the session of the old password", alive(t, cloud, stolen), false)
	for _, n := range []node{cloud, home} {
		login(t, n, ada, "another password")
		login(t, n, "carol@example.org", "carol's new password")
		if _, _, err := n.Login(t.Context(), "bob@example.org", password); err == nil {
			t.Error("bob's ban is lifted")
		}
	}
}

// The later of two changes is later, also where the clock was put back between them.
func TestAChangeIsNewerThanTheOneBeforeWhateverTheClockSays(t *testing.T) {
	cloud, home, id := twoNodes(t)
	cloud.sql(t, `UPDATE users SET updated_at = updated_at + 31536000000`) // the clock was a year ahead
	ok(t, cloud.change(t.Context(), func(*sqlite.Tx) (bool, error) { return true, nil }))
	carry(t, cloud, home)
	ok(t, cloud.SetPassword(t.Context(), id, "another password"))
	carry(t, cloud, home)
	ok(t, cloud.Disable(t.Context(), id))
	carry(t, cloud, home)
	ok(t, cloud.Enable(t.Context(), id))
	carry(t, cloud, home)
	login(t, home, ada, "another password")
}

func TestTwoAccountsMayHaveSwappedAddresses(t *testing.T) {
	cloud, home, id := twoNodes(t)
	bob := addUser(t, cloud, "bob@example.org")
	carry(t, cloud, home)
	token := login(t, home, "bob@example.org", password)
	ok(t, cloud.change(t.Context(), func(tx *sqlite.Tx) (bool, error) {
		for _, to := range [][2]string{{bob, "nobody@example.org"}, {id, "bob@example.org"}, {bob, ada}} {
			if _, err := tx.Exec(`UPDATE users SET email = ? WHERE id = ?`, to[1], to[0]); err != nil {
				return false, err
			}
		}
		return true, nil
	}))
	carry(t, cloud, home)
	equal(t, "accounts", home.accounts(t), cloud.accounts(t))
	who, err := home.Authenticate(t.Context(), token) // the session is bob's under any address
	ok(t, err)
	equal(t, "identity", who.UserID+" "+who.Email, bob+" "+ada)
}

// An authority that was begun anew is another one, also with the same address: what the
// old account owns would be nobody's. Only who joins it takes its accounts.
func TestAnAuthorityThatWasBegunAnewIsTakenOnlyByJoining(t *testing.T) {
	_, home, _ := twoNodes(t)
	other := run(t, 3, true)
	newID := first(t, other)
	token, before := login(t, home, ada, password), home.dump(t)
	generation, body, err := other.Export(t.Context())
	ok(t, err)
	refused(t, home.Import(t.Context(), generation, body), fault.Conflict, "accounts_put_back")
	equal(t, "file", home.dump(t), before)
	held, err := home.Carry(t.Context(), nil)
	ok(t, err)
	refused(t, other.TakeIn(t.Context(), held), fault.Conflict, "accounts_changed") // the address is another account's there
	ok(t, home.Join(t.Context(), generation, body))
	equal(t, "accounts", home.accounts(t), other.accounts(t))
	equal(t, "the old session", alive(t, home, token), false)
	who, err := home.Authenticate(t.Context(), login(t, home, ada, password))
	ok(t, err)
	equal(t, "id", who.UserID, newID)
}

func TestAnEmptyDirectoryDoesNotLockEverybodyOut(t *testing.T) {
	_, home, _ := twoNodes(t)
	empty := run(t, 3, true)
	token, before := login(t, home, ada, password), home.dump(t)
	generation, body, err := empty.Export(t.Context())
	ok(t, err)
	equal(t, "body", string(body), `{"accounts":[]}`)
	refused(t, home.Import(t.Context(), generation, body), fault.Conflict, "accounts_put_back")
	equal(t, "file", home.dump(t), before)
	equal(t, "session", alive(t, home, token), true)

	fresh := run(t, 4, false)
	equal(t, "generation of nothing", generationOf(t, fresh), "")
	ok(t, fresh.Import(t.Context(), generation, body))
	equal(t, "generation", generationOf(t, fresh), generation)
	returned(t, home, empty)
	login(t, empty, ada, password)
}

func TestJunkIsRefusedAndChangesNothing(t *testing.T) {
	cloud, home, _ := twoNodes(t)
	addUser(t, cloud, "bob@example.org")
	generation, body, err := cloud.Export(t.Context())
	ok(t, err)
	before := home.dump(t)
	edit := func(path string, v any) []byte { // the last account with one field changed
		var d map[string][]map[string]any
		ok(t, json.Unmarshal(body, &d))
		d["accounts"][1][path] = v
		b, err := json.Marshal(d)
		ok(t, err)
		return b
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "null": []byte(`null`), "a list": []byte(`[]`), "no accounts": []byte(`{}`),
		"null accounts": []byte(`{"accounts":null}`), "cut off": body[:len(body)-2], "trailing": append(slices.Clone(body), "{}"...),
		"html": []byte(`<html>502</html>`), "bad utf-8": []byte(strings.Replace(string(body), "bob", "b\xffb", 1)),
		"a null account":    []byte(`{"accounts":[null]}`),
		"lower-case id":     edit("id", strings.ToLower("01J00000000000000000000000")),
		"short id":          edit("id", "01J"),
		"no id":             edit("id", nil),
		"same e-mail":       edit("email", ada),
		"e-mail as typed":   edit("email", "Bob@example.org"),
		"no e-mail":         edit("email", ""),
		"no hash":           edit("password_hash", ""),
		"plain password":    edit("password_hash", password),
		"bcrypt":            edit("password_hash", "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"),
		"no lanes":          edit("password_hash", "$argon2id$v=19$m=8,t=1,p=0$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA"),
		"ruinous memory":    edit("password_hash", "$argon2id$v=19$m=4194304,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA"),
		"no key":            edit("password_hash", "$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$"),
		"unknown role":      edit("role", "root"),
		"version 0":         edit("password_version", 0),
		"fraction":          edit("password_version", 1.5),
		"negative time":     edit("disabled_at", -1),
		"time as text":      edit("created_at", "2026-01-01T00:00:00Z"),
		"time out of range": []byte(strings.Replace(string(edit("created_at", 7)), `"created_at":7`, `"created_at":1e30`, 1)),
	} {
		err := home.Import(t.Context(), generation, bad)
		if err == nil {
			t.Errorf("%s was taken", name)
			continue
		}
		e := refused(t, err, fault.Malformed, "bad_directory")
		for _, secret := range []string{"argon2id", password, "example.org"} {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("%s: the error tells %q", name, e.Error())
			}
		}
		equal(t, name, home.dump(t), before)
	}
	for _, bad := range []string{"", "/1", "abc", "abc/", "abc/-1", "abc/01", "abc/1/2", "abc/9223372036854775808", strings.Repeat("x", 99) + "/1"} {
		refused(t, home.Import(t.Context(), bad, body), fault.Malformed, "bad_directory")
		equal(t, bad, home.dump(t), before)
	}
	ok(t, home.Import(t.Context(), generation, edit("colour", "blue"))) // a newer authority knows more
	equal(t, "accounts", home.accounts(t), cloud.accounts(t))
}

// Whatever a broken line does to a directory, it is taken whole or refused as bad.
func TestADamagedDirectoryIsTakenWholeOrRefused(t *testing.T) {
	cloud, home, _ := twoNodes(t)
	addUser(t, cloud, "bob@example.org")
	_, body, err := cloud.Export(t.Context())
	ok(t, err)
	var n uint64
	rapid.Check(t, func(rt *rapid.T) {
		damaged := slices.Clone(body)
		for range rapid.IntRange(1, 3).Draw(rt, "strokes") {
			damaged[rapid.IntRange(0, len(damaged)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		n++
		g := generation{"damaged", n}.String()
		before := home.dump(t)
		err := home.Import(context.Background(), g, damaged)
		switch {
		case err != nil && !fault.Of(err, fault.Malformed):
			rt.Fatalf("%v", err)
		case err != nil && home.dump(t) != before:
			rt.Fatalf("refused, and yet the file changed")
		case err == nil && generationOf(t, home) != g:
			rt.Fatalf("taken, and not held")
		}
	})
}

// A restored authority counts again through numbers it has used; its peer must not
// take the one state for the other.
func TestARestoredAuthorityHasAnotherGeneration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.db")
	cloud, home := start(t, path, 1, true), run(t, 2, false)
	id := first(t, cloud)
	cloud.stop(t)
	backup := folder(t, filepath.Dir(path))

	cloud = start(t, path, 3, true)
	ok(t, cloud.SetPassword(t.Context(), id, "password after"))
	carry(t, cloud, home)
	lost := generationOf(t, cloud)
	token := login(t, home, ada, "password after")
	cloud.stop(t)
	for name := range folder(t, filepath.Dir(path)) {
		ok(t, os.Remove(filepath.Join(filepath.Dir(path), name)))
	}
	for name, content := range backup {
		ok(t, os.WriteFile(filepath.Join(filepath.Dir(path), name), content, 0o600))
	}

	cloud = start(t, path, 4, true)
	defer cloud.stop(t)
	login(t, cloud, ada, password) // as it was
	if generationOf(t, cloud) == lost {
		t.Error("restored, and the same before any change")
	}
	ok(t, cloud.SetPassword(t.Context(), id, "password instead")) // the same version, another hash
	if generationOf(t, cloud) == lost {
		t.Error("restored, and the same after a change")
	}
	carry(t, cloud, home)
	equal(t, "accounts", home.accounts(t), cloud.accounts(t))
	equal(t, "the lost password's session", alive(t, home, token), false)
	login(t, home, ada, "password instead")
}

func TestARestartOfTheAuthorityEndsNoSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.db")
	cloud, home := start(t, path, 1, true), run(t, 2, false)
	id := first(t, cloud)
	bob := addUser(t, cloud, "bob@example.org")
	ok(t, cloud.Disable(t.Context(), bob))
	carry(t, cloud, home)
	token := login(t, home, ada, password)
	cloud.stop(t)
	cloud = start(t, path, 3, true)
	defer cloud.stop(t)
	equal(t, "disabled after a restart", slices.Equal(cloud.Disabled(), []string{bob}), true)
	carry(t, cloud, home)
	equal(t, "session", alive(t, home, token), true)
	equal(t, "generation", generationOf(t, home), generationOf(t, cloud))
	ok(t, cloud.Disable(t.Context(), id))
	carry(t, cloud, home)
	equal(t, "session after a ban", alive(t, home, token), false)
}

func TestEachGenerationIsAnnouncedOnce(t *testing.T) {
	cloud, home := run(t, 1, true), run(t, 2, false)
	equal(t, "at the start", cloud.changes.Load(), 0)
	seen := map[string]bool{generationOf(t, cloud): true}
	id := first(t, cloud)
	for i, change := range []func() error{
		func() error { return nil },
		func() error { return cloud.SetPassword(t.Context(), id, "another horse") },
		func() error { return cloud.Disable(t.Context(), id) },
		func() error { return cloud.Enable(t.Context(), id) },
	} {
		ok(t, change())
		g := generationOf(t, cloud)
		if seen[g] {
			t.Errorf("change %d: %s again", i, g)
		}
		seen[g] = true
		equal(t, "announced by the authority", cloud.changes.Load(), int32(i+1))
		carry(t, cloud, home)
		equal(t, "announced by the other", home.changes.Load(), int32(i+1))
	}
	login(t, cloud, ada, "another horse")
	equal(t, "a login is no change", cloud.changes.Load(), 4)
}
