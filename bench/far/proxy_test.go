package far

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// echo is a server that sends back what it gets, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func proxied(t *testing.T, line Line) (*Proxy, net.Conn) {
	t.Helper()
	p, err := Listen(line, echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return p, c
}

func TestWhatGoesInComesOutWholeAndCounted(t *testing.T) {
	p, c := proxied(t, Line{Delay: time.Millisecond, Loss: 0.05, Seed: 1})
	sent := bytes.Repeat([]byte("not one byte more or less; "), 3000)
	go func() {
		_, _ = c.Write(sent)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes of %d came back: %v", len(got), len(sent), err)
	}
	if p.Bytes() != int64(2*len(sent)) {
		t.Errorf("counted %d bytes, want %d", p.Bytes(), 2*len(sent))
	}
}

func TestTheFirstAnswerTakesTwoRoundTripsAndTheNextOne(t *testing.T) {
	_, c := proxied(t, Line{Delay: 10 * time.Millisecond})
	for i, least := range []time.Duration{40 * time.Millisecond, 20 * time.Millisecond} {
		start := time.Now()
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < least-time.Millisecond {
			t.Errorf("answer %d came after %v, want at least %v", i+1, took, least)
		}
	}
}

func TestACutEndsConnectionsAndTakesNoneUntilItIsOver(t *testing.T) {
	p, c := proxied(t, Line{Delay: time.Millisecond})
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	p.Cut(time.Hour)
	if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
		t.Error("a byte came over a line that is cut")
	}
	if passes(t, p) {
		t.Error("a new connection was taken while the line was cut")
	}
	p.Cut(0)
	if !passes(t, p) {
		t.Error("the line did not come back")
	}
}

func passes(t *testing.T, p *Proxy) bool {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return false
	}
	defer c.Close()
	if _, err := c.Write([]byte{1}); err != nil {
		return false
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return err == nil
}
