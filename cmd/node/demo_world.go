package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tandem/internal/config"
	"tandem/internal/standin"
)

// demoChat is the chat that the demo's Telegram bot writes to.
const demoChat = 4242

// demoWorld is both nodes, the link between them, and the far ends.
type demoWorld struct {
	dir         string
	fcm         *standin.FCM
	telegram    *standin.Telegram
	far         []*http.Server
	link        *demoLink
	home, cloud *demoNode
	due         time.Time
	leave       bool // the nodes stay up after the story
}

func newDemoWorld(leave bool) (_ *demoWorld, err error) {
	w := &demoWorld{fcm: standin.NewFCM("demo"), telegram: standin.NewTelegram("1:demo"), leave: leave}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "tandem-demo-"); err != nil {
		return nil, err
	}
	fcm, err := w.serve(w.fcm)
	if err != nil {
		return nil, err
	}
	telegram, err := w.serve(w.telegram)
	if err != nil {
		return nil, err
	}
	homePort, cloudPort, err := freePorts()
	if err != nil {
		return nil, err
	}
	if w.link, err = newDemoLink(cloudPort); err != nil {
		return nil, err
	}
	tokens, secret := map[string]string{}, []byte(config.NewSecret())
	for _, name := range []string{"home", "cloud"} { // as tandem pair leaves them
		path := filepath.Join(w.dir, name+".token")
		if err := os.WriteFile(path, secret, 0o600); err != nil {
			return nil, err
		}
		tokens[name] = "TANDEM_PEER_TOKEN_FILE=" + path
	}
	shared := []string{
		"TANDEM_PUSH_FCM_ENDPOINT=" + fcm, "TANDEM_PUSH_FCM_PROJECT_ID=demo",
		"TANDEM_PUSH_TELEGRAM_ENDPOINT=" + telegram, "TANDEM_PUSH_TELEGRAM_TOKEN=1:demo",
		fmt.Sprintf("TANDEM_PUSH_TELEGRAM_CHAT_ID=%d", demoChat),
	}
	w.cloud = newDemoNode(w.dir, "cloud", cloudPort, append(shared[:len(shared):len(shared)], tokens["cloud"], "TANDEM_NODE_ORIGIN=1", "TANDEM_PEER_NAME=home", "TANDEM_SCHEDULER_MODE=standby"))
	w.home = newDemoNode(w.dir, "home", homePort, append(shared[:len(shared):len(shared)], tokens["home"], "TANDEM_NODE_ORIGIN=0", "TANDEM_PEER_NAME=cloud",
		"TANDEM_SCHEDULER_MODE=active", "TANDEM_PEER_URL=http://"+w.link.addr()))
	return w, nil
}

// serve puts a stand-in on a free port of this machine.
func (w *demoWorld) serve(h http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	w.far = append(w.far, srv)
	go func() { _ = srv.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// close ends whatever still runs and removes the folder.
func (w *demoWorld) close() error {
	var errs []error
	for _, n := range []*demoNode{w.home, w.cloud} {
		if n != nil {
			errs = append(errs, n.kill())
		}
	}
	if w.link != nil {
		errs = append(errs, w.link.close())
	}
	for _, srv := range w.far {
		errs = append(errs, srv.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

// freePorts returns two ports that nobody listens on just now.
func freePorts() (a, b string, err error) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer first.Close()
	second, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer second.Close()
	port := func(l net.Listener) string {
		return l.Addr().String()[strings.LastIndexByte(l.Addr().String(), ':')+1:]
	}
	return port(first), port(second), nil
}
