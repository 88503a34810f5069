package link

import (
	"io"
	"net/http"
	"time"
)

// How slowly a body may come. A line of a few KB a second brings a full page; one that
// stalls, or drips, holds no connection.
const (
	stall   = 30 * time.Second // without a byte, and before the pace counts
	slowest = 5 << 10          // bytes a second, on the whole
)

// paced reads the body of a request, for as long as it comes at a bearable pace. It
// moves the read deadline of the connection, which the server takes away once the body
// is here. When one is given up it stays: the server reads what is left.
type paced struct {
	body  io.Reader
	until func(time.Time) error
	began time.Time
	got   int64
}

func atPace(w http.ResponseWriter, body io.Reader) *paced {
	return &paced{body: body, until: http.NewResponseController(w).SetReadDeadline, began: time.Now()}
}

func (p *paced) Read(b []byte) (int, error) {
	late := p.began.Add(stall + time.Duration(p.got)*time.Second/slowest)
	if next := time.Now().Add(stall); next.Before(late) {
		late = next
	}
	_ = p.until(late) // a recorder has no deadline
	n, err := p.body.Read(b)
	p.got += int64(n)
	return n, err
}
