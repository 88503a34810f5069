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
	Next string `json:"next"` // the key to go on after; empty: these were the last
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

// rows answers with the entries of one bucket, after a key.
func (s *Server) rows(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	bucket, _ := strconv.ParseInt(query.Get("bucket"), 10, 64)
	cutoff, _ := strconv.ParseInt(query.Get("cutoff"), 10, 64)
	entries, next, err := s.log.Bucket(r.Context(), query.Get("table"), bucket, cutoff, query.Get("after"))
	if err != nil {
		return err
	}
	b, err := joinRows(entries, rowsTail{Next: next})
	if err == nil {
		s.write(w, r, b)
	}
	return err
}

// asideAmong are some entries of a table, by their uids: asked about, or set aside.
type asideAmong struct {
	Table string     `json:"table"`
	UIDs  []sync.UID `json:"uids"`
}

// aside answers which of some entries are in quarantine here.
func (s *Server) aside(w http.ResponseWriter, r *http.Request) error {
	b, err := s.body(w, r)
	if err != nil {
		return err
	}
	var in asideAmong
	if err := unmarshal(b, &in); err != nil {
		return err
	}
	if in.UIDs, err = s.log.AsideAmong(r.Context(), in.Table, in.UIDs); err != nil {
		return err
	}
	return s.writeJSON(w, r, in)
}
