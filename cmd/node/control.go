package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tandem/internal/fault"
)

// A node that runs is asked over a socket in its data folder, since the folder
// is its alone. Whoever may open the socket acts as the operator.
const socketName = "control.sock"

// control serves the operator's verbs until stop is called.
func (n *node) control(dir string) (stop func(), err error) {
	l, err := listenIn(dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /init", controlled(n.initFor))
	mux.HandleFunc("POST /backup", controlled(n.backupFor))
	mux.HandleFunc("POST /user", controlled(n.userFor))
	mux.HandleFunc("POST /doctor", controlled(n.doctorFor))
	mux.HandleFunc("POST /pair/open", controlled(n.openPairing))
	mux.HandleFunc("POST /pair/look", controlled(n.pairLook))
	mux.HandleFunc("POST /pair/join", controlled(n.pairJoin))
	mux.HandleFunc("POST /pair/rotate", controlled(n.pairRotate))
	mux.HandleFunc("POST /unpair", controlled(n.unpair))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(operatorsOnly{l, n.logger}) }()
	return func() {
		grace, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		_ = srv.Shutdown(grace) // what is asked is answered, while the files are open
		_ = srv.Close()
		_ = os.Remove(filepath.Join(dir, socketName))
	}, nil
}

// within calls f with a path to the socket that is short whatever the folder's
// is: a socket's address holds 107 bytes.
func within(dir string, f func(path string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketName))
}

func listenIn(dir string) (l *net.UnixListener, err error) {
	// What is left of a process that was killed; the folder's lock says it is gone.
	if err := os.Remove(filepath.Join(dir, socketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = within(dir, func(path string) error {
		old := syscall.Umask(0o177) // never a moment in which others could connect
		defer syscall.Umask(old)
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if l != nil {
		l.SetUnlinkOnClose(false) // its path is gone by then; stop removes the file
	}
	return l, err
}

// operatorsOnly accepts callers of the node's own user, and root.
type operatorsOnly struct {
	*net.UnixListener
	log *slog.Logger
}

func (o operatorsOnly) Accept() (net.Conn, error) {
	for {
		c, err := o.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(c)
		if err == nil && (uid == 0 || uid == uint32(os.Getuid())) {
			return c, nil
		}
		o.log.Warn("control socket refused a caller", "uid", uid, "error", err)
		_ = c.Close()
	}
}

func peerUID(c *net.UnixConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var inner error
	if err := raw.Control(func(fd uintptr) { cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if inner != nil {
		return 0, inner
	}
	return cred.Uid, nil
}

// controlAnswer is what the socket says: a result, or a fault and what caused it,
// since whoever may ask may know.
type controlAnswer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Fault  *fault.Error    `json:"fault,omitempty"`
	Cause  string          `json:"cause,omitempty"`
}

func controlled[I, O any](do func(context.Context, I) (O, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in I
		var a controlAnswer
		err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&in)
		if err == nil {
			var out O
			if out, err = do(r.Context(), in); err == nil {
				a.Result, err = json.Marshal(out)
			}
		}
		if err != nil {
			a.Fault = asFault(err)
			if cause := a.Fault.Unwrap(); cause != nil {
				a.Cause = cause.Error()
			}
		}
		_ = json.NewEncoder(w).Encode(a) // the caller may be gone
	}
}

// asFault keeps an operator's error whole.
func asFault(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	return fault.New(fault.Internal, "internal", "%v", err)
}

// ask puts a verb to the node that holds the folder, and reports whether there is one.
func ask[O any](ctx context.Context, dir, verb string, in any) (out O, running bool, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return out, false, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		err = within(dir, func(path string) error {
			c, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
			return err
		})
		return c, err
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node/"+verb, bytes.NewReader(body))
	if err != nil {
		return out, false, err
	}
	res, err := client.Do(req)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return out, false, nil
	}
	if err != nil {
		return out, true, fmt.Errorf("ask the running node: %w", err)
	}
	defer res.Body.Close()
	var a controlAnswer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return out, true, fmt.Errorf("ask the running node: %w", err)
	}
	if a.Fault != nil && a.Cause != "" {
		return out, true, a.Fault.Because(errors.New(a.Cause))
	}
	if a.Fault != nil {
		return out, true, a.Fault
	}
	return out, true, json.Unmarshal(a.Result, &out)
}
