package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"tandem/internal/fault"
)

// NodeHeader carries the caller's name beside the secret: a secret is good for
// one name only.
const NodeHeader = "Tandem-Node"

const (
	callLimit = 75 * time.Second // above MaxWait: a poll that finds nothing is an answer
	maxAnswer = maxBody
)

// What may be wrong with the other end of the line. The operator reads these.
var (
	ErrPeerAway     = fault.New(fault.Unavailable, "peer_away", "The other node cannot be reached.")
	ErrPeerStranger = fault.New(fault.Unavailable, "peer_stranger", "What answers at peer.url is not a node of this kind. Is peer.url right, and does the proxy before it pass /peer/ on?")
	ErrPeerRefused  = fault.New(fault.Unavailable, "peer_refused", "The other node refuses this one. Both need the same peer secret, and each must name the other in peer.name.")
	ErrPeerFailed   = fault.New(fault.Unavailable, "peer_failed", "The other node answered with an error.")
	ErrPeerSelf     = fault.New(fault.Conflict, "peer_self", "The other node has this one's name or origin. One of them is a copy: give it a name and an origin of its own in its configuration, stop it, and run there: tandem adopt")
	ErrPeerVersion  = fault.New(fault.Conflict, "peer_version", "The two nodes speak different protocols. Upgrade the older one.")
)

// Peer is the other node as this one calls it.
type Peer struct {
	url, name, node string
	secret          atomic.Value // a string
	http            *http.Client
}

// NewPeer returns the node called name at url. The secret goes with each call,
// over the transport given; redirects are not followed, since they would carry it
// to a place that nobody configured.
func NewPeer(url, name, node, secret string, transport http.RoundTripper) *Peer {
	p := &Peer{
		url: strings.TrimSuffix(url, "/") + "/peer/v1/", name: name, node: node,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	p.Present(secret)
	return p
}

// Present has each call from now on carry another secret.
func (p *Peer) Present(secret string) { p.secret.Store(secret) }

// Name is the peer's name.
func (p *Peer) Name() string { return p.name }

// Call sends in as JSON, where it is not nil, and reads the answer into out.
// Errors carry neither the secret nor what was sent.
func (p *Peer) Call(ctx context.Context, method, path string, in, out any) error {
	ctx, stop := context.WithTimeout(ctx, callLimit)
	defer stop()
	body, err := encode(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.secret.Load().(string))
	req.Header.Set(NodeHeader, p.node)
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := p.http.Do(req)
	if own, ok := errors.AsType[*fault.Error](err); ok { // the transport's: this node keeps from calling
		return own
	}
	if err != nil {
		return ErrPeerAway.Because(err)
	}
	defer res.Body.Close()
	return readAnswer(res, out)
}

func encode(in any) (io.Reader, error) {
	if in == nil {
		return http.NoBody, nil
	}
	b, err := json.Marshal(in)
	return bytes.NewReader(b), err
}

// readAnswer decides by status and content type before it believes a body: what a
// proxy says on behalf of a node is not the node's.
func readAnswer(res *http.Response, out any) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return ErrPeerRefused
	case res.StatusCode == http.StatusNoContent && out == nil:
		return nil
	case kind == "application/problem+json":
		var p struct{ Code string }
		_ = json.NewDecoder(io.LimitReader(res.Body, 4<<10)).Decode(&p)
		return ErrPeerFailed.Because(fmt.Errorf("%d %.80q", res.StatusCode, p.Code))
	case kind != "application/json":
		return ErrPeerStranger.Because(fmt.Errorf("%d with content type %.80q", res.StatusCode, kind))
	case res.StatusCode >= 300:
		return ErrPeerFailed.Because(fmt.Errorf("%d", res.StatusCode))
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return ErrPeerAway.Because(err) // cut on the way
	}
	if len(b) > maxAnswer {
		return ErrPeerStranger.Because(errors.New("the answer is too long"))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return ErrPeerStranger.Because(err)
	}
	return nil
}
