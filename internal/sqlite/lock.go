package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"tandem/internal/fault"
)

// ErrInUse is returned by Hold for a folder that another process holds.
var ErrInUse = fault.New(fault.Conflict, "folder_in_use", "Another process is using this data folder. Stop it first, or wait until it has ended.")

// LockName is the file in a folder that the lock is on.
const LockName = "lock"

// Lock is the right of one process to write to a data folder. The kernel takes it
// back when the process ends, however it ends.
type Lock struct{ file *os.File }

// Hold takes the lock of a folder, which must exist, or fails at once.
func Hold(dir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrInUse.Because(fmt.Errorf("folder %s", dir))
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	// For whoever looks; the lock itself is the kernel's.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return &Lock{f}, nil
}

// Release gives the folder back, also where a child that is being started still has
// the file. The file stays: to remove it would let two processes lock two files of one
// name.
func (l *Lock) Release() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
