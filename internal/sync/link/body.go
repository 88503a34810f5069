package link

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"tandem/internal/fault"
	"tandem/internal/sync"
)

// maxBody bounds what one call carries either way, in bytes.
const maxBody = 16 << 20

// read reads the JSON of a request.
func read(r *http.Request, v any) error {
	b, err := body(r)
	if err != nil {
		return err
	}
	return unmarshal(b, v)
}

func body(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, sync.ErrBadPage.Because(err)
	case len(b) > maxBody:
		return nil, fault.New(fault.TooLarge, "body_too_large", "The body is too large: at most 16 MiB.")
	}
	return b, nil
}

func unmarshal(b []byte, v any) error {
	if json.Unmarshal(b, v) != nil {
		return sync.ErrBadPage.Because(errors.New("not JSON of the right shape")) // the decoder's own text repeats the input
	}
	return nil
}

// write answers 200 with JSON.
func write(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the caller may be gone
	return nil
}
