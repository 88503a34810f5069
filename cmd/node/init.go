package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

type initRequest struct{ Email, Password string }

type initAnswer struct{ Email string }

func initCommand(o *options) *cobra.Command {
	var email string
	var stdin bool
	c := &cobra.Command{
		Use:   "init",
		Short: "Make the first account, an admin's",
		Long: `Make the first account, an admin's, at the node where accounts live: the one of
origin 1, or the only one. The other node has the accounts from there.`,
		Example: `  tandem init --config configs/cloud.yaml --email ada@example.org
  echo "$PASSWORD" | tandem init --config configs/cloud.yaml --email ada@example.org --password-stdin`,
		RunE: func(c *cobra.Command, _ []string) error {
			password, err := o.password(stdin)
			if err != nil {
				return err
			}
			a, err := operate(c.Context(), o, "init", initRequest{email, password}, (*node).initFor)
			if err == nil {
				fmt.Fprintf(o.out, "%s is the first admin.\n", a.Email)
			}
			return err
		},
	}
	c.Flags().StringVar(&email, "email", "", "the admin's e-mail `address`")
	c.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input, up to the end of the line")
	_ = c.MarkFlagRequired("email")
	return c
}

// password reads one line. Asked at a terminal the line is seen as it is typed.
func (o *options) password(stdin bool) (string, error) {
	if !stdin {
		fmt.Fprint(o.err, "Password (8 to 256 characters, shown as you type): ")
	}
	line, err := bufio.NewReader(io.LimitReader(o.in, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func (n *node) initFor(ctx context.Context, in initRequest) (initAnswer, error) {
	if err := n.ownedElsewhere(ctx); err != nil {
		return initAnswer{}, err
	}
	a, err := n.users.Init(ctx, in.Email, in.Password)
	if err != nil {
		return initAnswer{}, err
	}
	return initAnswer{a.Email}, nil
}
