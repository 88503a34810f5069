package config

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
)

// Keyring is what a running node knows of the secret that it shares with its peer.
// It may change while others read it: each call sees the newest.
type Keyring struct {
	path  string // of the file it is in; empty where it stands in the configuration
	held  atomic.Pointer[Secrets]
	place string
}

// OpenKeyring is LoadPeerSecret for a node that runs.
func OpenKeyring(c Config, rand io.Reader) (*Keyring, error) {
	s, err := LoadPeerSecret(c, rand)
	if err != nil {
		return nil, err
	}
	k := &Keyring{}
	if c.Peer.Token == "" {
		k.path = c.Peer.TokenFile
		k.place = placeOf(k.path)
	}
	k.held.Store(&s)
	return k, nil
}

// Place tells the file that the secret is in from all others, on this machine and on
// others, and says nothing else. It is empty where that is not known.
func (k *Keyring) Place() string { return k.place }

// placeOf goes by the folder, since each change of the secret puts another file there.
func placeOf(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return ""
	}
	folder, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(boot, "%d %d %s", folder.Dev, folder.Ino, filepath.Base(path)))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// Send is the secret that this node presents.
func (k *Keyring) Send() string { return string(k.held.Load().Send) }

// Match reports whether presented is accepted, in constant time.
func (k *Keyring) Match(presented string) bool { return k.held.Load().Match(presented) }

// Accept are the secrets that are accepted; the first is sent.
func (k *Keyring) Accept() []Secret { return slices.Clone(k.held.Load().Accept) }

// Writable reports whether the secret is in a file, which Replace can write.
func (k *Keyring) Writable() bool { return k.path != "" }

// Replace writes the secrets to the file, one or two, the one to send first, and has
// them hold at once. A crash leaves the old file or the new one, at worst with a copy
// beside it whose name begins with .peer-token. It fails with a *Faults where the
// secret does not stand in a file.
func (k *Keyring) Replace(accept ...Secret) error {
	if !k.Writable() {
		return &Faults{List: []Fault{{Where: "configuration", Key: "peer.token",
			Detail: "holds the secret itself, which only you can change; take it out, name a file in peer.token_file, and restart the node"}}}
	}
	text := ""
	for _, s := range accept {
		text += string(s) + "\n"
	}
	s, err := parseSecrets(k.path, text)
	if err != nil {
		return err
	}
	if err := overwrite(k.path, text); err != nil {
		return tokenFault(k.path, fmt.Sprintf("names a file that cannot be written (%s); let the user that runs the node write to its folder", reason(err)))
	}
	k.held.Store(&s)
	return nil
}

// NewSecret returns one of 256 random bits, which come from the system.
func NewSecret() Secret {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	return Secret(base64.RawURLEncoding.EncodeToString(key[:]))
}

// overwrite puts text in place of a file, or of the one that a symlink at path leads to.
func overwrite(path, text string) error {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	return writeAside(path, text, func(aside string) error { return os.Rename(aside, path) })
}
