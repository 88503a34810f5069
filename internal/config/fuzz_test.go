package config

import (
	"errors"
	"os"
	"testing"
)

// FuzzLoad holds that nothing in a file or a variable panics, and that what is
// taken keeps the promises others rely on.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"local.yaml", "cloud.yaml"} {
		text, err := os.ReadFile(shipped(name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "TANDEM_HTTP_LISTEN=[::1]:80")
	}
	f.Add([]byte("a: &a [*a, *a]\n<<: *a\n"), "TANDEM_NODE_ORIGIN=9")
	f.Add([]byte("? {a: b}\n: !!set {x}\n--- >-\n  x\n"), "TANDEM_PEER_URL=http://[::")
	f.Add([]byte(alone), "TANDEM_HTTP_TRUSTED_PROXIES=10.0.0.0/33,,fe80::1%x")
	f.Fuzz(func(t *testing.T, text []byte, entry string) {
		d := newDraft("fuzz.yaml")
		c, err := d.finish(d.readText(text), []string{entry})
		if err != nil {
			if faults, ok := errors.AsType[*Faults](err); !ok || len(faults.List) == 0 {
				t.Fatalf("not a list of faults: %v", err)
			}
			return
		}
		if !nodeName.MatchString(c.Node.Name) || c.Node.Origin>>1 != 0 || c.Node.Data == "" || c.HTTP.Listen == "" {
			t.Fatalf("taken: %+v", c)
		}
		if c.Peer.On() && (c.Peer.Token == "") == (c.Peer.TokenFile == "") || c.Peer.On() && (c.Peer.URL != "") != (c.Node.Origin == 0) {
			t.Fatalf("taken: %+v", c)
		}
	})
}
