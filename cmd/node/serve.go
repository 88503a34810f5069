package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

var errBadConfig = fault.New(fault.Invalid, "bad_config", "The configuration cannot be used.")

func serveCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run one node until it is told to stop",
		Long: `Run one node until SIGTERM or SIGINT, which let requests and sends under way end.
Makes the data folder, the databases and the peer secret where they are missing.`,
		Example: `  tandem serve --config configs/local.yaml
  TANDEM_HTTP_LISTEN=127.0.0.1:9000 tandem serve --config configs/local.yaml`,
		RunE: func(c *cobra.Command, _ []string) error { return o.serve(c.Context(), world()) },
	}
}

func (o *options) serve(ctx context.Context, out outside) (err error) {
	c, err := o.load()
	if err != nil {
		return err
	}
	boundMemory(o.env)
	log := o.logger()
	where := dataIn(c.Node.Data)
	f, err := openFolder(ctx, c.Node.Data, out, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	n, err := newNode(ctx, c, f, out, log)
	if err != nil {
		return err
	}
	n.configFile = o.configFile
	l, err := net.Listen("tcp", c.HTTP.Listen)
	if err != nil {
		return cannotListen(err, c.HTTP.Listen)
	}
	stop, err := n.control(f.dir)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer stop()
	fmt.Fprintf(o.out, "%s is ready at %s, its data in %s\n", c.Node.Name, address(c.HTTP, l), where)
	if err := n.hint(ctx, o); err != nil {
		return err
	}
	started := time.Now()
	err = n.run(ctx, l)
	log.Info("stopped", "node", c.Node.Name, "after", time.Since(started).Round(time.Second))
	return err
}

// cannotListen says what to do about an address that cannot be had.
func cannotListen(err error, address string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w\nAnother program uses %s: end it, or choose another http.listen", err, address)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w\nThis user may not use a port below 1024: choose another http.listen, or give the right to the service (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE)", err)
	}
	return err
}

// dataIn names the folder from the root, and says if nothing is in it yet: a path that
// began at another working directory leads to an empty one.
func dataIn(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		full = dir
	}
	if !exists(filepath.Join(dir, sqlite.Todos.File())) {
		full += ", which is new and empty"
	}
	return full
}

// address is where people reach the node.
func address(c config.HTTP, l net.Listener) string {
	switch {
	case c.PublicURL != "":
		return fmt.Sprintf("%s (%s)", c.PublicURL, l.Addr())
	case c.TLS.On():
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// reachesNobody reports whether what rings here has no way to a person.
func (n *node) reachesNobody() bool {
	return n.Scheduler.Mode == config.Active && !n.Push.FCM.On() && !n.Push.Telegram.On()
}

// hint tells a newcomer what comes first.
func (n *node) hint(ctx context.Context, o *options) error {
	if n.reachesNobody() {
		fmt.Fprintln(o.out, "No way to reach you is configured: reminders wait until push.telegram or push.fcm is.")
	}
	if n.Scheduler.Mode == config.Active && n.Push.Telegram.On() && n.Push.Telegram.ChatID == 0 {
		fmt.Fprintln(o.out, "Telegram has a token and no chat to write to: set push.telegram.chat_id, or TANDEM_PUSH_TELEGRAM_CHAT_ID.")
	}
	if n.parting.Parted() {
		fmt.Fprintf(o.out, "It was parted from %s by tandem unpair, and stays alone until %s.\n", n.Peer.Name, n.pairLines())
		return nil
	}
	if n.users.Unjoined() {
		fmt.Fprintf(o.out, "This node was alone and has accounts of its own. Where %s has all of them, the two go on by themselves. If not, nothing crosses before they are joined: %s.\n", n.Peer.Name, n.pairLines())
		return nil
	}
	_, ok, err := n.users.FirstAdmin(ctx)
	if err != nil || ok {
		return err
	}
	if !n.authority() {
		fmt.Fprintf(o.out, "Accounts live at %s, and come from there once the two are a pair. If they are none yet: %s.\n", n.Peer.Name, n.pairLines())
		return nil
	}
	line, err := n.firstAccount(ctx)
	if err == nil {
		fmt.Fprintf(o.out, "Nobody has an account yet. In another terminal: %s.\n", line)
	}
	return err
}
