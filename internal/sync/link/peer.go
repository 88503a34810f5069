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
	"tandem/internal/sqlite"
)

// NodeHeader carries the caller's name beside the secret: a secret is good for
// one name only.
const NodeHeader = "Tandem-Node"

// callLimit is how long a call may take; it is above MaxWait, since a poll that
// finds nothing is an answer.
const callLimit = 75 * time.Second

// What may be wrong with the other end of the line. The operator reads these.
var (
	ErrPeerAway     = fault.New(fault.Unavailable, "peer_away", "The other node cannot be reached.")
	ErrPeerStranger = fault.New(fault.Unavailable, "peer_stranger", "What answers at peer.url is not a node of this kind. Is peer.url right, and does the proxy before it pass /peer/ on?")
	ErrPeerRefused  = fault.New(fault.Unavailable, "peer_refused", "The other node does not let this one in: it does not know its secret, or names another node in peer.name. So it is where two were never paired, or where one was unpaired, begun anew, or paired with another node.")
	ErrPeerName     = fault.New(fault.Unavailable, "peer_name", "One of the nodes takes the other for another one, by its peer.name, so nothing crosses.")
	ErrPeerAlone    = fault.New(fault.Unavailable, "peer_alone", "The node at peer.url has no section peer in its configuration, so it lets nobody in.")
	ErrPeerFailed   = fault.New(fault.Unavailable, "peer_failed", "The other node answered with an error.")
	ErrPeerFull     = fault.New(fault.Unavailable, "peer_disk_full", "The disk of the other node is full, so it takes and sends nothing. Free some space there: what waits crosses by itself then.")
	ErrPeerTooLarge = fault.New(fault.Unavailable, "peer_too_large", "Something on the way to the other node takes no call of that size. Raise the limit of the proxy before it to 2 MiB.")
	ErrPeerSelf     = fault.New(fault.Conflict, "peer_self", "The other node has this one's name, origin or data, so nothing crosses. One of them is a copy: give it a name and an origin of its own in its configuration, stop it, and run there: tandem adopt --config FILE")
	ErrPeerVersion  = fault.New(fault.Conflict, "peer_version", "The two nodes speak different protocols, so nothing crosses. Upgrade the older one.")
)

// Besider is a transport that can make another one like it, whose connections are
// its own.
type Besider interface{ Beside() http.RoundTripper }

// Peer is the other node as this one calls it.
type Peer struct {
	url, name, node string
	secret          atomic.Value // a string
	http            *http.Client
	beat            *http.Client // for greetings
	codec           codec
	unpacks         atomic.Bool // whether its last answer said that it does
	fast            atomic.Bool // whether the last long answer came faster than it is packed
}

// NewPeer returns the node called name at url. The secret goes with each call,
// over the transport given; redirects are not followed, since they would carry it
// to a place that nobody configured. Greetings have a connection of their own
// where the transport is a Besider: they are the sign of life, and must not wait
// behind a page.
func NewPeer(url, name, node, secret string, transport http.RoundTripper) *Peer {
	beside := transport
	if t, ok := transport.(Besider); ok {
		beside = t.Beside()
	}
	p := &Peer{
		url: strings.TrimSuffix(url, "/") + "/peer/v1/", name: name, node: node, codec: newCodec(),
		http: &http.Client{Transport: transport, CheckRedirect: stay}, beat: &http.Client{Transport: beside, CheckRedirect: stay},
	}
	p.Present(secret)
	return p
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Present has each call from now on carry another secret.
func (p *Peer) Present(secret string) { p.secret.Store(secret) }

// Name is the peer's name.
func (p *Peer) Name() string { return p.name }

// Call sends in as JSON, where it is not nil, and reads the answer into out, where
// that is not nil. Errors carry neither the secret nor what was sent.
func (p *Peer) Call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	answer, err := p.exchange(ctx, p.http, method, path, body)
	if err != nil || out == nil {
		return err
	}
	if json.Unmarshal(answer, out) != nil {
		return ErrPeerStranger.Because(errShape)
	}
	return nil
}

// exchange makes one call and returns the JSON of the answer.
func (p *Peer) exchange(ctx context.Context, over *http.Client, method, path string, body []byte) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, callLimit)
	defer stop()
	packed, name := p.codec.pack(body, p.unpacks.Load() && !p.fast.Load())
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+p.secret.Load().(string))
	req.Header.Set(NodeHeader, p.node)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", p.accepts())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if name != "" {
		req.Header.Set("Content-Encoding", name)
	}
	defer p.hush()
	res, err := over.Do(req)
	if own, ok := errors.AsType[*fault.Error](err); ok { // the transport's: this node keeps from calling
		return nil, own
	}
	if err != nil {
		return nil, ErrPeerAway.Because(err)
	}
	defer res.Body.Close()
	if err := judge(res); err != nil {
		return nil, err
	}
	p.unpacks.Store(understands(res.Header.Get("Accept-Encoding")))
	if res.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	return p.answer(res)
}

// hush takes the secret out of a panic, which is going to be logged: whatever fails on
// the way has the request at hand.
func (p *Peer) hush() {
	what := recover()
	if what == nil {
		return
	}
	if said := fmt.Sprint(what); strings.Contains(said, p.secret.Load().(string)) {
		what = strings.ReplaceAll(said, p.secret.Load().(string), "***")
	}
	panic(what)
}

// judge decides by status and content type before anybody believes a body: what a
// proxy says on behalf of a node is not the node's.
func judge(res *http.Response) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return ErrPeerRefused
	case res.StatusCode == http.StatusRequestEntityTooLarge:
		return ErrPeerTooLarge.Because(fmt.Errorf("%d with content type %.80q", res.StatusCode, kind))
	case kind == "application/problem+json":
		return judgeProblem(res)
	case res.StatusCode == http.StatusNoContent:
		return nil
	case kind != "application/json":
		return ErrPeerStranger.Because(errors.New(strange(res, kind)))
	case res.StatusCode >= 300:
		return ErrPeerFailed.Because(fmt.Errorf("%d", res.StatusCode))
	}
	return nil
}

func judgeProblem(res *http.Response) error {
	var p struct{ Code, Detail string }
	_ = json.NewDecoder(io.LimitReader(res.Body, 4<<10)).Decode(&p)
	why := fmt.Errorf("%d %.80q: %.200q", res.StatusCode, p.Code, p.Detail)
	switch {
	case p.Code == sqlite.ErrFull.Code:
		return ErrPeerFull.Because(why)
	case res.Request != nil && strings.HasSuffix(res.Request.URL.Path, "/hello") && p.Code == errNoRoute.Code:
		return ErrPeerAlone // each node that has a peer takes a greeting
	}
	return ErrPeerFailed.Because(why)
}

// strange says what answered that is not a node.
func strange(res *http.Response, kind string) string {
	switch to := res.Header.Get("Location"); {
	case res.StatusCode >= 300 && res.StatusCode < 400 && to != "":
		return fmt.Sprintf("it leads elsewhere, with %d to %.200q, and this node follows nobody with its secret", res.StatusCode, to)
	case res.StatusCode == http.StatusTooManyRequests:
		return "429: something before it has had too many requests"
	}
	return fmt.Sprintf("%d with content type %.80q", res.StatusCode, kind)
}

func (p *Peer) answer(res *http.Response) ([]byte, error) {
	began := time.Now()
	b, err := readAll(res.Body, res.ContentLength)
	if errors.Is(err, errTooLong) {
		return nil, ErrPeerStranger.Because(err)
	}
	p.feel(len(b), time.Since(began))
	if err != nil {
		return nil, ErrPeerAway.Because(err) // cut on the way
	}
	if b, err = p.codec.unpack(b, res.Header.Get("Content-Encoding")); err != nil {
		return nil, ErrPeerStranger.Because(err)
	}
	return b, nil
}

// readAll reads a body whose length was announced, or was not, which is below 0.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if length > maxBody {
		return nil, errTooLong
	}
	b := bytes.NewBuffer(make([]byte, 0, min(max(length, 0), maxBody/8)+bytes.MinRead))
	if _, err := b.ReadFrom(io.LimitReader(r, maxBody+1)); err != nil {
		return nil, err
	}
	if b.Len() > maxBody {
		return nil, errTooLong
	}
	return b.Bytes(), nil
}
