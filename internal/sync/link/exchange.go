package link

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"tandem/internal/sync/letters"
)

const (
	lettersSet   = "letters" // how a poll names those that wait
	lettersACall = 100
)

// lettersPage is what crosses of letters, either way.
type lettersPage struct {
	Letters []letters.Letter `json:"letters"`
	After   string           `json:"after"`            // the last of the sender's letters that the other acked
	Ack     []string         `json:"ack,omitempty"`    // keys of the other's letters, that need not come again
	Parked  []letters.Parked `json:"parked,omitempty"` // those of them of which nothing came, and why
	Of      string           `json:"of,omitempty"`     // the after that came with the letters acked
	Lost    bool             `json:"lost,omitempty"`   // the sender does not know the after that came: it was put back
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
	mine, after, err := c.letters.Oldest(ctx, lettersACall)
	if err != nil {
		return false, err
	}
	var theirs lettersPage
	if err := c.peer.Call(ctx, http.MethodGet, "letters?"+url.Values{"after": {after}}.Encode(), nil, &theirs); err != nil {
		return false, err
	}
	if theirs.Lost {
		return true, c.letters.OfferAgain(ctx, after)
	}
	// What cannot be taken now keeps nothing else away.
	ack, failed := c.letters.Receive(ctx, theirs.After, theirs.Letters)
	lost := errors.Is(failed, letters.ErrPutBack)
	if lost {
		failed = nil
	}
	if len(ack)+len(mine) == 0 && !lost {
		return false, failed
	}
	parked, err := c.letters.ParkedAmong(ctx, ack)
	if err != nil {
		return false, err
	}
	var answer lettersPage
	in := lettersPage{Letters: mine, After: after, Ack: ack, Parked: parked, Of: theirs.After, Lost: lost}
	if err := c.peer.Call(ctx, http.MethodPost, "letters", in, &answer); err != nil {
		return false, err
	}
	if answer.Lost {
		return true, cmp.Or(c.letters.OfferAgain(ctx, after), failed)
	}
	if err := c.acked(ctx, after, answer); err != nil {
		return false, err
	}
	return lost || len(ack)+len(answer.Ack) > 0, failed
}

// acked has the letters that a page acks wait no more, and tells the log of those of
// which nothing came there.
func (e *end) acked(ctx context.Context, after string, page lettersPage) error {
	for _, p := range page.Parked {
		e.logger.WarnContext(ctx, "a letter came to nothing at the peer", "peer", e.name, "letter", cut(p.Key, longName), "kind", cut(p.Kind, longName), "code", cut(p.Code, longName))
	}
	return e.letters.Acked(ctx, after, page.Ack)
}

// lettersUntold is how often letters are asked for although nothing told of one. The poll
// names those of the peer and the box those of this node: it finds what neither did.
const lettersUntold = 10 * time.Minute

// exchangeLetters is the round of the loop, which calls nobody where no letter waits. It
// greets first: nothing is said to a node that is none of the other's kind.
func (c *Client) exchangeLetters(ctx context.Context) error {
	mine, err := c.letters.Next(ctx)
	if err != nil {
		return err
	}
	due := c.lettersDue.Swap(false) // before the calls, so that no news falls between
	if !due && mine == "" && time.Since(c.lettersAsked) < lettersUntold {
		return nil
	}
	if err = c.greet(ctx); err == nil {
		err = c.Exchange(ctx)
	}
	if err != nil {
		c.lettersDue.Store(true)
		return err
	}
	c.lettersAsked = time.Now()
	return nil
}

// give answers with the letters that wait for the peer, and says whether the last one
// that it takes for acked is known here.
func (s *Server) give(w http.ResponseWriter, r *http.Request) error {
	oldest, after, err := s.letters.Oldest(r.Context(), lettersACall)
	if err != nil {
		return err
	}
	known, err := s.letters.Has(r.Context(), r.URL.Query().Get("after"))
	if err != nil {
		return err
	}
	return s.writeJSON(w, r, lettersPage{Letters: oldest, After: after, Lost: !known})
}

// receive takes the peer's letters and its acks of this node's.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) error {
	b, err := s.body(w, r)
	if err != nil {
		return err
	}
	var in lettersPage
	if err := unmarshal(b, &in); err != nil {
		return err
	}
	if in.Lost {
		err = s.letters.OfferAgain(r.Context(), in.Of)
	} else {
		err = s.acked(r.Context(), in.Of, in)
	}
	if err != nil {
		return err
	}
	ack, err := s.letters.Receive(r.Context(), in.After, in.Letters)
	lost := errors.Is(err, letters.ErrPutBack)
	if err != nil && !lost { // those that were taken are acked; the others come again
		s.logger.WarnContext(r.Context(), "a letter could not be taken yet", "peer", s.name, "error", err)
	}
	parked, err := s.letters.ParkedAmong(r.Context(), ack)
	if err != nil {
		return err
	}
	return s.writeJSON(w, r, lettersPage{Letters: []letters.Letter{}, Ack: ack, Parked: parked, Lost: lost})
}
