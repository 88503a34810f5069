package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxSecret is more than two secrets take, in bytes.
const maxSecret = 4096

// readPrivate reads a small file that holds a secret, through symlinks, and
// refuses one that has any of the permission bits in forbidden. The text of an
// error continues "a file that …"; fs.ErrNotExist is passed on to be found.
func readPrivate(path string, forbidden fs.FileMode) ([]byte, error) {
	// A FIFO without a writer must not hold up the start; others do not notice.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("is a folder; name the file within it")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not an ordinary file; name one that is")
	case info.Mode().Perm()&forbidden != 0:
		return nil, fmt.Errorf("other users of this machine may open; run: chmod 600 %s", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(text) > maxSecret {
		err = errors.New("is too long to be a secret; is it the right one?")
	}
	return text, err
}

// clause is an error of readPrivate as the rest of a sentence.
func clause(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "does not exist; make it, or name another"
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Sprintf("cannot be read (%s); make it readable for the user that runs the node", reason(err))
	}
	return err.Error()
}

// reason is what the system said, without the path that a fault names anyway.
func reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}
