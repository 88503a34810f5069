package link

import (
	"cmp"
	"context"
	"net/http"

	"tandem/internal/sync/letters"
)

const (
	lettersSet   = "letters" // how a poll names those that wait
	lettersACall = 100
)

// lettersPage is what crosses of letters, either way.
type lettersPage struct {
	Letters     []letters.Letter `json:"letters"`
	Ack         []string         `json:"ack,omitempty"` // keys of the other's letters, that need not come again
	Incarnation string           `json:"incarnation"`   // of who acks: what one life has taken, the next may have lost
}

// Exchange hands letters over both ways until no end has one that the other takes.
// A crash at any point has some of them come again, and act no second time.
func (c *Client) Exchange(ctx context.Context) error {
	if c.letters == nil {
		return nil
	}
	for {
		moved, err := c.exchangeOnce(ctx)
		if err != nil || !moved {
			return err
		}
	}
}

func (c *Client) exchangeOnce(ctx context.Context) (moved bool, err error) {
	var theirs lettersPage
	if err := c.peer.Call(ctx, http.MethodGet, "letters", nil, &theirs); err != nil {
		return false, err
	}
	// An ack is good for lives that were greeted. One that began since would have the
	// same letters come for ever.
	if mine := c.log.Incarnation(); c.as.Load() == nil || mine != *c.as.Load() || theirs.Incarnation != c.status.peerIncarnation() {
		if err := c.Greet(ctx); err != nil {
			return false, err
		}
	}
	// What cannot be taken now keeps nothing else away.
	ack, failed := c.letters.Receive(ctx, theirs.Letters)
	mine, err := c.letters.Oldest(ctx, lettersACall)
	if err != nil || len(ack)+len(mine) == 0 {
		return false, cmp.Or(err, failed)
	}
	var answer lettersPage
	in := lettersPage{Letters: mine, Ack: ack, Incarnation: c.log.Incarnation()}
	if err := c.peer.Call(ctx, http.MethodPost, "letters", in, &answer); err != nil {
		return false, err
	}
	if err := c.letters.Acked(ctx, answer.Incarnation, answer.Ack); err != nil {
		return false, err
	}
	return len(ack)+len(answer.Ack) > 0, failed
}

// exchangeLetters is the round of the loop. It greets first, since acks are good for
// the incarnation that was greeted.
func (c *Client) exchangeLetters(ctx context.Context) error {
	if err := c.greet(ctx); err != nil {
		return err
	}
	return c.Exchange(ctx)
}

// waitingLetters names the oldest letter that waits for the peer; empty: none does.
func (s *Server) waitingLetters(ctx context.Context) (string, error) {
	oldest, err := s.letters.Oldest(ctx, 1)
	if err != nil || len(oldest) == 0 {
		return "", err
	}
	return oldest[0].Key, nil
}

// give answers with the letters that wait for the peer.
func (s *Server) give(w http.ResponseWriter, r *http.Request) error {
	oldest, err := s.letters.Oldest(r.Context(), lettersACall)
	if err != nil {
		return err
	}
	return s.writeJSON(w, r, lettersPage{Letters: oldest, Incarnation: s.log.Incarnation()})
}

// receive takes the peer's letters and its acks of this node's.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) error {
	b, err := s.body(r)
	if err != nil {
		return err
	}
	var in lettersPage
	if err := unmarshal(b, &in); err != nil {
		return err
	}
	if err := s.letters.Acked(r.Context(), in.Incarnation, in.Ack); err != nil {
		return err
	}
	ack, err := s.letters.Receive(r.Context(), in.Letters)
	if err != nil { // those that were taken are acked; the others come again
		s.logger.WarnContext(r.Context(), "a letter could not be taken yet", "peer", s.name, "error", err)
	}
	return s.writeJSON(w, r, lettersPage{Letters: []letters.Letter{}, Ack: ack, Incarnation: s.log.Incarnation()})
}
