// Package far puts a long way between two processes of one machine: a proxy whose
// connections are as slow as TCP is over a line with a delay and with loss.
//
// A proxy cannot drop packets of a TCP connection, so it models what TCP makes of
// it, for each direction of each connection by itself: a window of ten segments of
// 1460 bytes that grows as in slow start and then by one segment a round trip; each
// segment lost by chance arrives one round trip later, and with it all that follow
// in its direction; the window is halved for each window in which something was
// lost (Reno's rule, which is slower than the CUBIC of today's Linux where the line
// is fast, and alike at the rates that 1 % allows). A loss among the last three
// segments of what the sender had to say costs two round trips, and each further
// loss of the same segment 200 ms more than one. A new connection costs a round
// trip before its first byte, and one that was idle begins again with ten segments.
// What is left out: reordering, bottleneck queues and lost acknowledgements; the
// line itself has no limit of bandwidth.
package far

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy takes connections at Addr and leads them to a server over a Line.
type Proxy struct {
	line     Line
	to       string
	listener net.Listener
	began    time.Time
	count    atomic.Uint64 // connections so far; seeds theirs
	bytes    atomic.Int64

	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup

	mu    sync.Mutex
	open  map[net.Conn]bool
	until time.Time // the line is down
}

// Listen begins to take connections on a free port of this machine.
func Listen(line Line, to string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{line: line, to: to, listener: l, began: time.Now(), open: map[net.Conn]bool{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.all.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Bytes is how many were given to the line so far, both directions together, each
// counted once however often a segment of it was lost.
func (p *Proxy) Bytes() int64 { return p.bytes.Load() }

// Cut ends all connections at once, with what is under way on them, and takes none
// for the time given.
func (p *Proxy) Cut(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(d)
	for c := range p.open {
		_ = reset(c)
	}
}

// Close ends all connections and waits for their goroutines.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.stop()
	p.Cut(0)
	p.all.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.carry(c) })
	}
}

// carry serves one connection until both directions have ended.
func (p *Proxy) carry(near net.Conn) {
	if !p.hold(near) {
		return
	}
	defer p.release(near)
	n := p.count.Add(1)
	away, err := net.Dial("tcp", p.to)
	if err != nil || !p.hold(away) {
		return
	}
	defer p.release(away)
	first := p.now() + p.line.Delay*2 // the handshake
	var both sync.WaitGroup
	both.Go(func() { p.flow(near, away, newFlow(p.line, 2*n), first) })
	both.Go(func() { p.flow(away, near, newFlow(p.line, 2*n+1), first) })
	both.Wait()
}

// hold keeps c among the open ones, or ends it at once while the line is down.
func (p *Proxy) hold(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil || time.Now().Before(p.until) {
		_ = reset(c)
		return false
	}
	p.open[c] = true
	return true
}

func (p *Proxy) release(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	_ = c.Close()
}

// reset closes a connection so that the other end sees it break and not end.
func reset(c net.Conn) error {
	if t, ok := c.(*net.TCPConn); ok {
		return errors.Join(t.SetLinger(0), t.Close())
	}
	return c.Close()
}

// parcel is bytes and when they can be read at the far end.
type parcel struct {
	at    time.Duration
	bytes []byte
}

// flow carries one direction. Reading stops where the window is full, so that what
// the line does not take waits in the sender's socket.
func (p *Proxy) flow(from, to net.Conn, f *flow, first time.Duration) {
	under, broken := make(chan parcel, largestWindow/Segment+1), make(chan struct{})
	var unpacking sync.WaitGroup
	unpacking.Go(func() {
		if p.unpack(under, to) != nil {
			close(broken)
			_ = reset(from)
		}
	})
	defer unpacking.Wait()
	defer close(under)
	put := func(x parcel) bool {
		select {
		case under <- x:
			return true
		case <-broken:
			return false
		}
	}
	buf := make([]byte, 64*Segment)
	end := first
	for {
		n, err := from.Read(buf)
		for rest := buf[:n]; len(rest) > 0; {
			size := min(len(rest), Segment)
			at := f.ready(max(p.now(), first))
			if !p.sleep(at) {
				return
			}
			p.bytes.Add(int64(size))
			end = f.send(at, n == len(buf) || len(rest) > 3*Segment)
			if !put(parcel{end, append([]byte(nil), rest[:size]...)}) {
				return
			}
			rest = rest[size:]
		}
		if errors.Is(err, io.EOF) { // the other direction may go on
			put(parcel{max(end, p.now()+p.line.Delay), nil})
			return
		}
		if err != nil {
			_ = reset(to)
			return
		}
	}
}

// unpack writes parcels when their time has come; an empty one is the end.
func (p *Proxy) unpack(under <-chan parcel, to net.Conn) error {
	for parcel := range under {
		if !p.sleep(parcel.at) {
			return p.ctx.Err()
		}
		if parcel.bytes == nil {
			if t, ok := to.(*net.TCPConn); ok {
				return t.CloseWrite()
			}
			return nil
		}
		if _, err := to.Write(parcel.bytes); err != nil {
			return err
		}
	}
	return nil
}

func (p *Proxy) now() time.Duration { return time.Since(p.began) }

// sleep waits until a time of now's, and is false when the proxy has been closed.
func (p *Proxy) sleep(until time.Duration) bool {
	wait := until - p.now()
	if wait <= 0 {
		return p.ctx.Err() == nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}
