package sync

import (
	gosync "sync"

	"tandem/internal/sqlite"
)

// nextPage makes the token of a page durable before anybody asks for the page: by the
// commit that appends what will be in it. A reader that waits at the end of the log
// has its page one commit earlier so. A token that is never given out is known to
// nobody, and harms nobody.
type nextPage struct {
	mu     gosync.Mutex
	reader *reader // who waits; nil: nobody does
	made   *issued // what the next page may take; nil: nothing
	read   int64   // how far a reader has surely read in this life; 0: not known yet
}

// reader has read all there is.
type reader struct {
	cursor string
	seq    int64 // what it stands for
}

// issued is a cursor that is in the file and that nobody has been given.
type issued struct {
	cursor string
	end    int64  // the place it stands for
	to     string // the cursor of the reader that it is for
}

// waits keeps that a reader has read all there is. One that comes to the end of the log
// a second time with the same cursor has what lies before it: it asks ahead with a cursor
// once only, and from what it has stored after that.
func (p *nextPage) waits(r reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader != nil && *p.reader == r {
		p.read = r.seq
	}
	p.reader = &r
}

// surelyRead is up to where the reader has stored the log, as far as its waiting tells.
func (p *nextPage) surelyRead() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read
}

// forget is for a life that begins, and for another reader: what was read says nothing
// of either.
func (p *nextPage) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reader, p.made, p.read = nil, nil, 0
}

func (p *nextPage) waiting() *reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reader
}

func (p *nextPage) keep(i issued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reader, p.made = nil, &i
}

// take returns the cursor of a page for the reader who came with a cursor, where it
// has been made. It is given out once.
func (p *nextPage) take(came string, end int64) (cursor string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.made
	if i == nil {
		return "", false
	}
	p.made = nil
	return i.cursor, i.to == came && i.end == end
}

// issueAhead makes the token of the page that ends where this transaction ends, if a
// reader waits for one. A life that begins meanwhile does no harm: the reader's cursor
// is void then, and what was made for it is not asked for.
func (l *Log) issueAhead(tx *sqlite.Tx) error {
	r := l.next.waiting()
	if r == nil {
		return nil
	}
	end := l.last.seq
	cursor, err := l.issueTx(tx, end, r.cursor, r.seq)
	if err == nil {
		tx.AfterCommit(func() { l.next.keep(issued{cursor, end, r.cursor}) })
	}
	return err
}
