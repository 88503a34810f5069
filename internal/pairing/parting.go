package pairing

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"tandem/internal/fault"
)

// ErrParted is what a node says that was parted from its peer.
var ErrParted = fault.New(fault.Conflict, "parted", "This node was parted from the other one by tandem unpair: it does not call it and does not let it in.")

// Parting is the mark that this node was parted from its peer. It is a file beside the
// databases and in no backup, so that neither a restart, nor a backup, nor a secret
// that both still know makes two nodes a pair again that an operator has parted: only
// pairing does. Its methods may be called from many goroutines, and none that asks waits
// for the disk.
type Parting struct {
	path string
	now  atomic.Pointer[together]

	changes sync.Mutex // held while the mark is made or taken away
}

// together is the time in which the nodes are a pair, or may become one.
type together struct {
	lasts context.Context
	end   context.CancelFunc
}

func beTogether() *together {
	lasts, end := context.WithCancel(context.Background())
	return &together{lasts, end}
}

// OpenParting returns whether the node whose data is in dir was parted from the one
// called peer.
func OpenParting(dir, peer string) (*Parting, error) {
	p := &Parting{path: filepath.Join(dir, "parted-from-"+peer)} // a name is fit for a file's
	p.now.Store(beTogether())
	_, err := os.Stat(p.path)
	switch {
	case err == nil:
		p.now.Load().end()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return p, nil
}

// Parted reports whether the nodes are parted.
func (p *Parting) Parted() bool { return p.Together().Err() != nil }

// Together ends when the nodes are parted; it has ended where they are.
func (p *Parting) Together() context.Context { return p.now.Load().lasts }

// begin parts the nodes. When it returns that outlives a power cut.
func (p *Parting) begin() error {
	p.changes.Lock()
	defer p.changes.Unlock()
	f, err := os.OpenFile(p.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p.now.Load().end()
	return errors.Join(f.Sync(), f.Close(), p.syncFolder())
}

// end takes the mark away: the nodes may be a pair again. After an error they are where
// the mark is gone, and a power cut may bring it back.
func (p *Parting) end() error {
	p.changes.Lock()
	defer p.changes.Unlock()
	if !p.Parted() {
		return nil
	}
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.now.Store(beTogether())
	return p.syncFolder()
}

func (p *Parting) syncFolder() error {
	d, err := os.Open(filepath.Dir(p.path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
