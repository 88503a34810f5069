// Command node runs one of the two nodes of Tandem, and is the tool of whoever
// runs them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], terminal{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Environ()})
	stop()
	os.Exit(code)
}
