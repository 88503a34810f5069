package config

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Secrets is what the two nodes know of each other.
type Secrets struct {
	Send   Secret   // what this node presents
	Accept []Secret // what it takes from the other: one, or two while the secret is being changed
}

// Match reports whether presented is one of the accepted secrets, in a time that
// depends neither on where they differ nor on which of them it is.
func (s Secrets) Match(presented string) bool {
	got, match := sha256.Sum256([]byte(presented)), 0
	for _, secret := range s.Accept {
		want := sha256.Sum256([]byte(secret))
		match |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return match == 1
}

// LoadPeerSecret returns the secret shared with the peer; none without a peer.
// The file holds one secret a line, at most two: the first is sent, each is
// accepted. Where there is no file one is made of 256 bits from rand; when two
// nodes do so at once, both return the same secret. A crash leaves either no
// file or a whole one, at worst with a copy beside it whose name begins with
// .peer-token. A file that cannot be used or made is a *Faults.
func LoadPeerSecret(c Config, rand io.Reader) (Secrets, error) {
	path := c.Peer.TokenFile
	if c.Peer.Token != "" {
		return Secrets{Send: c.Peer.Token, Accept: []Secret{c.Peer.Token}}, nil
	}
	if path == "" {
		return Secrets{}, nil
	}
	text, err := readPrivate(path, 0o077)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeSecret(path, rand); err != nil {
			return Secrets{}, err
		}
		text, err = readPrivate(path, 0o077)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Secrets{}, tokenFault(path, "names a symlink that leads nowhere; remove it, or make the file it names")
	}
	if err != nil {
		return Secrets{}, tokenFault(path, "names a file that "+clause(err))
	}
	return parseSecrets(path, string(text))
}

func tokenFault(where, detail string) *Faults {
	return &Faults{List: []Fault{{Where: where, Key: "peer.token_file", Detail: detail}}}
}

func parseSecrets(path, text string) (Secrets, error) {
	var accept []Secret
	var found Faults
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if problem := weakness(line); problem != "" {
			where := path + ":" + strconv.Itoa(i+1)
			found.List = append(found.List, Fault{Where: where, Key: "peer.token_file", Detail: "holds a secret that " + problem})
		}
		accept = append(accept, Secret(line))
	}
	switch {
	case len(accept) == 0:
		return Secrets{}, tokenFault(path, "names a file that is empty; copy the other node's file here, or remove both, so that the next start makes one")
	case len(accept) > 2:
		return Secrets{}, tokenFault(path, "names a file of more than two lines; keep the secret to send, and below it one more to accept")
	case len(found.List) > 0:
		return Secrets{}, &found
	}
	return Secrets{Send: accept[0], Accept: accept}, nil
}

// bearer is what an Authorization header can carry (RFC 6750, section 2.1).
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// minSecret is the length of 256 bits in base64url.
const minSecret = 43

// weakness says why a text is not fit to be the secret, or nothing.
func weakness(secret string) string {
	const remedy = "make one with: openssl rand -base64 32"
	switch {
	case len(secret) < minSecret:
		return fmt.Sprintf("is shorter than %d characters; %s", minSecret, remedy)
	case !bearer.MatchString(secret):
		return "holds characters other than A-Z, a-z, 0-9 and -._~+/; " + remedy
	}
	return ""
}

// makeSecret puts a new secret at path unless something is there by then. It is
// written aside and linked, so that nobody ever reads half of it.
func makeSecret(path string, rand io.Reader) error {
	key := make([]byte, 32)
	if _, err := io.ReadFull(rand, key); err != nil {
		return fmt.Errorf("randomness for %s: %w", path, err)
	}
	if err := placeSecret(path, base64.RawURLEncoding.EncodeToString(key)+"\n"); err != nil {
		return tokenFault(path, fmt.Sprintf("names a file that does not exist and cannot be made (%s); "+
			"let the user that runs the node write to its folder, or name another path", reason(err)))
	}
	return nil
}

func placeSecret(path, text string) error {
	return writeAside(path, text, func(aside string) error {
		if err := os.Link(aside, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}

// writeAside writes text beside path, whole and on the disk, and has place give it
// that name, which then outlives a power cut.
func writeAside(path, text string, place func(aside string) error) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	aside, err := os.CreateTemp(folder, ".peer-token-*") // exclusive and 0600
	if err != nil {
		return err
	}
	defer os.Remove(aside.Name())
	_, err = aside.WriteString(text)
	if err = errors.Join(err, aside.Sync(), aside.Close()); err != nil {
		return err
	}
	if err := place(aside.Name()); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the name of a new file outlive a power cut.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
