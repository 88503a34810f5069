package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

type userRequest struct{ Do, Email, Password string }

type userAnswer struct{ Email string }

func userCommand(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "user",
		Short: "Ban an account, let it in again, or give it a new password",
		Long: `Change an account at the node where accounts live. What ends sessions ends them at
once here, and on the other node as soon as the change arrives.`,
		Example: `  tandem user disable  --config configs/cloud.yaml ada@example.org
  echo "$PASSWORD" | tandem user password --config configs/cloud.yaml --password-stdin ada@example.org`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	add := func(do, short, example, done string) *cobra.Command {
		verb := &cobra.Command{Use: do + " EMAIL", Short: short, Example: example, Args: usage(cobra.ExactArgs(1))}
		verb.RunE = func(c *cobra.Command, args []string) error {
			return o.user(c.Context(), userRequest{Do: do, Email: args[0]}, done)
		}
		c.AddCommand(verb)
		return verb
	}
	add("disable", "Ban an account: its sessions end, its reminders pause, what it owns stays",
		"  tandem user disable --config configs/cloud.yaml ada@example.org", "%s is banned: logged out everywhere, reminders paused.\n")
	add("enable", "Lift a ban",
		"  tandem user enable --config configs/cloud.yaml ada@example.org", "%s may log in again; what came due meanwhile rings now.\n")
	const changed = "%s has a new password, and is logged out everywhere.\n"
	password := add("password", "Give an account a new password, which ends its sessions",
		`  echo "$PASSWORD" | tandem user password --config configs/cloud.yaml --password-stdin ada@example.org`, changed)
	stdin := password.Flags().Bool("password-stdin", false, "read the password from standard input, up to the end of the line")
	password.RunE = func(c *cobra.Command, args []string) error {
		typed, err := o.password(*stdin)
		if err != nil {
			return err
		}
		return o.user(c.Context(), userRequest{"password", args[0], typed}, changed)
	}
	return c
}

func (o *options) user(ctx context.Context, in userRequest, done string) error {
	a, err := operate(ctx, o, "user", in, (*node).userFor)
	if err == nil {
		fmt.Fprintf(o.out, done, a.Email)
	}
	return err
}

func (n *node) userFor(ctx context.Context, in userRequest) (userAnswer, error) {
	a, err := n.users.Find(ctx, in.Email)
	if err != nil {
		return userAnswer{}, err
	}
	switch in.Do {
	case "disable":
		err = n.users.Disable(ctx, a.ID)
	case "enable":
		if err = n.users.Enable(ctx, a.ID); err == nil {
			n.scheduler.Loop().Wake()
		}
	case "password":
		err = n.users.SetPassword(ctx, a.ID, in.Password)
	default:
		err = fmt.Errorf("%w: user %q", errUsage, in.Do)
	}
	return userAnswer{a.Email}, err
}
