package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tandem/internal/push"
	"tandem/internal/sqlite"
)

// examineDelivery tells of what rang and reached nobody. It says nothing of the text,
// which is its owner's.
func (n *node) examineDelivery(ctx context.Context) (found []finding, err error) {
	dead, err := n.outbox.Dead(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range dead {
		what := "fire %s, due %s, reached nobody: %s"
		if d.State == push.Unknown {
			what = "nobody knows whether fire %s, due %s, reached anybody: %s"
		}
		found = append(found, finding{"delivery", warn, fmt.Sprintf(what, d.FireID, moment(d.DueAt), d.Reason),
			fmt.Sprintf(`Its owner sees each attempt: curl %s/v1/fires/%s -H "Authorization: Bearer TOKEN"`, n.reachedAt(), d.FireID)})
	}
	waiting, err := n.outbox.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	var reasons []string // the newest first, as they come
	count := map[string]int{}
	for _, w := range waiting {
		if count[w.Reason]++; count[w.Reason] == 1 {
			reasons = append(reasons, w.Reason)
		}
	}
	for _, reason := range reasons {
		newest := waiting[slices.IndexFunc(waiting, func(u push.Undelivered) bool { return u.Reason == reason })]
		what := "1 reminder has reached nobody yet: fire %s, due %s"
		if c := count[reason]; c > 1 {
			what = fmt.Sprint(c, " reminders have reached nobody yet, the newest of them fire %s, due %s")
		}
		found = append(found, finding{"delivery", warn, fmt.Sprintf(what, newest.FireID, moment(newest.DueAt)) + ": " + reason,
			n.reach(reason) + " It is tried again by itself, next at " + moment(newest.NextAt) + "."})
	}
	if len(found) == 0 {
		found = append(found, finding{"delivery", fine, "every reminder that rang has reached somebody", ""})
	}
	return found, nil
}

func moment(ms int64) string { return sqlite.Time(ms).UTC().Format(time.RFC3339) }

// reach says what to do so that a reminder reaches its owner.
func (n *node) reach(reason string) string {
	switch reason {
	case push.NoChannel:
		return "At the last try no way to reach people was configured: set push.telegram or push.fcm " + n.restart() + "."
	case push.NoAddress:
		return "Its owner has no phone registered (POST /v1/push-tokens), and no chat: that of push.telegram.chat_id is the first admin's."
	case "401", "403":
		return "The service refuses the token or the key: correct push.telegram.token or push.fcm.credentials_file " + n.restart() + "."
	}
	return "That is the service's word, or how the call to it ended."
}
