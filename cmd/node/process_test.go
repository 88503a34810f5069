package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/standin"
)

// patience is how long a process may take for what it does in a moment.
const patience = 30 * time.Second

// scratch is what all tests of this package share: the binary and two nodes that
// know each other. It is made by the first test that needs it.
var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests of processes wait more than they work.
	if n, _ := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); n < 4 {
		_ = flag.Set("test.parallel", "4")
	}
	var err error
	if scratch, err = os.MkdirTemp("", "tandem-test-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(scratch)
	m.Run()
}

// built is the node as a contributor builds it to have it killed at a point.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "tandem")
	c := exec.Command("go", "build", "-tags", "crashpoints", "-o", path, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, said)
	}
	return path, nil
})

// pair is both nodes in processes of their own, the link between them, and the
// far ends in this process.
type pair struct {
	t           *testing.T
	fcm         *standin.FCM
	telegram    *standin.Telegram
	link        *demoLink
	home, cloud *process
}

// process is a node that can be told where to die.
type process struct {
	*demoNode
	t       *testing.T
	log     string
	through []string // the command that runs the node, with its arguments; empty: none
}

// pairs count, so that each has addresses of its own: on them a node finds its
// port free again after it was killed, whatever other tests and programs do.
var pairs atomic.Int32

// newPair returns two nodes that know each other and do not run yet.
func newPair(t *testing.T) *pair {
	t.Helper()
	dir := t.TempDir()
	w := barePair(t, dir)
	w.acquainted(dir)
	return w
}

// barePair is two nodes in dir that have never run.
func barePair(t *testing.T, dir string) *pair {
	t.Helper()
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	w := &pair{t: t, fcm: standin.NewFCM("demo"), telegram: standin.NewTelegram("1:demo")}
	address := fmt.Sprintf("127.%d.%d.%d", 100+os.Getpid()>>8%100, os.Getpid()&0xff, pairs.Add(1))
	var err error
	if w.link, err = newDemoLink("0"); err != nil {
		t.Fatal(err)
	}
	w.link.to = address + ":8471"
	tokens := map[string]string{}
	for _, name := range []string{"home", "cloud"} {
		tokens[name] = "TANDEM_PEER_TOKEN_FILE=" + filepath.Join(dir, name+".token")
		must(t, os.WriteFile(filepath.Join(dir, name+".token"), []byte(bubbleSecret), 0o600))
	}
	shared := []string{
		"TANDEM_PUSH_FCM_ENDPOINT=" + serve(t, w.fcm), "TANDEM_PUSH_FCM_PROJECT_ID=demo",
		"TANDEM_PUSH_TELEGRAM_ENDPOINT=" + serve(t, w.telegram), "TANDEM_PUSH_TELEGRAM_TOKEN=1:demo",
		fmt.Sprintf("TANDEM_PUSH_TELEGRAM_CHAT_ID=%d", demoChat),
	}
	w.home = newProcess(t, dir, "home", address+":8470", append(shared[:len(shared):len(shared)], tokens["home"],
		"TANDEM_NODE_ORIGIN=0", "TANDEM_PEER_NAME=cloud", "TANDEM_SCHEDULER_MODE=active", "TANDEM_PEER_URL=http://"+w.link.addr()))
	w.cloud = newProcess(t, dir, "cloud", address+":8471", append(shared[:len(shared):len(shared)], tokens["cloud"],
		"TANDEM_NODE_ORIGIN=1", "TANDEM_PEER_NAME=home", "TANDEM_SCHEDULER_MODE=standby"))
	t.Cleanup(func() {
		_, _ = w.home.kill(), w.cloud.kill()
		_ = w.link.close()
		if t.Failed() {
			t.Logf("home said:\n%s\ncloud said:\n%s", w.home.said(), w.cloud.said())
		}
	})
	return w
}

func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func newProcess(t *testing.T, dir, name, address string, env []string) *process {
	p := &process{t: t, log: filepath.Join(dir, name+".log"), demoNode: &demoNode{dir: filepath.Join(dir, name), url: "http://" + address}}
	p.env = append(slices.Clone(env), "TANDEM_NODE_NAME="+name, "TANDEM_NODE_DATA="+p.dir, "TANDEM_HTTP_LISTEN="+address)
	return p
}

// launch runs the node and does not wait for it.
func (p *process) launch(env ...string) {
	p.t.Helper()
	p.process = p.command("serve")
	p.process.Env = append(p.process.Env, env...)
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.process.Stdout, p.process.Stderr = log, log
	if err := p.process.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// command is a verb of the node, not yet run.
func (p *process) command(args ...string) *exec.Cmd {
	path, _ := built() // made with the world
	args = slices.Concat(p.through, []string{path}, args)
	c := exec.Command(args[0], args[1:]...)
	c.Env = slices.Clone(p.env)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // the test's end is the node's
	return c
}

// start runs the node, to die at a point if CRASH_AT is given, and waits until it serves.
func (p *process) start(env ...string) {
	p.t.Helper()
	p.launch(env...)
	eventually(p.t, func() error { return p.alive(p.t.Context()) })
}

func (p *process) said() []byte {
	b, _ := os.ReadFile(p.log)
	return b
}

// dies waits for the node's end, which must be the kill at a crash point.
func (p *process) dies() {
	p.t.Helper()
	if status := p.wait(); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		p.t.Fatalf("it ended with %v, not by SIGKILL", status)
	}
}

// terminates asks the node to end, and returns how long it took to exit 0.
func (p *process) terminates() time.Duration {
	p.t.Helper()
	at := time.Now()
	must(p.t, p.process.Process.Signal(syscall.SIGTERM))
	p.ends()
	return time.Since(at)
}

// ends waits until the node has exited 0.
func (p *process) ends() {
	p.t.Helper()
	if status := p.wait(); !status.Exited() || status.ExitStatus() != exitOK {
		p.t.Fatalf("it ended with %v, not with exit 0", status)
	}
}

func (p *process) wait() syscall.WaitStatus {
	p.t.Helper()
	ended := make(chan syscall.WaitStatus, 1)
	c := p.process
	go func() {
		_ = c.Wait() // the status says it
		ended <- c.ProcessState.Sys().(syscall.WaitStatus)
	}()
	select {
	case status := <-ended:
		p.process = nil
		return status
	case <-time.After(patience):
		_ = c.Process.Kill()
		p.process = nil
		p.t.Fatal("it does not end")
		return 0
	}
}

// post is a POST under an Idempotency-Key; it reports whether the answer was an
// earlier one.
func (p *process) post(path, key string, body any) (replayed bool, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+path, bytes.NewReader(b))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Idempotency-Key", key)
	res, err := demoHTTP.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		return false, fmt.Errorf("POST %s: %d", path, res.StatusCode)
	}
	return res.Header.Get("Idempotent-Replayed") == "true", nil
}

// eventually tries again until it holds, and fails the test when it never does.
func eventually(t testing.TB, holds func() error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := until(ctx, holds); err != nil {
		t.Fatal(err)
	}
}

// look reads lines of text from a file of a node.
func look(ctx context.Context, dir string, schema sqlite.Schema, query string) ([]string, error) {
	db, err := sqlite.OpenReadOnly(ctx, sqlite.Options{Path: filepath.Join(dir, schema.File()), Schema: schema, Now: time.Now})
	if err != nil {
		return nil, err
	}
	list, err := sqlite.ReadAll(ctx, db, sqlite.Value[string], query)
	return list, errors.Join(err, db.Close())
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// known is the folders of two nodes that have met: Ada has an account, a session
// at each and one phone.
var known struct {
	mu                    sync.Mutex
	dir                   string // empty until the first test that needs it has made it
	homeToken, cloudToken string
}

// acquainted makes w's nodes copies of the two that have met.
func (w *pair) acquainted(dir string) {
	w.t.Helper()
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.dir == "" {
		made, err := os.MkdirTemp(scratch, "known-")
		must(w.t, err)
		first := barePair(w.t, made)
		first.meet()
		known.dir, known.homeToken, known.cloudToken = made, first.home.token, first.cloud.token
	}
	must(w.t, copyTree(dir, known.dir))
	w.home.token, w.cloud.token = known.homeToken, known.cloudToken
}

// meet has both nodes run until home has all that it copies from the cloud.
func (w *pair) meet() {
	w.t.Helper()
	ctx := w.t.Context()
	w.cloud.start()
	w.home.start()
	_, _, err := ask[initAnswer](ctx, w.cloud.dir, "init", initRequest{demoEmail, demoPassword})
	must(w.t, err)
	must(w.t, w.cloud.login(ctx))
	phone := map[string]string{"token": demoPhone, "platform": "android", "device_id": "ada-1"}
	must(w.t, w.cloud.call(ctx, http.MethodPost, "/v1/push-tokens", phone, nil))
	eventually(w.t, func() error { return w.home.login(ctx) })
	eventually(w.t, func() error {
		var devices struct{ Items []struct{} }
		err := w.home.call(ctx, http.MethodGet, "/v1/push-tokens", nil, &devices)
		if err == nil && len(devices.Items) != 1 {
			err = fmt.Errorf("home knows %d devices", len(devices.Items))
		}
		return err
	})
	w.home.terminates()
	w.cloud.terminates()
}

// copyTree copies folders and files with their permissions.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), fi.Mode().Perm())
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, fi.Mode().Perm())
	})
}
