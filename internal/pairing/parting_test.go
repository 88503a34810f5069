package pairing

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tandem/internal/config"
)

// Whoever asks whether the nodes are parted does not wait for a disk that hangs.
func TestWhoeverAsksWhetherTheNodesArePartedDoesNotWaitForTheDisk(t *testing.T) {
	p, err := OpenParting(t.TempDir(), "cloud")
	if err != nil {
		t.Fatal(err)
	}
	p.changes.Lock() // as while the mark is on its way to the disk
	defer p.changes.Unlock()
	asked := make(chan bool, 1)
	go func() { asked <- p.Parted() }()
	select {
	case parted := <-asked:
		if parted {
			t.Error("they are parted")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
}

// A secret that holds is the one presented, also where the mark would not go.
func TestASecretHoldsWhateverBecomesOfTheMark(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "parted-from-cloud", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	parting, err := OpenParting(dir, "cloud")
	if err != nil {
		t.Fatal(err)
	}
	var c config.Config
	c.Peer.Name, c.Peer.TokenFile = "cloud", filepath.Join(dir, "token")
	keys, err := config.OpenKeyring(c, zeros{})
	if err != nil {
		t.Fatal(err)
	}
	changed, next := 0, config.NewSecret()
	p := New(Options{Keys: keys, Parting: parting, Changed: func() { changed++ }})
	if err := p.reunite(next); err == nil {
		t.Error("the mark is still there, and it says nothing")
	}
	if changed != 1 || keys.Send() != string(next) {
		t.Errorf("told %d times that another secret holds", changed)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
