package config

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tandem/internal/fault"
)

func TestNodeAloneNeedsNothingElse(t *testing.T) {
	want := Config{
		Node:      Node{Name: "home", Data: "d"},
		HTTP:      HTTP{Listen: "127.0.0.1:8470"},
		Scheduler: Scheduler{Mode: Active},
	}
	got := mustLoad(t, alone)
	equal(t, "config", got, want)
	if got.Peer.On() || got.Push.FCM.On() || got.Push.Telegram.On() || got.HTTP.TLS.On() {
		t.Error("something is on that nobody asked for")
	}
	equal(t, "port of origin 1", mustLoad(t, cloud).HTTP.Listen, "127.0.0.1:8471")
}

func TestEverythingCanBeSetInTheFile(t *testing.T) {
	pem := write(t, "file.pem", "x", 0o600)
	got := mustLoad(t, `
node: {name: home, origin: 0, data: d, tz: Europe/Berlin}
http:
  listen: 0.0.0.0:443
  public_url: https://home.example.org/tandem/
  tls: {cert: `+pem+`, key: `+pem+`}
  trusted_proxies: [10.0.0.7, 192.168.3.4/16, "::1"]
peer: {name: cloud, url: "https://cloud.example.org/", token: `+strong+`, allow_plain_on: [100.64.0.0/10]}
scheduler: {mode: "off"}
push:
  fcm: {credentials_file: `+pem+`, project_id: p-1, endpoint: "http://127.0.0.1:9/"}
  telegram: {token: "1:a", endpoint: http://localhost:9, chat_id: -100123}
`)
	equal(t, "config", got, Config{
		Node: Node{Name: "home", Data: "d", TZ: "Europe/Berlin"},
		HTTP: HTTP{
			Listen: "0.0.0.0:443", PublicURL: "https://home.example.org/tandem", TLS: TLS{Cert: pem, Key: pem},
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.7/32"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("::1/128")},
		},
		Peer: Peer{
			Name: "cloud", URL: "https://cloud.example.org", Token: strong,
			AllowPlainOn: []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10")},
		},
		Scheduler: Scheduler{Mode: Off},
		Push: Push{
			FCM:      FCM{CredentialsFile: pem, ProjectID: "p-1", Endpoint: "http://127.0.0.1:9"},
			Telegram: Telegram{Token: "1:a", Endpoint: "http://localhost:9", ChatID: -100123},
		},
	})
}

func TestAllFaultsAreReportedAtOnceEachWithItsPlace(t *testing.T) {
	_, err := load(t, `node:
  name: Home!
  origin: "0"
http:
  listen: 0.0.0.0:80
  listen: 127.0.0.1:80
  colour: red
peer: {name: cloud}
scheduler: [active]
push:
  telegram: {chat_id: x}
`, "TANDEM_NODE_TZ=Mars/Base", "TANDEM_PUSH_FCM_ENDPOINT=ftp://x", "TANDEM_SPEED=9", "HOME=/root")
	equal(t, "faults", faultsOf(t, err), []string{
		"c.yaml:3 node.origin",
		"c.yaml:6 http.listen",
		"c.yaml:7 http.colour",
		"c.yaml:9 scheduler",
		"c.yaml:11 push.telegram.chat_id",
		"TANDEM_SPEED",
		"c.yaml:2 node.name",
		"c.yaml node.data",
		"TANDEM_NODE_TZ node.tz",
		"c.yaml peer.token_file",
		"TANDEM_PUSH_FCM_ENDPOINT push.fcm.endpoint",
		"c.yaml push.fcm.project_id",
	})
	contains(t, err.Error(), "12 faults:\n", "\n  ", "c.yaml:6: http.listen is already set in line 5; keep one",
		"here may stand: listen, public_url, tls, trusted_proxies", "data: data/local", "TANDEM_NODE_DATA", "take off the quotes")
}

func TestFaultsCarryTheCode(t *testing.T) {
	_, err := load(t, "")
	equal(t, "code", fault.From(err).Code, "bad_config")
	equal(t, "kind", fault.From(err).Kind, fault.Invalid)
	if !errors.Is(err, fault.New(fault.Invalid, "bad_config", "")) {
		t.Error("the code is not found by errors.Is")
	}
}

func TestEmptyFileIsAllDefaultsButTheNode(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "{}\n", "null\n", "node:\n", "\xef\xbb\xbf# with a byte order mark\n"} {
		_, err := load(t, text)
		equal(t, text, faultsOf(t, err), []string{"c.yaml node.name", "c.yaml node.origin", "c.yaml node.data"})
	}
}

func TestFileIsStrict(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		fault string
		says  string
	}{
		"NUL":               {alone + "#\x00\n", "c.yaml:2", "UTF-8"},
		"not UTF-8":         {"node:\n  name: caf\xe9\n", "c.yaml:2", "UTF-8"},
		"UTF-16":            {"\xff\xfen\x00o\x00", "c.yaml:1", "UTF-8"},
		"two documents":     {alone + "---\n" + alone, "c.yaml:2", "second document"},
		"an empty second":   {alone + "---\n", "c.yaml:2", "second document"},
		"a broken second":   {alone + "---\n}\n", "c.yaml:2", "not valid YAML"},
		"syntax":            {alone + "http: [\n", "c.yaml:2", "not valid YAML"},
		"tab":               {"node:\n\tname: x\n", "c.yaml:2", "not valid YAML"},
		"a list at the top": {"- a\n", "c.yaml:1", "wants keys below it: node, http, peer, scheduler, push"},
		"unknown section":   {alone + "assistant: {}\n", "c.yaml:2 assistant", "here may stand: node, http"},
		"key of a later plan": {
			alone + "push: {content: full}\n", "c.yaml:2 push.content", "here may stand: fcm, telegram",
		},
		"other case":         {alone + "HTTP: {}\n", "c.yaml:2 HTTP", "no key"},
		"merge key":          {alone + "http: {<<: {listen: x}}\n", "c.yaml:2 http.", "no key"},
		"key that is a list": {alone + "? [a]\n: b\n", "c.yaml:2", "no key"},
		"duplicate section":  {alone + "http: {}\nhttp: {}\n", "c.yaml:3 http", "already set in line 2"},
		"alias":              {"node: {name: &a home, origin: 0, data: *a}\n", "c.yaml:1 node.data", "alias"},
		"tag":                {"node: {name: home, origin: 0, data: !!binary aGk=}\n", "c.yaml:1 node.data", "tag"},
		"list for a text":    {"node: {name: home, origin: 0, data: [a]}\n", "c.yaml:1 node.data", "single value"},
		"text for a section": {alone + "http: yes\n", "c.yaml:2 http", "wants keys below it: listen"},
		"text for a list":    {alone + "http: {trusted_proxies: 10.0.0.1}\n", "c.yaml:2 http.trusted_proxies", "wants a list"},
		"null in a list":     {alone + "http: {trusted_proxies: [~]}\n", "c.yaml:2 http.trusted_proxies", "neither a network nor an address"},
		"fraction":           {"node: {name: home, origin: 0.0, data: d}\n", "c.yaml:1 node.origin", "whole number"},
		"hexadecimal":        {"node: {name: home, origin: 0x0, data: d}\n", "c.yaml:1 node.origin", "whole number"},
		"too large a number": {alone + "push: {telegram: {token: a, chat_id: 9223372036854775808}}\n", "c.yaml:2 push.telegram.chat_id", "whole number"},
		"control character":  {`node: {name: home, origin: 0, data: "a\0b"}`, "c.yaml:1 node.data", "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.text)
			equal(t, "faults", faultsOf(t, err), []string{c.fault})
			contains(t, err.Error(), c.says)
		})
	}
}

func TestTextsThatLookLikeNumbersAreTakenLetterByLetter(t *testing.T) {
	c := mustLoad(t, "node: {name: 007, origin: 0, data: 2026-03-08}\npeer: {name: yes, url: 'https://c', token: "+strings.Repeat("1", 43)+"}\n")
	equal(t, "name", c.Node.Name, "007")
	equal(t, "data", c.Node.Data, "2026-03-08")
	equal(t, "peer", c.Peer.Name, "yes")
	equal(t, "token", string(c.Peer.Token), strings.Repeat("1", 43))
}

func TestFileThatCannotBeReadSaysWhatToName(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "none.yaml"), []string{"TANDEM_SPEED=9"})
	equal(t, "faults", faultsOf(t, err), []string{"none.yaml", "TANDEM_SPEED"})
	contains(t, err.Error(), "no such file", "--config")

	_, err = Load(dir, nil)
	contains(t, err.Error(), "is a directory", "cannot be read")

	_, err = load(t, strings.Repeat("#", maxFile+1))
	contains(t, err.Error(), "larger than 1 MiB")
}

func TestFileClosedToThisUserIsAFault(t *testing.T) {
	path := filepath.Join(openFolder(t), "c.yaml")
	if err := os.WriteFile(path, []byte(alone), 0o000); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		_, err := Load(path, nil)
		equal(t, "faults", faultsOf(t, err), []string{"c.yaml"})
		contains(t, err.Error(), "permission denied")
	})
}

func TestEnvironmentAloneIsEnough(t *testing.T) {
	c, err := Load("", []string{"TANDEM_NODE_NAME=home", "TANDEM_NODE_ORIGIN=1", "TANDEM_NODE_DATA=d"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "node", c.Node, Node{Name: "home", Origin: 1, Data: "d"})

	_, err = Load("", nil)
	equal(t, "faults", faultsOf(t, err), []string{"environment node.name", "environment node.origin", "environment node.data"})
}

func TestEveryKeyHasAVariableThatWinsOverTheFile(t *testing.T) {
	values := map[reflect.Type][2]string{
		reflect.TypeFor[string]():         {"abc", "abc"},
		reflect.TypeFor[Secret]():         {strong, "[secret]"},
		reflect.TypeFor[Mode]():           {"off", "off"},
		reflect.TypeFor[int]():            {"7", "7"},
		reflect.TypeFor[int64]():          {"-7", "-7"},
		reflect.TypeFor[[]netip.Prefix](): {" 10.0.0.0/8 ,::1", "[10.0.0.0/8 ::1/128]"},
	}
	for _, l := range newDraft("").leaves {
		value, known := values[l.value.Type()]
		if !known {
			t.Fatalf("%s has a type this test does not know", l.path)
		}
		d := newDraft("")
		d.readEnv([]string{variable(l.path) + "=" + value[0]})
		equal(t, l.path+" faults", d.faults, nil)
		got, _ := d.leaf(l.path)
		equal(t, l.path, reflectText(got.value), value[1])
	}
	c := mustLoad(t, alone+"http: {trusted_proxies: [10.0.0.1]}\n", "TANDEM_NODE_NAME=one", "TANDEM_NODE_NAME=two", "TANDEM_HTTP_TRUSTED_PROXIES=")
	equal(t, "the last of two", c.Node.Name, "two")
	equal(t, "emptied list", len(c.HTTP.TrustedProxies), 0)
}

func TestVariableMendsWhatTheFileLacksButNotWhatIsWrongInIt(t *testing.T) {
	_, err := load(t, "node: {name: home, origin: '0', data: d}\n", "TANDEM_NODE_ORIGIN=2")
	equal(t, "faults", faultsOf(t, err), []string{"c.yaml:1 node.origin", "TANDEM_NODE_ORIGIN node.origin"})
	equal(t, "name", mustLoad(t, "node: {origin: 0, data: d}\n", "TANDEM_NODE_NAME=x").Node.Name, "x")
}

func TestUnknownVariableNamesThoseThereAre(t *testing.T) {
	_, err := load(t, alone, "TANDEM_HTTP_PORT=80", "TANDEM_=1", "TANDEM_NODE_TOKEN_FILE=x", "tandem_x=1", "TANDEMX=1", "=C:=x", "TANDEM_HTTP")
	equal(t, "faults", faultsOf(t, err), []string{"TANDEM_", "TANDEM_HTTP_PORT", "TANDEM_NODE_TOKEN_FILE"})
	contains(t, err.Error(), "TANDEM_HTTP_PORT: names no key; there are: TANDEM_HTTP_LISTEN, TANDEM_HTTP_PUBLIC_URL")
}

func TestSecretMayBeNamedByItsFile(t *testing.T) {
	const name = "TANDEM_PUSH_TELEGRAM_TOKEN"
	secret := func(text string, mode os.FileMode) string { return name + "_FILE=" + write(t, "s", text, mode) }
	equal(t, "one line end is taken off", string(mustLoad(t, alone, secret("1:a\n", 0o640)).Push.Telegram.Token), "1:a")
	equal(t, "none to take off", string(mustLoad(t, alone, secret("1:a", 0o400)).Push.Telegram.Token), "1:a")
	equal(t, "empty is as good as unset", mustLoad(t, alone, name+"_FILE=", name+"=1:b").Push.Telegram.Token, "1:b")

	for what, c := range map[string]struct {
		env  []string
		says string
	}{
		"two line ends":  {[]string{secret("1:a\n\n", 0o600)}, "control character"},
		"empty":          {[]string{secret("\n", 0o600)}, "is empty"},
		"world-readable": {[]string{secret("1:a", 0o604)}, "chmod 600 "},
		"too long":       {[]string{secret(strings.Repeat("a", maxSecret+1), 0o600)}, "too long"},
		"missing":        {[]string{name + "_FILE=" + filepath.Join(t.TempDir(), "none")}, "does not exist"},
		"folder":         {[]string{name + "_FILE=" + t.TempDir()}, "folder"},
		"both":           {[]string{secret("1:a", 0o600), name + "=1:a"}, "keep one of the two"},
	} {
		_, err := load(t, alone, c.env...)
		if got := faultsOf(t, err); len(got) != 1 || !strings.HasPrefix(got[0], name) || !strings.HasSuffix(got[0], " push.telegram.token") {
			t.Errorf("%s: %v", what, got)
			continue
		}
		contains(t, err.Error(), c.says)
	}
}

func TestVariableForThePeersTokenFileIsTheKey(t *testing.T) {
	c := mustLoad(t, alone, "TANDEM_PEER_NAME=cloud", "TANDEM_PEER_URL=https://c", "TANDEM_PEER_TOKEN_FILE=not/there/yet")
	equal(t, "token_file", c.Peer.TokenFile, "not/there/yet")
	equal(t, "token", c.Peer.Token, "")
}

func TestAPeerSecretInTheEnvironmentWinsOverTheFileOfOne(t *testing.T) {
	for _, shipped := range []string{"local", "cloud"} {
		c, err := Load("../../configs/"+shipped+".yaml", []string{"TANDEM_PEER_TOKEN=" + strong})
		if err != nil {
			t.Fatal(err)
		}
		if string(c.Peer.Token) != strong || c.Peer.TokenFile != "" {
			t.Errorf("%s: %q and %q", shipped, string(c.Peer.Token), c.Peer.TokenFile)
		}
		_, err = Load("../../configs/"+shipped+".yaml", []string{"TANDEM_PEER_TOKEN=" + strong, "TANDEM_PEER_TOKEN_FILE=f"})
		if err == nil {
			t.Error("two in the environment are one too many")
		}
	}
}
