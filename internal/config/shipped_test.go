package config

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func shipped(name string) string { return filepath.Join("..", "..", "configs", name) }

func TestShippedConfigsWorkTogetherOnOneMachine(t *testing.T) {
	local, err := Load(shipped("local.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := Load(shipped("cloud.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "local", local, Config{
		Node:      Node{Name: "local", Origin: 0, Data: "data/local"},
		HTTP:      HTTP{Listen: "127.0.0.1:8470"},
		Peer:      Peer{Name: "cloud", URL: "http://127.0.0.1:8471", TokenFile: "data/local.token"},
		Scheduler: Scheduler{Mode: Active},
	})
	equal(t, "cloud", cloud, Config{
		Node:      Node{Name: "cloud", Origin: 1, Data: "data/cloud"},
		HTTP:      HTTP{Listen: "127.0.0.1:8471"},
		Peer:      Peer{Name: "local", TokenFile: "data/cloud.token"},
		Scheduler: Scheduler{Mode: Standby},
	})
	equal(t, "the url leads to the cloud", local.Peer.URL, "http://"+cloud.HTTP.Listen)
}

var commentedKey = regexp.MustCompile(`(?m)^( *)#([a-z_]+:)`)

func TestShippedConfigsMentionEveryKeyWithItsDefault(t *testing.T) {
	for _, name := range []string{"local.yaml", "cloud.yaml"} {
		text, err := os.ReadFile(shipped(name))
		if err != nil {
			t.Fatal(err)
		}
		asShipped, all := newDraft(name), newDraft(name)
		asShipped.readText(text)
		all.readText(commentedKey.ReplaceAll(text, []byte("$1$2")))
		if len(all.faults) > 0 {
			t.Errorf("%s with every key uncommented: %v", name, all.faults)
		}
		for _, l := range all.leaves {
			if _, ok := all.where[l.path]; !ok {
				t.Errorf("%s does not mention %s", name, l.path)
				continue
			}
			was, _ := asShipped.leaf(l.path)
			equal(t, name+" uncommented "+l.path, reflectText(l.value), reflectText(was.value))
		}
	}
}
