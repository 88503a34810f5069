package main

import (
	"os"
	"testing"
	"time"
)

// The cloud's folder is put back or lost: the phones that had registered since ring on,
// and the cloud has them again.
func TestPhonesSurviveACloudThatWentBack(t *testing.T) {
	for name, goesBack := range map[string]func(b *bubble, backup string){
		"restored": func(b *bubble, backup string) { b.cloud.restore(backup) },
		"lost":     func(b *bubble, _ string) { must(b, os.RemoveAll(b.cloud.config.Node.Data)) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.cloud.register("before")
				settle(time.Second)
				backup := b.cloud.backup()
				b.cloud.register("after")
				settle(time.Second)
				equal(t, "phones at home", b.home.phones(), "after before")
				b.cloud.off()
				goesBack(b, backup)
				b.cloud.on()
				settle(10 * time.Minute)
				equal(t, "phones at home then", b.home.phones(), "after before")
				equal(t, "phones at the cloud", b.cloud.phones(), "after before")
				b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T01:00:00Z"})
				settle(time.Hour)
				for _, phone := range []string{"before", "after"} {
					equal(t, "notices on "+phone, len(b.fcm.Screen(phone)), 1)
				}
			})
		})
	}
}
