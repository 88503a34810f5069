package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/pairing"
	"tandem/internal/sqlite"
	nodesync "tandem/internal/sync"
)

// Exit codes, as sysexits.h has them where it has one.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitCorrupt = 65 // EX_DATAERR: a file is damaged or not ours
	exitTryMore = 75 // EX_TEMPFAIL: the folder is in use
	exitConfig  = 78 // EX_CONFIG
)

// terminal is what a verb is given of the world around it.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	env      []string
}

// options are the flags that every verb takes.
type options struct {
	terminal
	configFile, data string
}

var errUsage = errors.New("usage")

// execute runs one verb and returns the exit code.
func execute(ctx context.Context, args []string, t terminal) int {
	o := &options{terminal: t}
	root := &cobra.Command{
		Use:           "tandem",
		Short:         "One personal assistant on two machines you own",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          usage(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		Example: `  tandem demo                                    both nodes, a story in half a minute
  tandem serve --config configs/local.yaml       the node at home
  tandem next --cron "30 2 * * *" --tz Europe/Berlin`,
	}
	root.SetIn(t.in)
	root.SetOut(t.out)
	root.SetErr(t.err)
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w\nSee: %s --help", errUsage, err, c.CommandPath())
	})
	root.PersistentFlags().StringVar(&o.configFile, "config", "", "the node's configuration `file` (YAML)")
	root.PersistentFlags().StringVar(&o.data, "data", "", "the node's data `folder`, instead of node.data")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(serveCommand(o), initCommand(o), userCommand(o), pairCommand(o), unpairCommand(o), adoptCommand(o),
		demoCommand(o), nextCommand(o), backupCommand(o), restoreCommand(o), doctorCommand(o), versionCommand(o))
	for _, c := range root.Commands() {
		c.Args = usage(c.Args)
	}
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(t.err, "tandem:", explain(err))
	}
	return exitCode(err)
}

// usage marks what a verb's arguments and flags are refused for.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		check = cobra.NoArgs
	}
	return func(c *cobra.Command, args []string) error {
		if err := errors.Join(check(c, args), c.ValidateRequiredFlags(), c.ValidateFlagGroups()); err != nil {
			return fmt.Errorf("%w: %w\nSee: %s --help", errUsage, err, c.CommandPath())
		}
		return nil
	}
}

// explain is what a person reads: what to do first, then what it was.
func explain(err error) string {
	if _, ok := errors.AsType[*config.Faults](err); ok {
		return err.Error() // the operator is who may see each
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err.Error()
	}
	text := f.Detail
	for _, field := range f.Fields {
		text += fmt.Sprintf("\n  %s %s", field.Name, field.Detail)
	}
	if cause := f.Unwrap(); cause != nil {
		text += fmt.Sprintf("\n  (%s: %v)", f.Code, cause)
	}
	return text
}

func exitCode(err error) int {
	var faults *config.Faults
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.As(err, &faults), errors.Is(err, errBadConfig), errors.Is(err, pairing.ErrSecretFixed):
		return exitConfig
	case errors.Is(err, sqlite.ErrInUse):
		return exitTryMore
	case errors.Is(err, sqlite.ErrCorrupt), errors.Is(err, sqlite.ErrForeign), errors.Is(err, sqlite.ErrNewer), errors.Is(err, nodesync.ErrFence), errors.Is(err, nodesync.ErrFenceUnread), errors.Is(err, errMissingFile), errors.Is(err, errBackupDamaged),
		errors.Is(err, errNotBackup), errors.Is(err, errOthersBackup), errors.Is(err, nodesync.ErrAnotherNode):
		return exitCorrupt
	}
	return exitFailed
}

// load reads the configuration. The --data flag wins over everything.
func (o *options) load() (config.Config, error) {
	env := o.env
	if o.data != "" {
		env = append(env[:len(env):len(env)], "TANDEM_NODE_DATA="+o.data)
	}
	c, err := config.Load(o.configFile, env)
	if faults, bad := errors.AsType[*config.Faults](err); bad && o.configFile == "" && !nodeIn(env) {
		return c, fmt.Errorf("no node is named: add --config FILE, such as --config configs/local.yaml, or set TANDEM_NODE_NAME and the others\n%w", faults)
	}
	return c, err
}

// nodeIn reports whether the environment says what node this is.
func nodeIn(env []string) bool {
	return slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "TANDEM_NODE_NAME=") })
}

func (o *options) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(o.err, nil))
}

// line is what to type for a verb at this node: with the configuration that this
// command was given, since the next one does not know it otherwise.
func (o *options) line(verb string) string {
	if o.configFile == "" {
		return "tandem " + verb
	}
	return "tandem " + verb + " --config " + o.configFile
}
