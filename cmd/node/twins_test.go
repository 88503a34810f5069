package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/config"
)

// copied is a machine with a copy of home's folder, under home's own configuration.
func (b *bubble) copied() *machine {
	b.Helper()
	b.home.off()
	dir := b.TempDir()
	twin := newMachine(b, dir, config.Node{Name: "home"}, b.home.config.Peer, config.Active)
	must(b, os.CopyFS(twin.config.Node.Data, os.DirFS(b.home.config.Node.Data)))
	must(b, os.Chmod(twin.config.Node.Data, 0o700))
	must(b, os.Chmod(filepath.Join(twin.config.Node.Data, keyName), 0o600))
	twin.token = b.home.token
	b.home.on()
	return twin
}

// S:29. Home was moved to a new machine, and the old one starts again.
func TestTwoHomesFromOneFolderAreToldAtAllThreeNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		twin := b.copied()
		settle(time.Minute) // the restart is no twin
		equal(t, "state after a restart", b.cloud.syncStatus().State, "ok")
		twin.on()
		defer twin.off()
		settle(2 * time.Minute)
		for _, m := range []*machine{b.home, b.cloud, twin} {
			s := m.syncStatus()
			if s.State != "attention" || s.Code != "peer_twin" || !strings.Contains(s.Detail, "Two processes run as home") {
				t.Errorf("%s says %s %s %q", m.config.Node.Name, s.State, s.Code, s.Detail)
			}
			if said := m.findings(); !strings.Contains(said, "fail peer: ") || !strings.Contains(said, "peer_twin") {
				t.Errorf("the doctor of %s says %s", m.config.Node.Name, said)
			}
		}
		refs := b.home.add("of home") + " " + twin.add("of its twin")
		rows := fmt.Sprint(b.cloud.rows(tables))
		settle(10 * time.Minute)
		equal(t, "what the cloud took of two todos under "+refs, fmt.Sprint(b.cloud.rows(tables)), rows)
		twin.off()
		if lines := strings.Count(twin.log.String(), "\n"); lines > 20 {
			t.Errorf("the twin logs %d lines:\n%s", lines, twin.log.String())
		}
		settle(3 * time.Minute)
		equal(t, "state", b.home.syncStatus().State+" "+b.cloud.syncStatus().State, "ok ok")
		b.alike()
		b.quiet()
	})
}

// What was written at both is there in the end, each under a number of its own.
func TestWhatTwinsWroteIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		twin := b.copied()
		twin.on()
		defer twin.off()
		b.home.add("of home")
		twin.add("of its twin")
		settle(5 * time.Minute)
		b.home.off()
		settle(3 * time.Minute) // the twin is the one that is left for now
		twin.off()
		b.home.on()
		settle(5 * time.Minute)
		got := b.home.todos()
		for _, want := range []string{"of home", "of its twin"} {
			if !strings.Contains(got, want) {
				t.Errorf("home has %q", got)
			}
		}
		b.alike()
		b.quiet()
	})
}
