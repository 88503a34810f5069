package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tandem/internal/standin"
	"tandem/internal/when"
)

const (
	demoEmail    = "ada@example.org"
	demoPassword = "correct horse battery"
	demoPhone    = "a-phone-of-the-demo"
)

// demoStory is the main job, a line each. A step says what it did, and fails if
// it did not come out so.
var demoStory = []func(context.Context, *demoWorld) (string, error){
	startNodes, openAccount, registerPhone, addAtCloud, cutAndEdit, heal, remindAndKill, rings, stopNodes,
}

func startNodes(ctx context.Context, w *demoWorld) (string, error) {
	err := errors.Join(w.cloud.start(ctx), w.home.start(ctx))
	return fmt.Sprintf("Two nodes run: cloud at %s, home at %s, each with files of its own.", w.cloud.url, w.home.url), err
}

func openAccount(ctx context.Context, w *demoWorld) (string, error) {
	const text = "Ada's account is made at the cloud; the same login works at home."
	_, running, err := ask[initAnswer](ctx, w.cloud.dir, "init", initRequest{demoEmail, demoPassword})
	if err == nil && !running {
		err = errors.New("the cloud node has no control socket")
	}
	if err == nil {
		err = w.cloud.login(ctx)
	}
	if err != nil {
		return text, err
	}
	return text, until(ctx, func() error { return w.home.login(ctx) })
}

func registerPhone(ctx context.Context, w *demoWorld) (string, error) {
	body := map[string]string{"token": demoPhone, "platform": "android", "device_id": "ada-1"}
	if err := w.cloud.call(ctx, http.MethodPost, "/v1/push-tokens", body, nil); err != nil {
		return "A phone registers at the cloud.", err
	}
	return "A phone registers at the cloud; home fetches its token over the peer link.", until(ctx, func() error {
		var devices struct {
			Items []struct {
				Device string `json:"device_id"`
			}
		}
		if err := w.home.call(ctx, http.MethodGet, "/v1/push-tokens", nil, &devices); err != nil {
			return err
		}
		if len(devices.Items) != 1 {
			return fmt.Errorf("home knows %d devices", len(devices.Items))
		}
		return nil
	})
}

func addAtCloud(ctx context.Context, w *demoWorld) (string, error) {
	const text = "A todo posted at the cloud appears at home."
	if err := w.cloud.call(ctx, http.MethodPost, "/v1/todos", map[string]string{"content": "buy milk"}, nil); err != nil {
		return text, err
	}
	return text, until(ctx, func() error { return w.home.has(ctx, "buy milk") })
}

func cutAndEdit(ctx context.Context, w *demoWorld) (string, error) {
	w.link.cut()
	list, err := w.home.todos(ctx)
	if err == nil && len(list) == 0 {
		err = errors.New("home has no todo")
	}
	if err == nil {
		err = w.home.call(ctx, http.MethodPatch, "/v1/todos/"+list[0].Ref, map[string]any{"content": "buy oat milk"}, nil)
	}
	if err == nil {
		err = w.cloud.call(ctx, http.MethodPost, "/v1/todos", map[string]string{"content": "给妈妈打电话"}, nil)
	}
	if err == nil && w.cloud.has(ctx, "buy oat milk") == nil {
		err = errors.New("the link is not cut")
	}
	return "The link is cut. At home the todo is reworded; at the cloud another is added.", err
}

func heal(ctx context.Context, w *demoWorld) (string, error) {
	w.link.mend()
	return "The link heals by itself: both nodes hold both changes, row for row.", until(ctx, func() error {
		a, err := w.home.todos(ctx)
		if err != nil {
			return err
		}
		b, err := w.cloud.todos(ctx)
		if err != nil {
			return err
		}
		if len(a) != 2 || !slices.Equal(a, b) {
			return fmt.Errorf("home has %v, the cloud %v", a, b)
		}
		return errors.Join(w.home.has(ctx, "buy oat milk"), w.cloud.has(ctx, "给妈妈打电话"))
	})
}

// demoLead is how far ahead the reminder is set: long enough to kill the node and
// have it back before.
const demoLead = 3 * time.Second

func remindAndKill(ctx context.Context, w *demoWorld) (string, error) {
	w.fcm.FailAlways(demoPhone, standin.InternalError)
	w.due = time.Now().Add(demoLead)
	body := map[string]string{"content": "take the medicine", "trigger_at": when.Format(w.due)}
	if err := w.home.call(ctx, http.MethodPost, "/v1/scheduled-messages", body, nil); err != nil {
		return "A reminder is set at home.", err
	}
	if err := w.home.kill(); err != nil {
		return "A reminder is set at home; the node is killed.", err
	}
	return fmt.Sprintf("A reminder is set at home for %s from now; the node is killed (kill -9) and started again.", demoLead), w.home.start(ctx)
}

func rings(ctx context.Context, w *demoWorld) (string, error) {
	err := until(ctx, func() error {
		var got []string
		for _, m := range w.telegram.Messages() {
			got = append(got, m.Text)
		}
		if len(got) == 1 && strings.Contains(got[0], "take the medicine") {
			return nil
		}
		return fmt.Errorf("the chat has %q", got)
	})
	late := time.Since(w.due).Round(time.Millisecond)
	if err == nil && w.fcm.Posts(demoPhone) == 0 {
		err = errors.New("FCM was never asked")
	}
	return fmt.Sprintf("It rings: FCM refuses it, Telegram delivers it, once, %s after it was due.", late), err
}

func stopNodes(ctx context.Context, w *demoWorld) (string, error) {
	if w.leave {
		return "Both nodes stay up.", errors.Join(w.home.alive(ctx), w.cloud.alive(ctx))
	}
	return "Both nodes are told to stop, finish what is under way, and exit 0.", errors.Join(w.home.stop(), w.cloud.stop())
}

// until tries again until it holds or the story's time is up, and returns the
// last reason why it did not.
func until(ctx context.Context, holds func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in time: %w", err)
		case <-tick.C:
		}
	}
}
