package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// demoLimit bounds the whole story.
const demoLimit = 30 * time.Second

func demoCommand(o *options) *cobra.Command {
	var asJSON, keep bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run both nodes and watch the main job happen",
		Long: `Run both nodes in a fresh temporary folder, on free ports of this machine, with
stand-ins for Firebase and Telegram. Nothing leaves the machine. Todos cross, the
link is cut and heals, a node is killed and comes back, and a reminder that Firebase
refuses arrives through Telegram. Exits 0 only if every step held.`,
		Example: `  tandem demo
  tandem demo --keep     leave both running, to try the API by hand`,
		RunE: func(c *cobra.Command, _ []string) error { return o.demo(c.Context(), asJSON, keep) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a step")
	c.Flags().BoolVar(&keep, "keep", false, "leave both nodes running until interrupted, and print URLs and a login")
	return c
}

// step is one line of the story.
type step struct {
	Step int    `json:"step"`
	Text string `json:"text"`
	MS   int64  `json:"ms"` // how long it took
	OK   bool   `json:"ok"`
	Why  string `json:"error,omitempty"`
}

func (o *options) demo(ctx context.Context, asJSON, keep bool) (err error) {
	story, stop := context.WithTimeout(ctx, demoLimit)
	defer stop()
	w, err := newDemoWorld(keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	begun := time.Now()
	for i, s := range demoStory {
		at := time.Now()
		text, err := s(story, w)
		o.tell(step{i + 1, text, time.Since(at).Milliseconds(), err == nil, because(err)}, asJSON)
		if err != nil {
			return fmt.Errorf("step %d did not hold: %w", i+1, err)
		}
	}
	if !asJSON {
		fmt.Fprintf(o.out, "Every step held, in %.1f s.\n", time.Since(begun).Seconds())
	}
	if keep {
		o.keep(ctx, w)
	}
	return nil
}

func (o *options) tell(s step, asJSON bool) {
	if asJSON {
		_ = json.NewEncoder(o.out).Encode(s)
		return
	}
	mark := "ok  "
	if !s.OK {
		mark = "FAIL"
	}
	fmt.Fprintf(o.out, "%s %2d  %s (%d ms)\n", mark, s.Step, s.Text, s.MS)
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// keep leaves the nodes running until the terminal interrupts, and shows what
// arrives at the phone and in the chat.
func (o *options) keep(ctx context.Context, w *demoWorld) {
	w.fcm.Heal()
	fmt.Fprintf(o.out, `
Both nodes run until you press Ctrl-C (process %d); what rings is shown here.
  home   %s
  cloud  %s
  login  %s / %s
Try, in another terminal:
  TOKEN=$(curl -s %s/v1/auth/login -H 'Content-Type: application/json' -d '{"email":"%s","password":"%s"}' | sed 's/.*"token":"\([^"]*\)".*/\1/')
  curl -s %s/v1/todos -H "Authorization: Bearer $TOKEN"
  curl -s %s/v1/scheduled-messages -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
    -d "{\"content\":\"tea is ready\",\"trigger_at\":\"$(date -u -d '+5 seconds' +%%FT%%TZ)\"}"

`, os.Getpid(), w.home.url, w.cloud.url, demoEmail, demoPassword, w.home.url, demoEmail, demoPassword, w.home.url, w.home.url)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	phone, chat := len(w.fcm.Messages()), len(w.telegram.Messages())
	for {
		for _, m := range w.fcm.Messages()[phone:] {
			phone++
			fmt.Fprintf(o.out, "%s  the phone rings: %s\n", m.At.Format(time.TimeOnly), m.Data["body"])
		}
		for _, m := range w.telegram.Messages()[chat:] {
			chat++
			fmt.Fprintf(o.out, "%s  the chat says: %s\n", time.Now().Format(time.TimeOnly), m.Text)
		}
		select {
		case <-ctx.Done():
			fmt.Fprintln(o.out, "Both nodes are stopped, and their folder is gone.")
			return
		case <-tick.C:
		}
	}
}
