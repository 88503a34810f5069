package link

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	gosync "sync"

	"tandem/internal/sync"
	"tandem/internal/sync/letters"
)

// end is what both ends of a link are: a log, and what is known of the other node.
type end struct {
	log     *sync.Log
	name    string       // the peer's
	letters *letters.Box // nil: none cross
	hello   func() Hello
	logger  *slog.Logger
	status  status
	twins   twins // of the peer

	mu        gosync.Mutex
	told      string              // what the last greeting that arrived said of this node's quarantine, as asideOf has it
	announced string              // what a poll was last woken for, likewise
	raised    map[string][2]int64 // what the peer's last greeting said of ids
}

// introduce returns what this node says of itself, and notes for its own status
// what it had to look up for it. Once that has arrived, hasTold is to be told.
func (e *end) introduce(ctx context.Context) (h Hello, err error) {
	h = e.hello()
	h.Peer = e.name
	h.Incarnation, h.PageLimit, h.aside = e.log.Incarnation(), sync.PageRows, asideOf(e.log.QuarantineCounts())
	if h.Protocol == (Range{}) {
		h.Protocol = Protocol
	}
	if h.Highest, err = e.log.Highest(ctx); err != nil {
		return h, err
	}
	if h.Aside, err = e.log.Quarantine(ctx, toldOf); err != nil {
		return h, err
	}
	if e.letters != nil {
		if h.Parked, err = e.letters.Parked(ctx, toldOf); err != nil {
			return h, err
		}
	}
	read, err := e.log.Cursor(ctx, e.name)
	if err != nil {
		return h, err
	}
	h.Read = &read
	if read, known := e.status.read(); known {
		n, err := e.log.Pending(ctx, read)
		if err != nil {
			return h, err
		}
		h.Pending = &n
	}
	e.status.looked(h.Parked, h.Pending)
	return h, nil
}

// hasTold keeps what a greeting of this node's said that the peer has.
func (e *end) hasTold(mine Hello) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = mine.aside
}

// untold is what is in quarantine here by now; false: the peer knows.
func (e *end) untold() (aside string, is bool) {
	aside = asideOf(e.log.QuarantineCounts())
	e.mu.Lock()
	defer e.mu.Unlock()
	return aside, e.told != aside
}

// asideOf writes down how much is in quarantine, of each kind.
func asideOf(counts map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprint(kind, " ", counts[kind]))
	}
	return strings.Join(all, ", ")
}

// meet takes in what the peer said of itself.
func (e *end) meet(ctx context.Context, mine, theirs Hello) error {
	if e.status.sharesFile(theirs.SecretAt == mine.SecretAt && mine.SecretAt != "") {
		e.logger.WarnContext(ctx, "both nodes keep their secret in one file: give each a peer.token_file of its own, and pair them again", "peer", e.name)
	}
	if err := e.raise(ctx, theirs.Highest); err != nil {
		return err
	}
	if len(e.log.QuarantineCounts()) == 0 {
		return nil
	}
	_, err := e.log.Retry(ctx, theirs.Version)
	return err
}

// raise has this node's ids begin above those that the peer has of it.
func (e *end) raise(ctx context.Context, highest map[string][2]int64) error {
	e.mu.Lock()
	same := maps.Equal(highest, e.raised)
	e.mu.Unlock()
	if same {
		return nil
	}
	if err := e.log.Raise(ctx, highest); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.raised = highest
	return nil
}
