package users

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// putBack makes the accounts of an authority those of before, as a backup does.
func putBack(t *testing.T, cloud node, backup []byte) {
	t.Helper()
	ok(t, cloud.change(t.Context(), func(tx *sqlite.Tx) (bool, error) {
		now, err := recordsTx(tx)
		ok(t, err)
		old, err := parse(backup)
		ok(t, err)
		return true, replaceTx(tx, now, old)
	}))
}

// A backup is restored at the authority, and one part of an account is changed there
// before home calls: the other part is home's still.
func TestAPasswordLiftsNoBanAndABanBringsNoPasswordBack(t *testing.T) {
	for name, c := range map[string]struct {
		lost, then func(cloud node, id string) error
		password   string
		banned     bool
	}{
		"a ban, then a password": {
			func(cloud node, id string) error { return cloud.Disable(t.Context(), id) },
			func(cloud node, id string) error { return cloud.SetPassword(t.Context(), id, "after the restore") },
			"after the restore", true,
		},
		"a password, then a ban": {
			func(cloud node, id string) error { return cloud.SetPassword(t.Context(), id, "after a theft") },
			func(cloud node, id string) error { return cloud.Disable(t.Context(), id) },
			"after a theft", true,
		},
		"a password, then a ban that is lifted": {
			func(cloud node, id string) error { return cloud.SetPassword(t.Context(), id, "after a theft") },
			func(cloud node, id string) error {
				if err := cloud.Disable(t.Context(), id); err != nil {
					return err
				}
				return cloud.Enable(t.Context(), id)
			},
			"after a theft", false,
		},
		"both, then a password": {
			func(cloud node, id string) error {
				if err := cloud.SetPassword(t.Context(), id, "after a theft"); err != nil {
					return err
				}
				return cloud.Disable(t.Context(), id)
			},
			func(cloud node, id string) error { return cloud.SetPassword(t.Context(), id, "after the restore") },
			"after the restore", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, home, id := twoNodes(t)
			backup, err := cloud.Carry(t.Context(), nil)
			ok(t, err)
			ok(t, c.lost(cloud, id))
			carry(t, cloud, home)
			putBack(t, cloud, backup)
			ok(t, c.then(cloud, id))
			generation, body, err := cloud.Export(t.Context())
			ok(t, err)
			refused(t, home.Import(t.Context(), generation, body), fault.Conflict, "accounts_put_back")
			returned(t, home, cloud)
			for _, n := range []node{cloud, home} {
				ok(t, n.Prove(t.Context(), id, c.password))
				equal(t, "banned", len(n.Disabled()) == 1, c.banned)
			}
			settled := cloud.accounts(t)
			returned(t, home, cloud) // and neither has anything to give back then
			equal(t, "once more", cloud.accounts(t), settled)
		})
	}
}

// partless is a directory as a node writes it that keeps one time for a whole account.
func partless(t *testing.T, body []byte) []byte {
	t.Helper()
	var d map[string][]map[string]any
	ok(t, json.Unmarshal(body, &d))
	for _, a := range d["accounts"] {
		delete(a, "password_at")
		delete(a, "ban_at")
	}
	b, err := json.Marshal(d)
	ok(t, err)
	return b
}

// The one time of an older version's account is the time of each part: of an account the
// newer record stays whole, as it did.
func TestADirectoryWithoutTimesOfPartsGoesByTheOne(t *testing.T) {
	cloud, home, id := twoNodes(t)
	ok(t, cloud.Disable(t.Context(), id))
	generation, body, err := cloud.Export(t.Context())
	ok(t, err)
	ok(t, home.Import(t.Context(), generation, partless(t, body)))
	equal(t, "banned", len(home.Disabled()), 1)
	equal(t, "times", home.count(t, `SELECT count(*) FROM users WHERE password_at = updated_at AND ban_at = updated_at`), 1)

	older, err := home.Carry(t.Context(), nil)
	ok(t, err)
	ok(t, cloud.SetPassword(t.Context(), id, "another password"))
	ok(t, cloud.Enable(t.Context(), id))
	before := cloud.accounts(t)
	ok(t, cloud.TakeIn(t.Context(), partless(t, older)))
	equal(t, "what is newer", cloud.accounts(t), before)
}

func TestAPartThatIsNewerThanItsAccountIsNoSoundRecord(t *testing.T) {
	cloud, home, _ := twoNodes(t)
	generation, body, err := cloud.Export(t.Context())
	ok(t, err)
	for _, part := range []string{"password_at", "ban_at"} {
		var d map[string][]map[string]any
		ok(t, json.Unmarshal(body, &d))
		for _, at := range []any{d["accounts"][0]["updated_at"].(float64) + 1, -1} {
			d["accounts"][0][part] = at
			bad, err := json.Marshal(d)
			ok(t, err)
			refused(t, home.Import(t.Context(), generation, bad), fault.Malformed, "bad_directory")
		}
	}
}

// Of a file that was written before parts had times the last change counts for both.
func TestAnOlderFilesAccountsGetTheTimesOfTheirLastChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.db")
	n := start(t, path, 1, true)
	id := first(t, n)
	for _, undo := range []string{`ALTER TABLE users DROP COLUMN password_at`, `ALTER TABLE users DROP COLUMN ban_at`, `UPDATE users SET updated_at = 4711`, `PRAGMA user_version = 3`} {
		n.sql(t, undo)
	}
	n.stop(t)
	n = start(t, path, 2, true)
	defer n.stop(t)
	if want := `"updated_at":4711,"password_at":4711,"ban_at":4711`; !strings.Contains(n.accounts(t), want) {
		t.Errorf("%s: %s", id, n.accounts(t))
	}
}
