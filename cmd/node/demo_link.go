package main

import (
	"io"
	"net"
	"sync"
)

// demoLink is the line between the nodes. It can be cut: what is under way ends,
// and whoever calls is hung up on.
type demoLink struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

func newDemoLink(port string) (*demoLink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &demoLink{listener: l, to: "127.0.0.1:" + port, open: map[net.Conn]bool{}}
	go d.accept()
	return d, nil
}

func (d *demoLink) addr() string { return d.listener.Addr().String() }

func (d *demoLink) close() error { return d.listener.Close() }

func (d *demoLink) accept() {
	for {
		c, err := d.listener.Accept()
		if err != nil {
			return // closed
		}
		go d.carry(c)
	}
}

func (d *demoLink) carry(near net.Conn) {
	defer near.Close()
	if !d.add(near) {
		return
	}
	defer d.remove(near)
	far, err := net.Dial("tcp", d.to)
	if err != nil {
		return
	}
	defer far.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}

func (d *demoLink) add(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isCut {
		d.open[c] = true
	}
	return !d.isCut
}

func (d *demoLink) remove(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, c)
}

func (d *demoLink) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isCut = true
	for c := range d.open {
		_ = c.Close()
	}
}

func (d *demoLink) mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isCut = false
}
