package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tandem/internal/config"
	"tandem/internal/sqlite"
	"tandem/internal/standin"
	nodesync "tandem/internal/sync"
)

// inCopyBubble runs a test with a node at home that was alone until its folder was
// copied to be the cloud's, and that has a peer by now. The cloud is off.
func inCopyBubble(t *testing.T, test func(*testing.T, *bubble)) {
	t.Helper()
	inNewBubble(t, func(t *testing.T, b *bubble) {
		peer := b.home.config.Peer
		b.home.config.Peer = config.Peer{}
		b.home.on()
		b.home.people(demoPassword, demoEmail)
		b.home.login()
		b.home.add("before the copy")
		b.home.register("phone")
		b.telegram.FailAlways(0, standin.HTML(502))
		b.fcm.FailAlways("", standin.InternalError)
		b.home.remind(map[string]any{"content": "call May", "trigger_at": "2000-01-01T00:05:00Z"})
		b.home.do(http.MethodPost, "/v1/todos", map[string]any{"content": "asked once"}, nil, "Idempotency-Key: one")
		settle(6 * time.Minute)
		b.home.off()
		must(t, os.CopyFS(b.cloud.config.Node.Data, os.DirFS(b.home.config.Node.Data)))
		must(t, os.Chmod(b.cloud.config.Node.Data, 0o700))
		must(t, os.Chmod(filepath.Join(b.cloud.config.Node.Data, keyName), 0o600))
		b.fcm.Heal()
		b.telegram.Heal()
		b.home.config.Peer = peer
		b.home.on()
		settle(time.Minute)
		test(t, b)
	})
}

// startsWith tries to start the machine, and returns what it says.
func (m *machine) startsWith() error {
	m.Helper()
	out := m.far()
	out.crash = func(string) {}
	log := slog.New(slog.DiscardHandler)
	f, err := openFolder(context.Background(), m.config.Node.Data, out, log)
	must(m, err)
	_, err = newNode(context.Background(), m.config, f, out, log)
	must(m, f.close())
	return err
}

func (m *machine) adopts(at string) (said string, err error) {
	m.Helper()
	return m.offline(at, func(o *options, out outside) error { return o.adopt(context.Background(), out) })
}

// adopted checks that the copy has become a node of its own, and that both are a pair.
func (b *bubble) adopted() {
	b.Helper()
	b.cloud.on()
	healed()
	b.cloud.in(false) // sessions end
	b.login()
	home, cloud := b.home.add("made at home"), b.cloud.add("made at the cloud")
	equal(b, "keys", fmt.Sprint(home, " ", cloud[:2]), "0-3 1-")
	_, header, _ := b.cloud.ask(http.MethodPost, "/v1/todos", map[string]any{"content": "asked once"}, "Idempotency-Key: one")
	equal(b, "the other node's answer", header.Get("Idempotent-Replayed"), "")
	healed()
	for _, m := range []*machine{b.home, b.cloud} {
		equal(b, m.config.Node.Name, m.contents(), "asked once before the copy made at home made at the cloud")
		equal(b, "phones at "+m.config.Node.Name, m.phones(), "phone")
	}
	b.alike()
	b.quiet()
	settle(time.Hour)
	equal(b, "it rang", strings.Count(b.rang(), "call May"), 1) // from home alone
	keys := map[string]bool{}
	for _, m := range []*machine{b.home, b.cloud} {
		key, err := os.ReadFile(filepath.Join(m.config.Node.Data, keyName))
		must(b, err)
		keys[string(key)] = true
	}
	equal(b, "keys of the nodes", len(keys), 2)
}

func TestACopiedFolderIsRefusedUntilItIsAdopted(t *testing.T) { // S:29
	inCopyBubble(t, func(t *testing.T, b *bubble) {
		rows := b.home.rows(tables)
		for range 2 {
			if err := b.cloud.startsWith(); !errors.Is(err, nodesync.ErrAnotherNode) || !strings.Contains(explain(err), "tandem adopt") {
				t.Errorf("a copy starts: %v", err)
			}
		}
		healed()
		equal(t, "rows at home", fmt.Sprint(b.home.rows(tables)), fmt.Sprint(rows))
		said, err := b.cloud.adopts("")
		must(t, err)
		if !strings.Contains(said, "is cloud's own now") || !strings.Contains(said, "1 notices") {
			t.Errorf("it says %q", said)
		}
		said, err = b.cloud.adopts("") // done twice
		must(t, err)
		if !strings.Contains(said, "nothing was changed") {
			t.Errorf("it says %q", said)
		}
		b.adopted()
	})
}

// Where nothing is to be adopted nothing is touched, though a start would begin a new
// life: the fence is gone.
func TestAnAdoptionThatIsNotNeededChangesNothing(t *testing.T) {
	inCopyBubble(t, func(t *testing.T, b *bubble) {
		_, err := b.cloud.adopts("")
		must(t, err)
		b.cloud.on()
		b.cloud.off()
		dir := b.cloud.config.Node.Data
		must(t, os.Remove(fencePath(dir)))
		life := func() string {
			db, err := sqlite.OpenReadOnly(t.Context(), sqlite.Options{Path: filepath.Join(dir, sqlite.Todos.File()), Schema: sqlite.Todos, Now: time.Now})
			must(t, err)
			defer db.Close()
			s, _, err := sqlite.ReadOne(t.Context(), db, sqlite.Value[string], `SELECT json_array(incarnation, node, origin) FROM sync_state`)
			must(t, err)
			return s
		}
		before := life()
		said, err := b.cloud.adopts("")
		must(t, err)
		if !strings.Contains(said, "nothing was changed") {
			t.Errorf("it says %q", said)
		}
		equal(t, "the life of the file", life(), before)
		if _, err := os.Stat(fencePath(dir)); !os.IsNotExist(err) {
			t.Errorf("there is a fence (%v)", err)
		}
	})
}

func TestAnAdoptionThatIsKilledIsDoneAgain(t *testing.T) { // S:29
	for _, point := range []string{"adopt.started", "adopt.sealed"} {
		t.Run(point, func(t *testing.T) {
			inCopyBubble(t, func(t *testing.T, b *bubble) {
				_, _ = b.cloud.adopts(point)
				if err := b.cloud.startsWith(); !errors.Is(err, nodesync.ErrAnotherNode) {
					t.Errorf("half adopted it starts: %v", err)
				}
				_, err := b.cloud.adopts("")
				must(t, err)
				b.adopted()
			})
		})
	}
}

// A copy that runs under its own configuration, with the name it was copied from, is
// found out by its peer.
func TestACopyThatCallsItselfLikeItsPeerMovesNoRow(t *testing.T) { // S:29
	inCopyBubble(t, func(t *testing.T, b *bubble) {
		rows := b.home.rows(tables)
		b.link.answer(says(200, "application/json", hello("home", 0, 1)))
		healed()
		status := b.home.node.client.Status()
		equal(t, "what is wrong", status.Code, "peer_self")
		if !strings.Contains(status.Detail, "adopt") {
			t.Errorf("it says %q", status.Detail)
		}
		equal(t, "rows at home", fmt.Sprint(b.home.rows(tables)), fmt.Sprint(rows))
	})
}

func TestThereMustBeSomethingToAdopt(t *testing.T) {
	t.Parallel()
	env, data := alone(t)
	verb(t, env, "", "adopt").exits(t, exitFailed, "nothing in "+data)
	equal(t, "the folder", exists(data), false)
	env, _ = inhabited(t)
	verb(t, env, "", "adopt").exits(t, exitOK, "nothing was changed")
	other := append(env, "TANDEM_NODE_NAME=other", "TANDEM_NODE_ORIGIN=1")
	verb(t, other, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitCorrupt, "tandem adopt")
	verb(t, other, "", "adopt").exits(t, exitOK, "other's own now")
	verb(t, other, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitFailed, "has accounts already")
	verb(t, env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitCorrupt, "tandem adopt")
}
