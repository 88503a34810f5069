package link

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	gosync "sync"
	"time"

	"tandem/internal/sync"
)

const (
	firstCompare = 10 * time.Minute // after a start
	compareEvery = 6 * time.Hour
	compareAgain = 10 * time.Minute // after a repair: whether it held
)

// Comparison is what a comparison of both nodes' tables came to.
type Comparison struct {
	At        int64  `json:"at"`        // Unix ms
	Differing int    `json:"differing"` // entries that were not alike
	Repaired  int    `json:"repaired"`  // of these, sent to the other node again, or brought from there
	Explained int    `json:"explained"` // of these, in quarantine on one of the nodes
	Lasting   int    `json:"lasting"`   // of these, repaired before and still not alike
	Line      string `json:"line"`      // the same in words
}

// errNotNow says that the nodes were not at rest, so that a difference means nothing.
var errNotNow = errors.New("one of the nodes has something that the other has not read yet")

// compare is when a client compares next, and what it has tried.
type compare struct {
	tried map[difference]bool // repairs that were made; the steps' own

	mu gosync.Mutex
	at int64 // Unix ms
}

// difference is one bucket as it was at both nodes. It is repaired once a day: if the
// same comes back, sending it again does not help, until a clock is put right perhaps
// that had one of them take a fact for too old.
type difference struct {
	cutoff       int64
	table        string
	bucket       int64
	mine, theirs sync.Sum
}

// due has the next comparison be made at a time, or earlier.
func (c *compare) due(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == 0 || at < c.at {
		c.at = at
	}
}

func (c *compare) next(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

func (c *compare) isDue(now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now >= c.at
}

// CompareSoon has the nodes compared as soon as they are at rest.
func (c *Client) CompareSoon() {
	c.compare.due(c.hello().Now)
	c.compareLoop.Wake()
}

func (c *Client) compareWhenDue(ctx context.Context) error {
	if !c.compare.isDue(c.hello().Now) || !c.greeted.Load() {
		return nil
	}
	result, err := c.Compare(ctx)
	if errors.Is(err, errNotNow) || errors.Is(err, ErrPeerAway) {
		return nil // in a minute, perhaps
	}
	if err != nil {
		return err
	}
	if result.Differing > 0 {
		c.logger.WarnContext(ctx, "the nodes were not alike", "peer", c.name, "differing", result.Differing,
			"repaired", result.Repaired, "explained", result.Explained, "lasting", result.Lasting)
	}
	again := compareEvery
	if result.Repaired > 0 {
		again = compareAgain
	}
	c.compare.next(result.At + again.Milliseconds())
	return nil
}

// Compare finds what is not alike on the two nodes although each has read the
// other's log to its end, and sends it both ways. It needs both to be at rest, and
// fails where they are not.
func (c *Client) Compare(ctx context.Context) (Comparison, error) {
	now := c.hello().Now
	cutoff := cutoff(now)
	theirs, mine, err := c.digests(ctx, cutoff)
	if err != nil {
		return Comparison{}, err
	}
	round := &comparing{Client: c, cutoff: cutoff}
	for _, table := range slices.Sorted(maps.Keys(mine.Tables)) {
		if sum, both := theirs.Tables[table]; both && sum != mine.Tables[table] {
			if err := round.table(ctx, table); err != nil {
				return Comparison{}, err
			}
		}
	}
	c.compare.tried = round.tried
	round.result.At, round.result.Line = now, round.result.words(now)
	c.status.wasCompared(round.result)
	return round.result, nil
}

// cutoff is a whole day from which on both nodes still have each fact, though their
// clocks differ and one may have purged today already.
func cutoff(now int64) int64 {
	const day = 24 * 60 * 60 * 1000
	return max(0, (now/day-89)*day)
}

func (r Comparison) words(now int64) string {
	at := time.UnixMilli(now).UTC().Format(time.RFC3339)
	if r.Differing == 0 {
		return at + ": both nodes hold the same."
	}
	return fmt.Sprintf("%s: %d entries were not alike; %d sent again, %d in quarantine, %d still not alike after that.", at, r.Differing, r.Repaired, r.Explained, r.Lasting)
}

// digestAnswer is the peer's digest, and how far each node has read the other's log.
type digestAnswer struct {
	sync.Digest
	AtEnd  bool   `json:"at_end"` // nothing that can be sent follows the caller's cursor
	Cursor string `json:"cursor"` // the peer's into the caller's log
}

// digests returns what both logs come to, at moments between which nothing has
// crossed and nothing could have.
func (c *Client) digests(ctx context.Context, cutoff int64) (theirs, mine sync.Digest, err error) {
	cursor, err := c.log.Cursor(ctx, c.name)
	if err != nil {
		return theirs, mine, err
	}
	if mine, err = c.log.Digest(ctx, cutoff); err != nil {
		return theirs, mine, err
	}
	var answer digestAnswer
	query := url.Values{"cursor": {cursor}, "cutoff": {strconv.FormatInt(cutoff, 10)}}
	if err = c.peer.Call(ctx, http.MethodGet, "digest?"+query.Encode(), nil, &answer); err != nil {
		return theirs, mine, err
	}
	atEnd, err := c.atEnd(ctx, answer.Cursor)
	if err == nil && !(atEnd && answer.AtEnd) {
		err = errNotNow
	}
	return answer.Digest, mine, err
}

// atEnd reports whether nothing that can be sent follows a cursor into this log.
func (e *end) atEnd(ctx context.Context, cursor string) (bool, error) {
	page, err := e.log.Page(ctx, cursor, 1)
	return len(page.Entries) == 0 && page.Reset == "", err
}
