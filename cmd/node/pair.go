package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/pairing"
)

var errNotRunning = fault.New(fault.Conflict, "not_running", "A code is good only while the node runs that takes it. Start it, and do it again.")

func pairCommand(o *options) *cobra.Command {
	var rotate, stdin bool
	c := &cobra.Command{
		Use:   "pair [CODE]",
		Short: "Join the two nodes by a code, or change the secret they share",
		Long: `Join the two nodes. At the cloud, while it runs, it prints a code that is good once,
for ten minutes. At home, with that code, it says what will happen, asks for what it
needs, and makes the two a pair: accounts that the cloud lacks go there, an account of
one address at both nodes becomes one with all that either holds, of an account that
both have already the later password stays, and both keep a new secret in
peer.token_file. A home that was paired before is put out. Each configuration must name the other node already.
Cut off on the way nothing is lost: do it again with another code.`,
		Example: `  tandem pair --config configs/cloud.yaml                    at the cloud: print a code
  tandem pair --config configs/local.yaml bcdf-ghjk-...      at home: join
  tandem pair --config configs/local.yaml --rotate           at home: change the secret`,
		Args: cobra.ArbitraryArgs, // the groups of a code may be typed apart
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := o.load()
			switch {
			case err != nil:
				return err
			case cfg.Peer.Token != "":
				return pairing.ErrSecretFixed
			case rotate && len(args) > 0:
				return fmt.Errorf("%w: --rotate needs no code\nSee: %s --help", errUsage, c.CommandPath())
			case rotate:
				return o.rotate(c.Context())
			case len(args) == 0:
				return o.printCode(c.Context(), cfg.Node)
			}
			code, ok := pairing.ReadCode(strings.Join(args, ""))
			if !ok {
				return fmt.Errorf("%w: a code is 32 letters, in groups as the other node has printed them\nSee: %s --help", errUsage, c.CommandPath())
			}
			return o.pair(c.Context(), code, stdin)
		},
	}
	c.Flags().BoolVar(&rotate, "rotate", false, "change the secret of two nodes that are a pair")
	c.Flags().BoolVar(&stdin, "password-stdin", false, "read the passwords that are asked for from standard input, a line each, in the order of the addresses")
	return c
}

func (o *options) printCode(ctx context.Context, node config.Node) error {
	if node.Origin != 1 {
		return fmt.Errorf("%w: the code comes from the node of origin 1: run tandem pair there, and tandem pair CODE here", errUsage)
	}
	code, running, err := ask[pairing.Code](ctx, node.Data, "pair/open", struct{}{})
	if err == nil && !running {
		err = errNotRunning.Because(errors.New(o.line("serve")))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "At %s, until %s, with its configuration as FILE:\n\n  tandem pair --config FILE %s\n\nIt is good once. Another one voids it, and so do %d wrong tries.\n",
		code.Peer, code.Until.Format(time.TimeOnly), pairing.Spell(code.Code), pairing.CodeTries)
	if code.Met > 0 {
		fmt.Fprintf(o.out, "\nThis node was in touch with %s until %s. If another one takes the code, that one is put out: it is let in no more, and what it has not sent stays there.\n", code.Peer, minute(code.Met))
	}
	return nil
}

// minute is a time as the lines of pair show it.
func minute(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04 UTC") }

func (o *options) pair(ctx context.Context, code string, stdin bool) error {
	plan, err := operate(ctx, o, "pair/look", pairing.Request{Code: code}, (*node).pairLook)
	if err != nil {
		return err
	}
	o.foretell(plan)
	passwords, err := o.passwords(plan.Shared, stdin)
	if err != nil {
		return err
	}
	if _, err := operate(ctx, o, "pair/join", pairing.Request{Code: code, Passwords: passwords}, (*node).pairJoin); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "Paired with %s. Accounts live there from now on; all else follows within half a minute while both run.\n", plan.Peer)
	return nil
}

// foretell says what pairing is going to do.
func (o *options) foretell(plan pairing.Plan) {
	if plan.Again {
		fmt.Fprintf(o.out, "This node and %s are a pair already; they get another secret.\n", plan.Peer)
	}
	if plan.Met > 0 {
		fmt.Fprintf(o.out, "%s was a pair with a home before, and in touch with it until %s. If that was another one than this, it is put out: %s lets it in no more, and what it has not sent stays there.\n", plan.Peer, minute(plan.Met), plan.Peer)
	}
	for _, email := range plan.Ours {
		fmt.Fprintf(o.out, "%s has an account at both nodes already. The password of this node was set later and stays; the one at %s is good no more.\n", email, plan.Peer)
	}
	for _, email := range plan.Theirs {
		fmt.Fprintf(o.out, "%s has an account at both nodes already. The password at %s was set later and stays; the one of this node is good no more.\n", email, plan.Peer)
	}
	for _, email := range plan.Going {
		fmt.Fprintf(o.out, "%s goes to %s, with its password.\n", email, plan.Peer)
	}
	for _, email := range plan.Shared {
		fmt.Fprintf(o.out, "%s has an account at both nodes. They become one, with %s's password; prove that it is yours by the one here.\n", email, plan.Peer)
	}
}

// passwords reads a line for each address.
func (o *options) passwords(emails []string, stdin bool) (map[string]string, error) {
	typed := map[string]string{}
	in := bufio.NewReader(io.LimitReader(o.in, 1<<20))
	for _, email := range emails {
		if !stdin {
			fmt.Fprintf(o.err, "Password of %s at this node (shown as you type): ", email)
		}
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		typed[email] = strings.TrimRight(line, "\r\n")
	}
	return typed, nil
}

func (o *options) rotate(ctx context.Context) error {
	plan, err := operate(ctx, o, "pair/rotate", struct{}{}, (*node).pairRotate)
	if err == nil {
		fmt.Fprintf(o.out, "The secret shared with %s is a new one. The old one opens nothing any more.\n", plan.Peer)
	}
	return err
}
