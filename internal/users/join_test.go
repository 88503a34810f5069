package users

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// joinable is a node that was alone and has accounts of its own, and the authority
// of a pair that it is about to join.
func joinable(t *testing.T) (home, cloud node, adas string) {
	path := filepath.Join(t.TempDir(), "users.db")
	was := start(t, path, 1, true)
	adas = first(t, was)
	addUser(t, was, "bob@example.org")
	was.stop(t)
	return start(t, path, 2, false), run(t, 3, true), adas
}

func carried(t testing.TB, home node, ids ...string) []byte {
	t.Helper()
	known, err := home.Known(t.Context())
	ok(t, err)
	others := map[string]string{}
	for _, k := range known {
		if !slices.Contains(ids, k.ID) {
			others[k.ID] = "another at the cloud"
		}
	}
	body, err := home.Carry(t.Context(), others)
	ok(t, err)
	return body
}

func TestAccountsOfANodeThatWasAloneGoToTheCloudOnce(t *testing.T) {
	home, cloud, adas := joinable(t)
	defer home.stop(t)
	body := carried(t, home, adas)
	ok(t, cloud.TakeIn(t.Context(), body))
	login(t, cloud, ada, password) // as before, under the same id
	have, err := cloud.Known(t.Context())
	ok(t, err)
	equal(t, "accounts", len(have), 1)
	equal(t, "the id", have[0], Known{adas, ada})
	a, err := cloud.Find(t.Context(), ada)
	ok(t, err)
	equal(t, "the role", a.Role, Admin)

	// The cloud's own changes since then are newer than what comes again.
	ok(t, cloud.SetPassword(t.Context(), adas, "password after"))
	before := generationOf(t, cloud)
	ok(t, cloud.TakeIn(t.Context(), body))
	login(t, cloud, ada, "password after")
	equal(t, "the generation", generationOf(t, cloud), before)
}

func TestAnAddressThatIsTakenMeanwhileIsNotTakenIn(t *testing.T) {
	home, cloud, adas := joinable(t)
	defer home.stop(t)
	first(t, cloud) // Ada, under another id
	ids := []string{adas}
	known, err := home.Known(t.Context())
	ok(t, err)
	for _, k := range known {
		ids = append(ids, k.ID)
	}
	for range 2 {
		err = cloud.TakeIn(t.Context(), carried(t, home, ids...))
		if !errors.Is(err, errAccountsMoved) {
			t.Errorf("taken in: %v", err)
		}
		equal(t, "out", strings.Join(cloud.Clashing(), " "), ada)
		equal(t, "the ids of ada's", cloudsAda(t, cloud) != adas, true)
		login(t, cloud, "bob@example.org", password) // nothing keeps his out
	}
	ok(t, cloud.TakeIn(t.Context(), carried(t, home)))
	equal(t, "out, once they are one", len(cloud.Clashing()), 0)
}

// One address is another account's at the authority: what else changes there is heard of
// at home all the same, under the name of a directory that home is still without.
func TestOneClashOfAddressesKeepsNoBanFromHome(t *testing.T) {
	cloud, home, _ := twoNodes(t)
	bob := addUser(t, cloud, "bob@example.org")
	carry(t, cloud, home)
	held, before := generationOf(t, home), login(t, home, "bob@example.org", password)
	other := run(t, 3, true) // it was begun anew, with Ada first
	first(t, other)
	all, err := home.Carry(t.Context(), nil)
	ok(t, err)
	refused(t, other.TakeIn(t.Context(), all), fault.Conflict, "accounts_changed")
	ok(t, other.Disable(t.Context(), bob))
	for range 2 {
		generation, body, err := other.Export(t.Context())
		ok(t, err)
		e := refused(t, home.Import(t.Context(), generation, body), fault.Conflict, "accounts_put_back")
		if !strings.Contains(e.Error(), ada) {
			t.Errorf("it does not name the address: %v", e)
		}
		equal(t, "generation", generationOf(t, home), held)
		equal(t, "his session", alive(t, home, before), false)
		equal(t, "banned", strings.Join(home.Disabled(), " "), bob)
		equal(t, "changes", home.changes.Load(), 3)
		login(t, home, ada, password)
	}
}

func TestOnlyTheAuthorityTakesAccountsInAndOnlySoundOnes(t *testing.T) {
	home, cloud, adas := joinable(t)
	body := carried(t, home, adas)
	for _, junk := range []string{"", "{}", "[]", string(body[:len(body)/2]), strings.Replace(string(body), `"admin"`, `"king"`, 1)} {
		if err := cloud.TakeIn(t.Context(), []byte(junk)); !errors.Is(err, errBadDirectory) {
			t.Errorf("%.20q: %v", junk, err)
		}
	}
	equal(t, "accounts", cloud.accounts(t), "null")
	if err := home.TakeIn(t.Context(), body); err == nil {
		t.Error("a copy of the directory took accounts in")
	}
	var d directory
	ok(t, json.Unmarshal(carried(t, home), &d))
	equal(t, "carried of nobody", len(d.Accounts), 0)
}

func TestWhoGivesAnAccountAwayProvesItsPassword(t *testing.T) {
	home, _, adas := joinable(t)
	ok(t, home.Prove(t.Context(), adas, password))
	for _, wrong := range []string{"", "correct horse ", "Correct horse"} {
		if err := home.Prove(t.Context(), adas, wrong); !errors.Is(err, errCredentials) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if err := home.Prove(t.Context(), "nobody", password); !errors.Is(err, errCredentials) {
		t.Errorf("nobody: %v", err)
	}
}

// A node that was alone keeps its accounts until it is joined: another's that lack them
// would leave their todos to nobody.
func TestAccountsOfANodeThatWasAloneAreNotReplacedUnasked(t *testing.T) {
	home, cloud, adas := joinable(t)
	equal(t, "unjoined", home.Unjoined(), true)
	equal(t, "the cloud", cloud.Unjoined(), false)
	first(t, cloud) // Ada, under another id
	generation, body, err := cloud.Export(t.Context())
	ok(t, err)
	before := home.accounts(t)
	if err := home.Import(t.Context(), generation, body); !errors.Is(err, ErrUnjoined) {
		t.Errorf("replaced: %v", err)
	}
	equal(t, "accounts", home.accounts(t), before)
	for range 2 {
		ok(t, home.Join(t.Context(), generation, body))
		equal(t, "accounts", home.accounts(t), cloud.accounts(t))
		equal(t, "unjoined", home.Unjoined(), false)
	}
	ok(t, cloud.SetPassword(t.Context(), cloudsAda(t, cloud), "password after"))
	carry(t, cloud, home)
	equal(t, "accounts", home.accounts(t), cloud.accounts(t))

	again, empty, _ := joinable(t)
	known, err := again.Known(t.Context())
	ok(t, err)
	ok(t, empty.TakeIn(t.Context(), carried(t, again, adas, known[0].ID, known[1].ID)))
	carry(t, empty, again) // the same accounts: nothing changes hands
	equal(t, "unjoined", again.Unjoined(), false)
}

func cloudsAda(t testing.TB, n node) string {
	t.Helper()
	a, err := n.Find(context.Background(), ada)
	ok(t, err)
	return a.ID
}

func TestAFileThatStartsOverHasNoSessionAndTakesAnyDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.db")
	cloud, home := run(t, 1, true), start(t, path, 2, false)
	first(t, cloud)
	carry(t, cloud, home)
	token := login(t, home, ada, password)
	ok(t, home.db.Write(context.Background(), func(tx *sqlite.Tx) error { return StartOverTx(tx) }))
	home.stop(t)
	home = start(t, path, 3, false)
	defer home.stop(t)
	equal(t, "the session", alive(t, home, token), false)
	equal(t, "the generation", generationOf(t, home), "")
	login(t, home, ada, password) // the copy itself is good until another comes
	carry(t, cloud, home)
	equal(t, "the generation", generationOf(t, home), generationOf(t, cloud))
}

// A pair was parted, and Ada changed her password at home. The cloud has her account
// still, from before: it is not taken over unasked, and joining keeps the newer record.
func TestAPasswordThatWasChangedWhileAloneIsNotUndoneByTheSameAccount(t *testing.T) {
	home, cloud, adas := joinable(t)
	known, err := home.Known(t.Context())
	ok(t, err)
	ok(t, cloud.TakeIn(t.Context(), carried(t, home, known[0].ID, known[1].ID)))
	home.sql(t, `UPDATE users SET disabled_at = 1, updated_at = updated_at + 1, ban_at = updated_at + 1 WHERE id = '`+adas+`'`)
	before := home.accounts(t)
	generation, body, err := cloud.Export(t.Context())
	ok(t, err)
	if err := home.Import(t.Context(), generation, body); !errors.Is(err, ErrUnjoined) {
		t.Errorf("replaced: %v", err)
	}
	equal(t, "accounts", home.accounts(t), before)
	all, err := home.Carry(t.Context(), nil)
	ok(t, err)
	ok(t, cloud.TakeIn(t.Context(), all))
	carry(t, cloud, home)
	equal(t, "accounts then", home.accounts(t), before)
}
