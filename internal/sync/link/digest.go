package link

import (
	"net/http"
	"strconv"

	"tandem/internal/sync"
)

// bucketsAnswer is what a table comes to, bucket by bucket.
type bucketsAnswer struct {
	Buckets map[int64]sync.Sum `json:"buckets"`
}

// rowsTail is what goes with the rows of a bucket.
type rowsTail struct {
	More bool `json:"more"` // there are others after these
}

// digest answers with what the log comes to, or one table of it, bucket by bucket.
func (s *Server) digest(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	cutoff, _ := strconv.ParseInt(query.Get("cutoff"), 10, 64)
	if table := query.Get("table"); table != "" {
		buckets, err := s.log.Buckets(r.Context(), table, cutoff)
		if err != nil {
			return err
		}
		return s.writeJSON(w, r, bucketsAnswer{buckets})
	}
	s.compare.Store(false) // it has begun; until the nodes are at rest it tries again by itself
	// The peer's cursor before, and what it has not read after: whatever comes between
	// shows in one of the two.
	var answer digestAnswer
	var err error
	if answer.Cursor, err = s.log.Cursor(r.Context(), s.name); err != nil {
		return err
	}
	if answer.Digest, err = s.log.Digest(r.Context(), cutoff); err != nil {
		return err
	}
	if answer.AtEnd, err = s.atEnd(r.Context(), query.Get("cursor")); err != nil {
		return err
	}
	return s.writeJSON(w, r, answer)
}

// rows answers with the entries of one bucket, after as many as the caller has.
func (s *Server) rows(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	numbers := map[string]int64{"cutoff": 0, "bucket": 0, "after": 0}
	for name := range numbers {
		numbers[name], _ = strconv.ParseInt(query.Get(name), 10, 64)
	}
	entries, err := s.log.Bucket(r.Context(), query.Get("table"), numbers["bucket"], numbers["cutoff"])
	if err != nil {
		return err
	}
	entries = entries[max(0, min(numbers["after"], int64(len(entries)))):]
	n := fitting(entries)
	b, err := joinRows(entries[:n], rowsTail{More: n < len(entries)})
	if err == nil {
		s.write(w, r, b)
	}
	return err
}
