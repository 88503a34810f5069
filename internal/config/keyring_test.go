package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tandem/internal/loop"
)

func keyring(t *testing.T, path string) *Keyring {
	t.Helper()
	k, err := OpenKeyring(withFile(path), noRand)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestANewSecretHoldsAtOnceAndAfterARestart(t *testing.T) {
	path := write(t, "peer.token", strong+"\n", 0o600)
	k := keyring(t, path)
	next := NewSecret()
	if next == NewSecret() || weakness(string(next)) != "" {
		t.Fatal("a new secret is weak")
	}
	for _, step := range [][]Secret{{strong, next}, {next, strong}, {next}, {next}} {
		equal(t, "replaced", k.Replace(step...), nil)
		for _, now := range []*Keyring{k, keyring(t, path)} {
			equal(t, "sent", now.Send(), string(step[0]))
			equal(t, "accepted", now.Accept(), step)
			equal(t, "the old one", now.Match(strong), len(step) == 2)
			equal(t, "the new one", now.Match(string(next)), true)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	equal(t, "in the folder", names(t, filepath.Dir(path)), []string{"peer.token"})
}

func TestASecretThatIsReplacedIsNeverHalfThere(t *testing.T) {
	path := write(t, "peer.token", strong+"\n", 0o600)
	k := keyring(t, path)
	var wrong atomic.Int32
	err := loop.Each(context.Background(), 4, []bool{true, false, false, false}, func(_ context.Context, writes bool) error {
		for range 50 {
			if writes {
				if err := k.Replace(NewSecret(), strong); err != nil {
					return err
				}
			} else if s, err := LoadPeerSecret(withFile(path), noRand); err != nil || !s.Match(strong) || !k.Match(strong) {
				wrong.Add(1)
			}
		}
		return nil
	})
	equal(t, "error", err, nil)
	equal(t, "read half of it", wrong.Load(), 0)
}

func TestASecretBehindASymlinkIsReplacedWhereItIs(t *testing.T) {
	path := write(t, "peer.token", strong+"\n", 0o600)
	at := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, at); err != nil {
		t.Fatal(err)
	}
	next := NewSecret()
	equal(t, "replaced", keyring(t, at).Replace(next), nil)
	text, err := os.ReadFile(path)
	equal(t, "error", err, nil)
	equal(t, "the file", strings.TrimSpace(string(text)), string(next))
}

func TestWhatCannotBeASecretReplacesNone(t *testing.T) {
	path := write(t, "peer.token", strong+"\n", 0o600)
	k := keyring(t, path)
	for _, accept := range [][]Secret{{}, {"short"}, {strong, "short"}, {strong, strong, strong}, {strong + " " + strong}} {
		if err := k.Replace(accept...); err == nil {
			t.Errorf("%d secrets are taken", len(accept))
		}
		equal(t, "sent", keyring(t, path).Send(), strong)
		equal(t, "sent", k.Send(), strong)
	}
}

func TestASecretInTheConfigurationIsTheOperatorsToChange(t *testing.T) {
	k, err := OpenKeyring(Config{Peer: Peer{Name: "cloud", Token: strong}}, noRand)
	equal(t, "error", err, nil)
	equal(t, "writable", k.Writable(), false)
	err = k.Replace(NewSecret())
	equal(t, "faults", faultsOf(t, err), []string{"configuration peer.token"})
	contains(t, err.Error(), "peer.token_file")
	equal(t, "sent", k.Send(), strong)
	if strings.Contains(err.Error(), strong) {
		t.Error("the error holds the secret")
	}

	alone, err := OpenKeyring(Config{}, noRand)
	equal(t, "error", err, nil)
	equal(t, "sent", alone.Send(), "")
	equal(t, "nobody is let in", alone.Match(""), false)
}
