package link

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"

	"tandem/internal/fault"
	"tandem/internal/sync"
)

var (
	errBodyTooLarge   = fault.New(fault.TooLarge, "body_too_large", "The body is too large: at most 16 MiB.")
	errTooManyEntries = fault.New(fault.TooLarge, "too_many_entries", "The page has too many entries: at most %d.", sync.PageRows)
	errBodySlow       = fault.New(fault.Unavailable, "body_too_slow", "The body did not arrive in time. Send it again.")
	errBodyCoding     = fault.New(fault.Malformed, "unsupported_encoding", "The body has a content coding that this node does not know; it knows zstd.")
)

// body returns the body of a request, unpacked.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	b, err := readAll(atPace(w, r.Body), r.ContentLength)
	if err == nil {
		b, err = s.codec.unpack(b, r.Header.Get("Content-Encoding"))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errBodySlow.Because(err)
	case errors.Is(err, errTooLong):
		return nil, errBodyTooLarge
	case errors.Is(err, errCoding):
		return nil, errBodyCoding
	case err != nil:
		return nil, sync.ErrBadPage.Because(err)
	}
	return b, nil
}

func unmarshal(b []byte, v any) error {
	if json.Unmarshal(b, v) != nil {
		return sync.ErrBadPage.Because(errShape)
	}
	return nil
}

// write answers 200 with JSON, packed where the caller understands that, and says
// that it may pack too.
func (s *Server) write(w http.ResponseWriter, r *http.Request, b []byte) {
	b, name := s.codec.pack(b, understands(r.Header.Get("Accept-Encoding")))
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("Accept-Encoding", coding)
	if name != "" {
		h.Set("Content-Encoding", name)
	}
	_, _ = w.Write(b) // the caller may be gone
}
