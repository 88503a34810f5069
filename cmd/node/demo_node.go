package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// demoNode is a node in a process of its own.
type demoNode struct {
	dir, url string
	env      []string
	token    string
	process  *exec.Cmd // nil while none runs
}

func newDemoNode(dir, name, port string, env []string) *demoNode {
	n := &demoNode{dir: filepath.Join(dir, name), url: "http://127.0.0.1:" + port}
	n.env = append(env[:len(env):len(env)], "TANDEM_NODE_NAME="+name, "TANDEM_NODE_DATA="+n.dir, "TANDEM_HTTP_LISTEN=127.0.0.1:"+port)
	return n
}

// start runs the node and waits until it is ready.
func (n *demoNode) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "serve")
	c.Env = n.env
	said := &bytes.Buffer{}
	c.Stderr = said
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // the demo's end is the node's
	if err := c.Start(); err != nil {
		return err
	}
	n.process = c
	if err := until(ctx, func() error { return n.alive(ctx) }); err != nil {
		return errors.Join(err, n.kill(), fmt.Errorf("it said: %s", said))
	}
	return nil
}

// kill ends the node as a power cut would.
func (n *demoNode) kill() error {
	if n.process == nil {
		return nil
	}
	err := n.process.Process.Kill()
	_ = n.process.Wait() // says that it was killed
	n.process = nil
	return err
}

// stop asks the node to end and returns how it did.
func (n *demoNode) stop() error {
	if n.process == nil {
		return errors.New("it does not run")
	}
	err := n.process.Process.Signal(syscall.SIGTERM)
	err = errors.Join(err, n.process.Wait())
	n.process = nil
	return err
}

func (n *demoNode) alive(ctx context.Context) error {
	return n.call(ctx, http.MethodGet, "/readyz", nil, nil)
}

func (n *demoNode) login(ctx context.Context) error {
	var session struct{ Token string }
	body := map[string]string{"email": demoEmail, "password": demoPassword}
	err := n.call(ctx, http.MethodPost, "/v1/auth/login", body, &session)
	n.token = session.Token
	return err
}

// demoTodo is as much of a todo as the story compares.
type demoTodo struct {
	Ref, Content string
	UpdatedAt    string `json:"updated_at"`
	UpdatedBy    string `json:"updated_by"`
}

func (n *demoNode) todos(ctx context.Context) ([]demoTodo, error) {
	var page struct{ Items []demoTodo }
	err := n.call(ctx, http.MethodGet, "/v1/todos", nil, &page)
	return page.Items, err
}

// has returns nil where a todo with that content is there.
func (n *demoNode) has(ctx context.Context, content string) error {
	list, err := n.todos(ctx)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.Content == content {
			return nil
		}
	}
	return fmt.Errorf("%q is not among %d todos", content, len(list))
}

var demoHTTP = &http.Client{Timeout: 5 * time.Second}

func (n *demoNode) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, n.url+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if n.token != "" {
		req.Header.Set("Authorization", "Bearer "+n.token)
	}
	res, err := demoHTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}
