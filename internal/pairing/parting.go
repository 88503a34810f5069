package pairing

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"tandem/internal/fault"
)

// ErrParted is what a node says that was parted from its peer.
var ErrParted = fault.New(fault.Conflict, "parted", "This node was parted from the other one by tandem unpair: it does not call it and does not let it in.")

// Parting is the mark that this node was parted from its peer. It is a file beside the
// databases and in no backup, so that neither a restart, nor a backup, nor a secret
// that both still know makes two nodes a pair again that an operator has parted: only
// pairing does. Its methods may be called from many goroutines.
type Parting struct {
	path string

	mu    sync.Mutex
	whole context.Context // ends when the nodes are parted
	part  context.CancelFunc
}

// OpenParting returns whether the node whose data is in dir was parted from the one
// called peer.
func OpenParting(dir, peer string) (*Parting, error) {
	p := &Parting{path: filepath.Join(dir, "parted-from-"+peer)} // a name is fit for a file's
	p.whole, p.part = context.WithCancel(context.Background())
	_, err := os.Stat(p.path)
	switch {
	case err == nil:
		p.part()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return p, nil
}

// Is reports whether the nodes are parted.
func (p *Parting) Is() bool { return p.Whole().Err() != nil }

// Whole ends when the nodes are parted; it has ended where they are.
func (p *Parting) Whole() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole
}

// begin parts the nodes. When it returns that outlives a power cut.
func (p *Parting) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := os.OpenFile(p.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p.part()
	return errors.Join(f.Sync(), f.Close(), p.syncFolder())
}

// end makes an end of it.
func (p *Parting) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.whole.Err() == nil {
		return nil
	}
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.whole, p.part = context.WithCancel(context.Background())
	return p.syncFolder()
}

func (p *Parting) syncFolder() error {
	d, err := os.Open(filepath.Dir(p.path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
