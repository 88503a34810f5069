package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tandem/internal/config"
	"tandem/internal/sqlite"
	nodesync "tandem/internal/sync"
)

// finding is one thing that the doctor looked at.
type finding struct {
	Check  string `json:"check"`
	Level  level  `json:"level"`
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitempty"` // what to do about it
}

type level string

const (
	fine level = "ok"
	warn level = "warn" // works, but not as one would wish
	fail level = "fail" // something is not going to work
)

var errUnwell = errors.New("something is not going to work; see the lines marked fail")

func doctorCommand(o *options) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look at a node and say what is wrong and how to mend it",
		Long: `Look at a node's configuration, folder and files, and, while it runs, at its peer and
at what it delivers. Changes nothing. Exits 1 where something is not going to work.`,
		Example: "  tandem doctor --config configs/local.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			found, err := o.examine(c.Context(), world())
			if err != nil {
				return err
			}
			return o.report(found, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON list")
	return c
}

func (o *options) report(found []finding, asJSON bool) error {
	var err error
	for _, f := range found {
		if f.Level == fail {
			err = errUnwell
		}
		if asJSON {
			continue
		}
		fmt.Fprintf(o.out, "%-4s  %-10s %s\n", f.Level, f.Check, f.Detail)
		if f.Mend != "" {
			fmt.Fprintf(o.out, "                 → %s\n", f.Mend)
		}
	}
	if asJSON {
		e := json.NewEncoder(o.out)
		e.SetIndent("", "  ")
		return errors.Join(err, e.Encode(found))
	}
	return err
}

// examine asks the node where it runs, and otherwise looks for itself.
func (o *options) examine(ctx context.Context, out outside) ([]finding, error) {
	c, err := o.load()
	if err != nil {
		return nil, err
	}
	found := []finding{{"config", fine, fmt.Sprintf("node %s, origin %d, scheduler %s", c.Node.Name, c.Node.Origin, c.Scheduler.Mode), ""}}
	found = append(found, examineFolder(c.Node.Data)...)
	found = append(found, examineChannels(c)...)
	live, running, err := ask[[]finding](ctx, c.Node.Data, "doctor", struct{}{})
	if err != nil {
		return append(found, finding{"node", fail, err.Error(), "Restart the node."}), nil
	}
	if running {
		return append(append(found, finding{"node", fine, "it runs", ""}), live...), nil
	}
	found = append(found, finding{"node", warn, "it does not run", "Start it: " + o.line("serve")})
	return append(found, o.examineFiles(ctx, c.Node, out)...), nil
}

func examineFolder(dir string) []finding {
	fi, err := os.Stat(dir)
	switch {
	case err != nil:
		return []finding{{"folder", warn, err.Error(), "The first start makes it."}}
	case fi.Mode().Perm()&0o077 != 0:
		return []finding{{"folder", fail, fmt.Sprintf("%s can be read by others (%v)", dir, fi.Mode().Perm()), "chmod 700 " + dir}}
	}
	return []finding{{"folder", fine, dir, ""}}
}

func examineChannels(c config.Config) []finding {
	switch {
	case c.Scheduler.Mode != config.Active:
		return []finding{{"channels", fine, "this node does not ring, as scheduler.mode is " + string(c.Scheduler.Mode), ""}}
	case !c.Push.FCM.On() && !c.Push.Telegram.On():
		return []finding{{"channels", fail, "neither FCM nor Telegram is configured: reminders reach nobody", "Set push.fcm or push.telegram."}}
	case c.Push.Telegram.On() && c.Push.Telegram.ChatID == 0:
		return []finding{{"channels", warn, "Telegram has no chat to write to", "Set push.telegram.chat_id."}}
	}
	return []finding{{"channels", fine, channelNames(c), ""}}
}

func channelNames(c config.Config) string {
	switch {
	case !c.Push.Telegram.On():
		return "FCM"
	case !c.Push.FCM.On():
		return "Telegram"
	}
	return "FCM, then Telegram"
}

// examineFiles looks at the files of a folder that no node runs on, reading only.
func (o *options) examineFiles(ctx context.Context, node config.Node, out outside) (found []finding) {
	dir := node.Data
	here, gone, err := lookInto(dir)
	switch {
	case err != nil:
		found = append(found, finding{"files", fail, explain(err), ""})
	case len(gone) > 0:
		found = append(found, finding{"files", warn, fmt.Sprintf("%s has no databases", dir), "The first start makes them; if there were some, restore a backup."})
	}
	for _, schema := range schemas {
		if !slices.Contains(here, schema.File()) {
			continue
		}
		path := filepath.Join(dir, schema.File())
		db, err := sqlite.OpenReadOnly(ctx, sqlite.Options{Path: path, Schema: schema, Now: out.now})
		if err != nil {
			found = append(found, finding{"files", fail, explain(err), ""})
			continue
		}
		found = append(found, examineFile(ctx, db))
		if schema == sqlite.Todos {
			found = append(found, o.examineOwner(ctx, db, node)...)
		}
		_ = db.Close() // nothing was written
	}
	return found
}

// examineOwner looks whether a start would refuse a folder, since it is not this node's.
func (o *options) examineOwner(ctx context.Context, db *sqlite.DB, node config.Node) []finding {
	err := nodesync.Belongs(ctx, db, fencePath(node.Data), node.Name, int64(node.Origin))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nodesync.ErrAnotherNode):
		return []finding{{"files", fail, explain(err), "Correct node.data, or make the folder this node's own: " + o.line("adopt")}}
	case errors.Is(err, nodesync.ErrFence), errors.Is(err, nodesync.ErrFenceUnread):
		return []finding{{"files", fail, fmt.Sprintf("%s cannot be used (%v)", fencePath(node.Data), err), "Move " + fencePath(node.Data) + " out of the folder and start the node: it counts on from a number that is free. No row is lost by that."}}
	}
	return []finding{{"files", fail, explain(err), ""}}
}

// examineFile has SQLite look at every page of a file.
func examineFile(ctx context.Context, db *sqlite.DB) finding {
	said, err := sqlite.Read(ctx, db, func(tx *sqlite.Tx) ([]string, error) {
		return sqlite.All(tx, sqlite.Value[string], `PRAGMA quick_check`)
	})
	if err != nil || len(said) != 1 || said[0] != "ok" {
		why := strings.Join(said, "; ")
		if err != nil {
			why = explain(err)
		}
		return finding{"files", fail, fmt.Sprintf("%s is damaged: %s", db.Path(), why), "Stop the node and restore a backup: tandem restore."}
	}
	return finding{"files", fine, db.Path() + " is whole", ""}
}

// doctorFor is what only the running node knows.
func (n *node) doctorFor(ctx context.Context, _ struct{}) ([]finding, error) {
	found := append([]finding{examineFile(ctx, n.folder.todos), examineFile(ctx, n.folder.users), n.examineAccounts(ctx), n.examineOrphans(ctx)}, append(n.examineStamps(ctx), n.examinePeer()...)...)
	delivered, err := n.examineDelivery(ctx)
	return append(found, delivered...), err
}
