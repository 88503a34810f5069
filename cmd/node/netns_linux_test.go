package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNothingIsLostInAStormOnTheNetwork has each node in a network namespace of its
// own, as on machines of their own: what is lost here is packets, not connections.
func TestNothingIsLostInAStormOnTheNetwork(t *testing.T) { // S:45
	t.Parallel()
	n := newNetwork(t)
	w := newPair(t)
	n.moveIn(w)
	w.cloud.start()
	w.home.start()
	c := &chaos{storm: newStorm(w), did: map[string]int{}}
	c.r = c.random(0)
	c.keep(10)
	inTime(t, time.Minute, w.settle)
	n.rain()
	c.rage(2, func(ctx context.Context) { n.trouble(ctx, c) })
	t.Logf("what happened: %v; of %d packets %d were lost", c.did, n.ether.sent.Load(), n.ether.lost.Load())
	c.calm(90 * time.Second)
}

// trouble makes one trouble after another, and ends with none but the loss and delay
// that there always is.
func (n *network) trouble(ctx context.Context, c *chaos) {
	for over := time.Now().Add(*stormFor); time.Now().Before(over); {
		if len(c.crashes) == 0 {
			c.crashes = c.r.Perm(len(todoCrashes))
		}
		switch c.r.IntN(4) {
		case 0, 1:
			c.did["parted"]++
			n.ether.parted.Store(true)
			time.Sleep(100 * time.Millisecond) // what is under way arrives or is lost
			c.collide(ctx)
			time.Sleep(c.between(time.Second, 3*time.Second))
			n.ether.parted.Store(false)
		case 2:
			c.kill()
		default:
			c.crash()
		}
		time.Sleep(c.between(0, time.Second))
	}
}

// network is two namespaces and what is between them.
type network struct {
	*testing.T
	names [2]string
	ether *ether
}

// The addresses of home and the cloud, each in its own namespace.
var addresses = [2]string{"10.77.0.1", "10.77.0.2"}

const netnsFolder = "/run/netns"

func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the program ip is missing: install iproute2")
	}
	n := &network{T: t, ether: &ether{}}
	n.sweep()
	for i, side := range []string{"home", "cloud"} {
		n.names[i] = fmt.Sprintf("tandem-test-%d-%s", os.Getpid(), side)
		if said, err := exec.Command("ip", "netns", "add", n.names[i]).CombinedOutput(); err != nil {
			t.Skipf("this machine makes no network namespaces: %v %s", err, said)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", n.names[i]).Run() })
		device := fmt.Sprintf("tdm%d%s", os.Getpid()%1e7, side[:1])
		tun, err := openTUN(device)
		if err != nil {
			t.Skipf("this machine makes no TUN devices: %v", err)
		}
		n.ether.ends[i] = tun
		t.Cleanup(func() { _ = tun.Close() })
		n.ip("link", "set", device, "netns", n.names[i])
		n.ip("-n", n.names[i], "link", "set", "lo", "up")
		n.ip("-n", n.names[i], "address", "add", addresses[i], "peer", addresses[1-i], "dev", device)
		n.ip("-n", n.names[i], "link", "set", device, "up")
	}
	n.ether.carry()
	return n
}

// sweep removes the namespaces of tests that were killed.
func (n *network) sweep() {
	left, _ := filepath.Glob(netnsFolder + "/tandem-test-*")
	for _, path := range left {
		var pid int
		name := filepath.Base(path)
		if _, err := fmt.Sscanf(name, "tandem-test-%d-", &pid); err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = exec.Command("ip", "netns", "delete", name).Run()
		}
	}
}

func (n *network) ip(args ...string) {
	n.Helper()
	if said, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.Fatalf("ip %s: %v %s", strings.Join(args, " "), err, said)
	}
}

// moveIn has a pair's nodes run in the namespaces. Whoever comes to their old
// addresses is let in there.
func (n *network) moveIn(w *pair) {
	n.Helper()
	for i, p := range []*process{w.home, w.cloud} {
		old := strings.TrimPrefix(p.url, "http://")
		_, port, err := net.SplitHostPort(old)
		must(n, err)
		p.through = []string{"ip", "netns", "exec", n.names[i]}
		p.env = append(p.env, "TANDEM_HTTP_LISTEN="+net.JoinHostPort(addresses[i], port), "TANDEM_PEER_ALLOW_PLAIN_ON=10.77.0.0/30")
		door, err := net.Listen("tcp", old)
		must(n, err)
		n.Cleanup(func() { _ = door.Close() })
		go n.letIn(door, n.names[i], net.JoinHostPort(addresses[i], port))
	}
	w.home.env = append(w.home.env, "TANDEM_PEER_URL=http://"+addresses[1]+":8471")
}

// letIn brings those who come to a door of this namespace to an address in another.
func (n *network) letIn(door net.Listener, namespace, address string) {
	for {
		c, err := door.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			defer c.Close()
			far, err := dialIn(namespace, address)
			if err != nil {
				return
			}
			defer far.Close()
			over := make(chan struct{}, 2)
			for _, way := range [][2]net.Conn{{c, far}, {far, c}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					over <- struct{}{}
				}()
			}
			<-over
		}()
	}
}

// dialIn dials from within a namespace: a socket stays where it was made.
func dialIn(namespace, address string) (c net.Conn, err error) {
	runtime.LockOSThread() // not left locked: a thread that ends takes the processes it started along
	defer runtime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer home.Close()
	there, err := os.Open(filepath.Join(netnsFolder, namespace))
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	defer func() {
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			panic(err) // whatever runs on this thread next would be in the wrong place
		}
	}()
	return net.DialTimeout("tcp", address, 2*time.Second)
}

// rain has the kernel lose packets too, where it can be told to.
func (n *network) rain() {
	n.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		n.Log("the program nft is missing (package nftables): the kernel itself loses no packets in this run")
		return
	}
	rules := `add table ip rain
add chain ip rain in { type filter hook input priority 0; }
add rule ip rain in ip saddr ` + addresses[1] + ` numgen random mod 100 < 5 drop
`
	c := exec.Command("ip", "netns", "exec", n.names[0], "nft", "-f", "-")
	c.Stdin = strings.NewReader(rules)
	if said, err := c.CombinedOutput(); err != nil {
		n.Logf("this kernel takes no nftables rule, so it loses no packets itself: %v %s", err, said)
	}
}

// ether carries packets between two TUN devices: 5 of 100 are lost, the others are
// under way for 20 to 60 ms, and overtake each other.
type ether struct {
	ends       [2]*os.File
	parted     atomic.Bool // nothing passes
	sent, lost atomic.Int64
}

func (e *ether) carry() {
	for i := range e.ends {
		go e.pass(e.ends[i], e.ends[1-i])
	}
}

func (e *ether) pass(from, to *os.File) {
	for {
		packet := make([]byte, 1<<11) // above the MTU
		n, err := from.Read(packet)
		if errors.Is(err, fs.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // the device is not up yet
			continue
		}
		e.sent.Add(1)
		if e.parted.Load() || rand.IntN(100) < 5 {
			e.lost.Add(1)
			continue
		}
		time.AfterFunc(20*time.Millisecond+rand.N(40*time.Millisecond), func() {
			if !e.parted.Load() {
				_, _ = to.Write(packet[:n])
			}
		})
	}
}

// openTUN makes a device that hands each packet sent to it to this process. It is
// gone when that is.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}
