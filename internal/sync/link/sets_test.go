package link_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/loop"
	"tandem/internal/sync/link"
)

// A set is copied whole when its generation differs, and only then.
func TestSetIsCopiedWhenItsGenerationDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		there, here, body, imports := "a/1", "", `["ann"]`, 0
		var refuse error
		l := newLine(cloud)
		l.sets = []link.Set{{
			Name: "accounts", Path: "accounts",
			Generation: func(context.Context) (string, error) { return there, nil },
			Export:     func(context.Context) (string, []byte, error) { return there, []byte(body), nil },
		}}
		got := ""
		c, _ := client(local, l, []link.Set{{
			Name: "accounts", Path: "accounts",
			Generation: func(context.Context) (string, error) { return here, nil },
			Import: func(_ context.Context, generation string, b []byte) error {
				imports++
				if refuse == nil {
					here, got = generation, string(b)
				}
				return refuse
			},
		}}, nil)
		running(t, c)
		time.Sleep(time.Second)
		equal(t, "at the start", here+" "+got, `a/1 ["ann"]`)
		time.Sleep(time.Hour)
		equal(t, "copies in a quiet hour", imports, 1)

		there, body = "a/2", `["ann","bob"]`
		cloud.log.Announce()
		synctest.Wait()
		equal(t, "at once after a change", here+" "+got, `a/2 ["ann","bob"]`)

		refuse = errors.New("disk full")
		there, body = "b/1", `[]` // another life of the authority: no order between the two
		r := cloud.add("milk")
		time.Sleep(time.Minute)
		equal(t, "while it cannot be stored", here, "a/2")
		equal(t, "rows go on", local.content(r), "milk")
		equal(t, "state", c.Status().State, "attention")
		refuse = nil
		time.Sleep(loop.Longest)
		synctest.Wait()
		equal(t, "once it can", here+" "+got, "b/1 []")
		equal(t, "state then", c.Status().State, "ok")
	})
}
