// Command pocketbase is PocketBase set up to do what Tandem does in the bench:
// one user, one collection of todos that only a logged-in user may touch, and
// synchronous=FULL instead of the NORMAL it ships with. Everything else is as
// shipped: its request log is on, its rate limits are off.
//
//	pocketbase prepare --dir DIR                      # schema and user
//	pocketbase serve --dir DIR --http 127.0.0.1:8090
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/types"
	"github.com/spf13/cobra"
)

// pragmas are PocketBase's own, in its order, with synchronous raised to FULL.
const pragmas = "?_pragma=busy_timeout(10000)" +
	"&_pragma=journal_mode(WAL)" +
	"&_pragma=journal_size_limit(200000000)" +
	"&_pragma=synchronous(FULL)" +
	"&_pragma=foreign_keys(ON)" +
	"&_pragma=temp_store(MEMORY)" +
	"&_pragma=cache_size(-32000)"

func main() {
	app := pocketbase.NewWithConfig(pocketbase.Config{
		HideStartBanner: true,
		DBConnect: func(path string) (*dbx.DB, error) {
			return dbx.Open("sqlite", path+pragmas)
		},
	})
	app.RootCmd.AddCommand(&cobra.Command{
		Use:   "prepare EMAIL",
		Short: "make the collection and one user, whose password is read from stdin",
		Args:  cobra.ExactArgs(1),
		Run: func(_ *cobra.Command, args []string) {
			// PocketBase drops what a command returns and exits 0.
			if err := prepare(app, args[0]); err != nil {
				log.Fatal(err)
			}
		},
	})
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		if err := mustBeFull(app); err != nil {
			log.Fatal(err)
		}
		e.InstallerFunc = nil // it would open a browser on a folder without an admin
		return e.Next()
	})
	if err := app.Start(); err != nil {
		log.Fatal(err)
	}
}

// mustBeFull reads the level back: SQLite ignores a pragma it cannot read, and
// a rival at NORMAL would be another race.
func mustBeFull(app core.App) error {
	const full = 2
	for _, db := range []dbx.Builder{app.ConcurrentDB(), app.NonconcurrentDB(), app.AuxConcurrentDB(), app.AuxNonconcurrentDB()} {
		var level int
		if err := db.NewQuery("PRAGMA synchronous").Row(&level); err != nil {
			return err
		}
		if level != full {
			return fmt.Errorf("synchronous is %d, not FULL", level)
		}
	}
	return nil
}

func prepare(app core.App, email string) error {
	password, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	if err := app.RunAllMigrations(); err != nil {
		return err
	}
	if err := app.Save(todos()); err != nil {
		return err
	}
	users, err := app.FindCollectionByNameOrId("users")
	if err != nil {
		return err
	}
	user := core.NewRecord(users)
	user.SetEmail(email)
	user.SetPassword(strings.TrimSpace(string(password)))
	user.SetVerified(true)
	return app.Save(user)
}

// todos is the smallest collection that holds what a Tandem todo is made of
// here. Any logged-in user may see every row, which is cheaper than Tandem's
// owner check.
func todos() *core.Collection {
	c := core.NewBaseCollection("todos_auth")
	c.Fields.Add(&core.TextField{Name: "content", Required: true})
	c.Fields.Add(&core.DateField{Name: "due_at"})
	c.Fields.Add(&core.BoolField{Name: "done"})
	c.Fields.Add(&core.AutodateField{Name: "created_at", OnCreate: true})
	c.Fields.Add(&core.AutodateField{Name: "updated_at", OnCreate: true, OnUpdate: true})
	c.AddIndex("idx_todos_auth_updated_at", false, "updated_at", "")
	rule := types.Pointer("@request.auth.id != ''")
	c.ListRule, c.ViewRule, c.CreateRule, c.UpdateRule, c.DeleteRule = rule, rule, rule, rule, rule
	return c
}
