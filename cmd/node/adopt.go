package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tandem/internal/config"
	"tandem/internal/sqlite"
	nodesync "tandem/internal/sync"
	"tandem/internal/sync/letters"
	"tandem/internal/users"
)

func adoptCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "adopt",
		Short: "Make a copied data folder the node that the configuration names",
		Long: `Make a data folder that was copied from another node the node that the configuration
names by node.name and node.origin. What is in it stays; from now on it gives out keys
of its own, so that neither node replaces what the other makes. Sessions end. Reminders
that were waiting to be sent are the other node's to send. The node must not run.`,
		Example: `  cp -r data/local data/cloud
  tandem adopt --config configs/cloud.yaml`,
		RunE: func(c *cobra.Command, _ []string) error { return o.adopt(c.Context(), world()) },
	}
}

func (o *options) adopt(ctx context.Context, out outside) (err error) {
	c, err := o.load()
	if err != nil {
		return err
	}
	here, _, err := lookInto(c.Node.Data)
	if err == nil && len(here) == 0 {
		err = fmt.Errorf("there is nothing in %s to adopt", c.Node.Data)
	}
	if err != nil {
		return err
	}
	f, err := openFolder(ctx, c.Node.Data, out, o.logger())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	err = nodesync.Belongs(ctx, f.todos, fencePath(f.dir), c.Node.Name, int64(c.Node.Origin))
	if err == nil {
		fmt.Fprintf(o.out, "%s is %s's own already; nothing was changed.\n", f.dir, c.Node.Name)
		return nil
	}
	if !errors.Is(err, nodesync.ErrAnotherNode) {
		return err
	}
	parked, err := f.adopt(ctx, c.Node, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s is %s's own now, with keys of its own. Everybody logs in anew.\n", f.dir, c.Node.Name)
	if parked > 0 {
		fmt.Fprintf(o.out, "%d notices were waiting to be sent where it comes from; they are not sent from here.\n", parked)
	}
	fmt.Fprintln(o.out, "Start the node:", o.line("serve"))
	return nil
}

// adopt makes the folder the node's. Whose it is changes last, so that one that is
// killed before is refused by a start, and adopted again.
func (f *folder) adopt(ctx context.Context, node config.Node, out outside) (parked int, err error) {
	if parked, err = f.startOver(ctx); err != nil {
		return 0, err
	}
	if err := f.users.Write(ctx, users.AdoptTx); err != nil {
		return 0, err
	}
	// The answers that the other node gave are its own, and so is what seals them; its
	// letters are its to send.
	err = f.todos.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`DELETE FROM idempotency`)
		return errors.Join(err, letters.AdoptTx(tx))
	})
	if err != nil {
		return 0, err
	}
	out.crash("adopt.started")
	key := filepath.Join(f.dir, keyName)
	if err := os.Remove(key); err != nil {
		return 0, err
	}
	if f.secret, err = loadSecret(key, out.rand); err != nil {
		return 0, err
	}
	out.crash("adopt.sealed")
	return parked, nodesync.Adopt(ctx, f.todos, fencePath(f.dir), node.Name, int64(node.Origin))
}
