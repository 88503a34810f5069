package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tandem/internal/pairing"
)

func unpairCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "unpair",
		Short: "Forget the other node, and let it in no more",
		Long: `Forget the other node: the secret that both share is replaced here, and with it goes
how far each has read of the other. What came from there stays. From then on this node
calls nobody and lets nobody in, whatever secret it has, until tandem pair. Take the
section peer out of the configuration afterwards. A node at home that stays on its own is then
where its accounts live: people log in there as before.`,
		Example: "  tandem unpair --config configs/local.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			done, err := operate(c.Context(), o, "unpair", struct{}{}, (*node).unpair)
			if err == nil {
				o.reportUnpaired(done)
			}
			return err
		},
	}
}

func (o *options) reportUnpaired(done pairing.Unpaired) {
	fmt.Fprintf(o.out, "%s is forgotten, and is let in no more until tandem pair.\n", done.Peer)
	if done.SecretFixed {
		fmt.Fprintln(o.out, "The secret still stands in the configuration (peer.token, or its variable). Take it out: it opens nothing here any more.")
	}
	fmt.Fprintln(o.out, "Take the section peer out of the configuration (or name another node there, and pair), and restart the node.")
	if done.Home {
		fmt.Fprintf(o.out, "Without a peer the accounts live here, as they last came from %s: people log in as before.\n", done.Peer)
	}
}
