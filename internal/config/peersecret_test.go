package config

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tandem/internal/loop"
)

func withFile(path string) Config {
	return Config{Peer: Peer{Name: "cloud", TokenFile: path}}
}

// reader is randomness that does something first.
type reader func(p []byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// bytesOf is randomness that is always the same byte.
func bytesOf(b byte) io.Reader {
	return reader(func(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{b}, len(p))), nil })
}

// noRand is for those who must not make a secret.
var noRand = reader(func([]byte) (int, error) { return 0, errors.New("asked for randomness") })

func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestSecretIsMadeWhereThereIsNone(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "data")
	path := filepath.Join(folder, "peer.token")
	made, err := LoadPeerSecret(withFile(path), bytesOf(7))
	if err != nil {
		t.Fatal(err)
	}
	want := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	equal(t, "secret", string(made.Send), want)
	equal(t, "length", len(made.Send), minSecret)
	equal(t, "accepted", made.Match(want), true)
	equal(t, "in the folder", names(t, folder), []string{"peer.token"})
	for name, mode := range map[string]os.FileMode{path: 0o600, folder: 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, name, info.Mode().Perm(), mode)
	}
	again, err := LoadPeerSecret(withFile(path), noRand)
	equal(t, "done twice", again, made)
	equal(t, "done twice", err, nil)
}

func TestTwoNodesThatStartAtOnceShareOneSecret(t *testing.T) {
	t.Run("the other is first", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "peer.token")
		var other Secrets
		mine, err := LoadPeerSecret(withFile(path), reader(func(p []byte) (int, error) {
			var err error
			if other, err = LoadPeerSecret(withFile(path), bytesOf(1)); err != nil {
				t.Error(err)
			}
			return bytesOf(2).Read(p)
		}))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "secret", string(mine.Send), string(other.Send))
		equal(t, "in the folder", names(t, filepath.Dir(path)), []string{"peer.token"})
	})
	t.Run("many", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "data", "peer.token")
		var mu sync.Mutex
		found := map[Secret]int{}
		err := loop.Each(context.Background(), 16, make([]int, 16), func(context.Context, int) error {
			s, err := LoadPeerSecret(withFile(path), rand.Reader)
			mu.Lock()
			defer mu.Unlock()
			found[s.Send]++
			return err
		})
		equal(t, "error", err, nil)
		equal(t, "different secrets", len(found), 1)
	})
}

func TestCrashWhileTheSecretIsMadeLeavesNoHalfOfIt(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "peer.token")
	_, err := LoadPeerSecret(withFile(path), io.MultiReader(strings.NewReader("short")))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("randomness ran out: %v", err)
	}
	equal(t, "in the folder", names(t, folder), nil)

	// What a kill between writing aside and linking leaves behind.
	if err := os.WriteFile(filepath.Join(folder, ".peer-token-1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := LoadPeerSecret(withFile(path), bytesOf(3))
	if err != nil || len(s.Send) != minSecret {
		t.Fatalf("%v, %d characters", err, len(s.Send))
	}
}

func TestSecretFileHoldsOneToSendAndOneMoreToAccept(t *testing.T) {
	next := strings.Repeat("n", 43)
	for text, want := range map[string][]Secret{
		strong:                              {strong},
		strong + "\n":                       {strong},
		"\n  " + strong + "\r\n\n":          {strong},
		next + "\n" + strong + "\n":         {Secret(next), strong},
		strings.Repeat("aB+/", 11) + "==\n": {Secret(strings.Repeat("aB+/", 11) + "==")},
	} {
		got, err := LoadPeerSecret(withFile(write(t, "peer.token", text, 0o600)), noRand)
		if err != nil {
			t.Fatal(err)
		}
		if got.Send != want[0] || len(got.Accept) != len(want) {
			t.Errorf("%q is read wrongly", text)
		}
		for _, s := range want {
			equal(t, text, got.Match(string(s)), true)
		}
	}
}

func TestMatchTakesWholeSecretsOnly(t *testing.T) {
	s := Secrets{Send: strong, Accept: []Secret{strong, strong}}
	equal(t, "the same line twice", s.Match(strong), true)
	for _, presented := range []string{"", strong[1:], strong + "x", strings.ToLower(strong), "[secret]"} {
		equal(t, presented, s.Match(presented), false)
	}
	equal(t, "nothing accepted", Secrets{}.Match(""), false)
}

func TestSecretOfTheConfigNeedsNoFile(t *testing.T) {
	s, err := LoadPeerSecret(Config{Peer: Peer{Name: "cloud", Token: strong}}, noRand)
	equal(t, "error", err, nil)
	equal(t, "sent and accepted", s.Send == strong && s.Match(strong), true)

	s, err = LoadPeerSecret(Config{}, noRand)
	equal(t, "error of a node alone", err, nil)
	equal(t, "secret of a node alone", s, Secrets{})
}

func TestSecretFileThatCannotBeTakenIsAClearFault(t *testing.T) {
	dir := t.TempDir()
	link := func(name, target string) string {
		path := filepath.Join(dir, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(text string, mode os.FileMode) string { return write(t, "peer.token", text, mode) }
	for name, c := range map[string]struct{ path, where, says string }{
		"readable for the group":  {file(strong, 0o640), "peer.token", "chmod 600 "},
		"readable for all":        {file(strong, 0o604), "peer.token", "chmod 600 "},
		"writable for the group":  {file(strong, 0o620), "peer.token", "chmod 600 "},
		"short":                   {file(strong[1:]+"\n", 0o600), "peer.token:1", "shorter than 43"},
		"short second":            {file(strong+"\n"+marker+"\n", 0o600), "peer.token:2", "shorter than 43"},
		"three":                   {file(strings.Repeat(strong+"\n", 3), 0o600), "peer.token", "more than two lines"},
		"empty":                   {file("", 0o600), "peer.token", "is empty; copy the other node's file"},
		"blank":                   {file(" \n\n", 0o600), "peer.token", "is empty"},
		"two on a line":           {file(strong+" "+strong, 0o600), "peer.token:1", "characters other than"},
		"junk":                    {file(strong+"\x00\xff", 0o600), "peer.token:1", "characters other than"},
		"too long":                {file(strings.Repeat("x", maxSecret+1), 0o600), "peer.token", "too long"},
		"folder":                  {dir, filepath.Base(dir), "is a folder"},
		"symlink to a folder":     {link("to-folder", dir), "to-folder", "is a folder"},
		"symlink to nothing":      {link("to-nothing", "none"), "to-nothing", "symlink that leads nowhere"},
		"symlink to itself":       {link("to-self", "to-self"), "to-self", "symbolic links"},
		"fifo":                    {fifo, "fifo", "not an ordinary file"},
		"in a file, not a folder": {file("", 0o600) + "/x", "x", "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadPeerSecret(withFile(c.path), bytesOf(1))
			equal(t, "faults", faultsOf(t, err), []string{c.where + " peer.token_file"})
			contains(t, err.Error(), c.says)
			if strings.Contains(err.Error(), marker) || strings.Contains(err.Error(), strong[1:]) {
				t.Errorf("shows a secret: %v", err)
			}
		})
	}
	t.Run("symlink to a file", func(t *testing.T) {
		s, err := LoadPeerSecret(withFile(link("to-file", file(strong, 0o600))), noRand)
		equal(t, "error", err, nil)
		equal(t, "taken", s.Match(strong), true)
	})
}

func TestSecretFileClosedToThisUserIsAFault(t *testing.T) {
	path := filepath.Join(openFolder(t), "peer.token")
	if err := os.WriteFile(path, []byte(strong), 0o000); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		_, err := LoadPeerSecret(withFile(path), noRand)
		equal(t, "faults", faultsOf(t, err), []string{"peer.token peer.token_file"})
		contains(t, err.Error(), "permission denied", "make it readable for the user that runs the node")
	})
}

func TestSecretCannotBeMadeInAFolderThatIsReadOnly(t *testing.T) {
	folder := openFolder(t)
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		for _, path := range []string{filepath.Join(folder, "peer.token"), filepath.Join(folder, "new", "peer.token")} {
			_, err := LoadPeerSecret(withFile(path), bytesOf(1))
			equal(t, "faults", faultsOf(t, err), []string{"peer.token peer.token_file"})
			contains(t, err.Error(), "permission denied", "let the user that runs the node write to its folder")
		}
	})
	equal(t, "in the folder", names(t, folder), nil)
}
