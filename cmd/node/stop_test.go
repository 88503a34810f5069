package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tandem/internal/standin"
)

// A stop must be over within the time that service managers allow before they kill.
const (
	graceful = 15 * time.Second // with the longest of what a stop waits for
	prompt   = 8 * time.Second  // with nothing to wait for; a poll is held open for longer
)

func TestAStopDuringASendLosesNoReminder(t *testing.T) { // R:E9
	t.Parallel()
	w := newPair(t)
	w.fcm.FailAlways("", standin.Hang)
	w.remind()
	eventually(t, func() error {
		if w.fcm.Posts("") == 0 {
			return fmt.Errorf("FCM was not asked yet")
		}
		return nil
	})
	if took := w.home.terminates(); took > graceful {
		t.Errorf("the stop took %v", took)
	}
	equal(t, "rung before the restart", len(w.rang()), 0)
	w.fcm.FailAlways("", standin.InternalError)
	w.home.start()
	w.settled()
	equal(t, "what rang", strings.Join(w.rang()[true], " "), plain)
}

func TestAStopLetsASendEnd(t *testing.T) { // R:E9
	t.Parallel()
	w := newPair(t)
	slow, release := make(chan struct{}), make(chan struct{})
	w.home.env = append(w.home.env, "TANDEM_PUSH_FCM_ENDPOINT="+serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		close(slow)
		<-release
		w.fcm.ServeHTTP(rw, r)
	})))
	w.remind()
	<-slow
	must(t, w.home.process.Process.Signal(syscall.SIGTERM))
	eventually(t, func() error {
		if w.home.alive(t.Context()) == nil {
			return fmt.Errorf("it still serves")
		}
		return nil
	})
	close(release)
	w.home.ends()
	w.home.start()
	w.settled()
	rang := w.rang()
	equal(t, "what rang", strings.Join(rang[false], " "), plain)
	equal(t, "what Telegram took", len(rang[true]), 0)
}

func TestAStopEndsPollsAtOnce(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.cloud.start()
	w.home.start()
	_, err := w.cloud.post("/v1/todos", "one", map[string]string{"content": "buy milk"})
	must(t, err)
	eventually(t, w.alike) // home polls again
	if took := w.cloud.terminates(); took > prompt {
		t.Errorf("the node that is polled took %v", took)
	}
	w.cloud.start()
	eventually(t, func() error { return w.wellAt("home") }) // back in touch
	if took := w.home.terminates(); took > prompt {
		t.Errorf("the node that polls took %v", took)
	}
}

// wellAt returns nil where the node says that its peer answers.
func (w *pair) wellAt(name string) error {
	found, running, err := ask[[]finding](w.t.Context(), w.node(name).dir, "doctor", struct{}{})
	if err == nil && !running {
		err = fmt.Errorf("%s does not run", name)
	}
	for _, f := range found {
		if f.Check == "peer" && f.Level != fine {
			err = fmt.Errorf("%s: %s", f.Level, f.Detail)
		}
	}
	return err
}

// Who is cut off in the middle of a request has no answer, and knows it.
func TestAStopDoesNotWaitForASlowCaller(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.cloud.start()
	secret, err := os.ReadFile(filepath.Join(w.cloud.dir, "..", "cloud.token"))
	must(t, err)
	c, err := net.Dial("tcp", strings.TrimPrefix(w.cloud.url, "http://"))
	must(t, err)
	defer c.Close()
	_, err = fmt.Fprintf(c, "POST /peer/v1/changes HTTP/1.1\r\nHost: cloud\r\nAuthorization: Bearer %s\r\n"+
		"Tandem-Node: home\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", bytes.TrimSpace(secret))
	must(t, err)
	begun := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n")) // said as soon as the handler reads
	_, err = io.ReadFull(c, begun)
	must(t, err)
	_, err = io.WriteString(c, `{"from"`)
	must(t, err)
	if took := w.cloud.terminates(); took > graceful {
		t.Errorf("the stop took %v", took)
	}
	if answer, _ := io.ReadAll(c); len(answer) > 0 {
		t.Errorf("the caller was answered %q", answer)
	}
	if !bytes.Contains(w.cloud.said(), []byte("requests were cut off")) {
		t.Error("nothing was cut off")
	}
}

func TestANodeStartsAtOnceAfterAKill(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	for range 3 {
		w.home.start()
		must(t, w.home.kill())
		if _, err := os.Lstat(filepath.Join(w.home.dir, socketName)); err != nil {
			t.Errorf("the kill left no socket to get in the way: %v", err)
		}
		if _, running, err := ask[[]finding](t.Context(), w.home.dir, "doctor", struct{}{}); running || err != nil {
			t.Errorf("a dead node's socket answers: running %t, %v", running, err)
		}
	}
	w.home.start()
	if _, running, err := ask[[]finding](t.Context(), w.home.dir, "doctor", struct{}{}); !running || err != nil {
		t.Errorf("running %t, %v", running, err)
	}
	w.home.terminates()
	if _, err := os.Lstat(filepath.Join(w.home.dir, socketName)); !os.IsNotExist(err) {
		t.Errorf("a stop leaves the socket: %v", err)
	}
}

func TestOneFolderHasOneNode(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.home.start()
	second := w.home.command("serve")
	second.Env = append(second.Env, "TANDEM_HTTP_LISTEN=127.0.0.1:0")
	said := &bytes.Buffer{}
	second.Stderr = said
	err := second.Run()
	equal(t, "exit", second.ProcessState.ExitCode(), exitTryMore)
	if !strings.Contains(said.String(), "Another process is using this data folder") || !strings.Contains(said.String(), w.home.dir) {
		t.Errorf("it says %q (%v)", said, err)
	}
	must(t, w.home.alive(t.Context()))
	if _, running, err := ask[[]finding](t.Context(), w.home.dir, "doctor", struct{}{}); !running || err != nil {
		t.Errorf("the first one's socket is gone: running %t, %v", running, err)
	}
}

func TestAFirstStartThatWasKilledCanBeHadAgain(t *testing.T) {
	t.Parallel()
	w := barePair(t, t.TempDir())
	for range 4 { // the files are made in any order
		w.cloud.launch("CRASH_AT=folder.opened")
		w.cloud.dies()
	}
	w.meet()
}

func TestTheDemoHolds(t *testing.T) {
	t.Parallel()
	path, err := built()
	must(t, err)
	tmp := t.TempDir()
	p := &process{t: t, demoNode: &demoNode{env: append(os.Environ(), "TMPDIR="+tmp)}}
	demo := p.command("demo", "--json")
	told, err := demo.Output()
	if err != nil {
		t.Errorf("%s demo: %v", path, err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(told)), "\n") {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil || !s.OK || s.Step != i+1 {
			t.Errorf("step %d: %s (%v)", i+1, line, err)
		}
	}
	equal(t, "steps", strings.Count(string(told), "\n"), len(demoStory))
	left, err := os.ReadDir(tmp)
	must(t, err)
	equal(t, "left behind", len(left), 0)
}
