package config

import (
	"testing"
)

// peered is a node of origin 0 with a peer in good order, but for its url.
const peered = alone + "peer: {name: cloud, token: " + strong + ", "

func TestRules(t *testing.T) {
	pem := write(t, "file.pem", "x", 0o600)
	for name, c := range map[string]struct {
		text  string
		fault string // "" if all is well
		says  string
	}{
		"name of 32":             {"node: {name: abcdefghijklmnopqrstuvwxyz-01234, origin: 0, data: d}", "", ""},
		"name of 33":             {"node: {name: abcdefghijklmnopqrstuvwxyz-012345, origin: 0, data: d}", "c.yaml:1 node.name", "1 to 32"},
		"name in capitals":       {"node: {name: Home, origin: 0, data: d}", "c.yaml:1 node.name", "a-z, 0-9"},
		"empty name":             {"node: {name: '', origin: 0, data: d}", "c.yaml:1 node.name", "is missing"},
		"origin 2":               {"node: {name: home, origin: 2, data: d}", "c.yaml:1 node.origin", "0 at home"},
		"origin -1":              {"node: {name: home, origin: -1, data: d}", "c.yaml:1 node.origin", "0 at home"},
		"home folder":            {"node: {name: home, origin: 0, data: ~/d}", "c.yaml:1 node.data", "in full"},
		"zone of the machine":    {"node: {name: home, origin: 0, data: d, tz: Local}", "c.yaml:1 node.tz", "IANA"},
		"zone as a path":         {"node: {name: home, origin: 0, data: d, tz: ../../etc/passwd}", "c.yaml:1 node.tz", "IANA"},
		"UTC":                    {"node: {name: home, origin: 0, data: d, tz: UTC}", "", ""},
		"mode":                   {alone + "scheduler: {mode: on}", "c.yaml:2 scheduler.mode", "active, standby, off"},
		"empty mode":             {alone + "scheduler: {mode: ''}", "c.yaml:2 scheduler.mode", "active"},
		"standby":                {alone + "scheduler: {mode: standby}", "", ""},
		"public url":             {alone + "http: {public_url: http://home.lan}", "", ""},
		"public url, no scheme":  {alone + "http: {public_url: home.lan}", "c.yaml:2 http.public_url", "https://"},
		"certificate alone":      {alone + "http: {tls: {cert: " + pem + "}}", "c.yaml http.tls.key", "goes with http.tls.cert"},
		"key alone":              {alone + "http: {tls: {key: " + pem + "}}", "c.yaml http.tls.cert", "goes with http.tls.key"},
		"certificate not there":  {alone + "http: {tls: {cert: " + pem + "x, key: " + pem + "}}", "c.yaml:2 http.tls.cert", "no such file"},
		"certificate in folder":  {alone + "http: {tls: {cert: /, key: " + pem + "}}", "c.yaml:2 http.tls.cert", "folder"},
		"proxy by name":          {alone + "http: {trusted_proxies: [proxy.lan]}", "c.yaml:2 http.trusted_proxies", "10.0.0.7"},
		"peer without a name":    {alone + "peer: {url: 'https://c', token_file: f}", "c.yaml peer.name", "is missing"},
		"peer of a bad name":     {alone + "peer: {name: C, url: 'https://c', token_file: f}", "c.yaml:2 peer.name", "1 to 32"},
		"peer of my name":        {alone + "peer: {name: home, url: 'https://c', token_file: f}", "c.yaml:2 peer.name", "equals node.name"},
		"peer without a secret":  {alone + "peer: {name: cloud, url: 'https://c'}", "c.yaml peer.token_file", "data/peer.token"},
		"two secrets":            {alone + "peer: {name: cloud, url: 'https://c', token_file: f, token: " + strong + "}", "c.yaml:2 peer.token", "empty one"},
		"secret of 43":           {peered + "url: 'https://c'}", "", ""},
		"secret of 42":           {alone + "peer: {name: cloud, url: 'https://c', token: " + strong[1:] + "}", "c.yaml:2 peer.token", "43 characters"},
		"secret with a space":    {alone + "peer: {name: cloud, url: 'https://c', token: '" + strong + " x'}", "c.yaml:2 peer.token", "openssl rand"},
		"secret file at home":    {alone + "peer: {name: cloud, url: 'https://c', token_file: ~/f}", "c.yaml:2 peer.token_file", "in full"},
		"peer without a url":     {peered + "}", "c.yaml peer.url", "is missing"},
		"origin 1 without a url": {cloud + "peer: {name: home, token_file: f}", "", ""},
		"origin 1 with a url":    {cloud + "peer: {name: home, token_file: f, url: 'https://c'}", "c.yaml:2 peer.url", "take it out"},
		"plain everywhere":       {alone + "peer: {allow_plain_on: [0.0.0.0/0]}", "c.yaml:2 peer.allow_plain_on", "every address"},
		"plain everywhere, v6":   {alone + "peer: {allow_plain_on: ['::/0']}", "c.yaml:2 peer.allow_plain_on", "every address"},
		"no push":                {alone + "push: {fcm: {}, telegram: {}}", "", ""},
		"fcm":                    {alone + "push: {fcm: {credentials_file: " + pem + "}}", "", ""},
		"fcm, file not there":    {alone + "push: {fcm: {credentials_file: nowhere.json}}", "c.yaml:2 push.fcm.credentials_file", "no such file"},
		"fcm, stand-in":          {alone + "push: {fcm: {endpoint: 'http://[::1]:9', project_id: p}}", "", ""},
		"fcm, endpoint alone":    {alone + "push: {fcm: {endpoint: 'http://127.0.0.1:9'}}", "c.yaml push.fcm.project_id", "stand-in"},
		"fcm, project alone":     {alone + "push: {fcm: {project_id: p}}", "c.yaml push.fcm.credentials_file", "service account"},
		"fcm, project of a path": {alone + "push: {fcm: {credentials_file: " + pem + ", project_id: a/b}}", "c.yaml:2 push.fcm.project_id", "console"},
		"fcm in plain text":      {alone + "push: {fcm: {endpoint: 'http://10.0.0.1', project_id: p}}", "c.yaml:2 push.fcm.endpoint", "plain text"},
		"telegram":               {alone + "push: {telegram: {token: '12:A_b-c', chat_id: 5}}", "", ""},
		"telegram, no token":     {alone + "push: {telegram: {chat_id: 5}}", "c.yaml push.telegram.token", "TANDEM_PUSH_TELEGRAM_TOKEN_FILE"},
		"telegram, endpoint":     {alone + "push: {telegram: {endpoint: 'https://x'}}", "c.yaml push.telegram.token", "is missing"},
		"telegram, odd token":    {alone + "push: {telegram: {token: '../x'}}", "c.yaml:2 push.telegram.token", "BotFather"},
		"telegram in plain text": {alone + "push: {telegram: {token: a, endpoint: 'http://t.example.org'}}", "c.yaml:2 push.telegram.endpoint", "plain text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.text)
			var want []string
			if c.fault != "" {
				want = []string{c.fault}
			}
			equal(t, "faults", faultsOf(t, err), want)
			if err != nil {
				contains(t, err.Error(), c.says)
			}
		})
	}
}

func TestPeerIsCalledOnlyWhereTheSecretStaysPrivate(t *testing.T) {
	const overlay = ", allow_plain_on: [100.64.0.0/10, 'fd00::/8']}"
	for url, ok := range map[string]bool{
		"https://cloud.example.org":      true,
		"https://cloud.example.org:8471": true,
		"https://10.0.0.1/tandem/":       true,
		"HTTPS://cloud.example.org":      true,
		"http://127.0.0.1:8471":          true,
		"http://127.9.9.9":               true,
		"http://[::1]:8471":              true,
		"http://[::ffff:127.0.0.1]":      true,
		"http://localhost:8471":          true,
		"http://100.64.0.1:8471":         true,
		"http://[::ffff:100.64.0.1]":     true,
		"http://[fd00::1]":               true,
		"http://100.128.0.1":             false,
		"http://192.168.0.1":             false,
		"http://[fe80::1]":               false,
		"http://0.0.0.0":                 false,
		"http://cloud.example.org":       false,
		"http://localhost.example.org":   false,
		"http://127.0.0.1.example.org":   false,
		"http://1681915905":              false, // 100.64.0.1 to some resolvers
		"https://u@cloud":                false,
		"https://u:p@cloud":              false,
		"https://cloud?x":                false,
		"https://cloud?":                 false,
		"https://cloud#x":                false,
		"https://cloud#":                 false,
		"https://":                       false,
		"https://:8471":                  false,
		"https:cloud":                    false,
		"https://cloud:0":                false,
		"https://cloud:65536":            false,
		"https://cl oud":                 false,
		"//cloud":                        false,
		"cloud:8471":                     false,
		"unix:///run/x":                  false,
		"ftp://127.0.0.1":                false,
	} {
		_, err := load(t, peered+"url: '"+url+"'"+overlay)
		if got := faultsOf(t, err); ok && err != nil || !ok && (len(got) != 1 || got[0] != "c.yaml:2 peer.url") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestNodeListensToOthersOnlyBehindEncryption(t *testing.T) {
	pem := write(t, "file.pem", "x", 0o600)
	const (
		nothing = "}\n"
		proxies = ", trusted_proxies: [10.0.0.9]}\n"
		overlay = "}\npeer: {allow_plain_on: [100.64.0.0/10, 'fd00::/8']}\n"
	)
	tls := ", tls: {cert: " + pem + ", key: " + pem + "}}\n"
	for _, c := range []struct {
		listen, with string
		ok           bool
	}{
		{"127.0.0.1:0", nothing, true},
		{"localhost:8470", nothing, true},
		{"[::1]:8470", nothing, true},
		{"127.0.0.2:8470", nothing, true},
		{"0.0.0.0:8470", nothing, false},
		{":8470", nothing, false},
		{"[::]:8470", nothing, false},
		{"192.168.0.2:8470", nothing, false},
		{"0.0.0.0:8470", tls, true},
		{":8470", tls, true},
		{"0.0.0.0:8470", proxies, true},
		{"100.64.0.2:8470", overlay, true},
		{"[fd00::2]:8470", overlay, true},
		{"[::ffff:100.64.0.2]:8470", overlay, true},
		{"192.168.0.2:8470", overlay, false},
		{"0.0.0.0:8470", overlay, false},
		{"[::]:8470", "}\npeer: {allow_plain_on: ['::/1']}\n", false},
		{"home.lan:8470", tls, false},
		{"127.0.0.1", nothing, false},
		{"127.0.0.1:", nothing, false},
		{"127.0.0.1:http", nothing, false},
		{"127.0.0.1:65536", nothing, false},
		{"::1:8470", nothing, false},
	} {
		_, err := load(t, alone+"http: {listen: '"+c.listen+"'"+c.with)
		if got := faultsOf(t, err); c.ok && err != nil || !c.ok && (len(got) != 1 || got[0] != "c.yaml:2 http.listen") {
			t.Errorf("%s %s: %v", c.listen, c.with, err)
		}
	}
	_, err := load(t, alone+"http: {listen: '0.0.0.0:99'}")
	contains(t, err.Error(), "127.0.0.1:99", "http.tls.cert", "http.trusted_proxies", "peer.allow_plain_on")
}

func TestRulesThatNeedTheOriginAreSilentWithoutIt(t *testing.T) {
	for _, origin := range []string{"", "origin: zero, ", "origin: 3, "} {
		_, err := load(t, "node: {name: home, "+origin+"data: d}\npeer: {name: cloud, token_file: f}\n")
		if got := faultsOf(t, err); len(got) != 1 || got[0] != "c.yaml:1 node.origin" && got[0] != "c.yaml node.origin" {
			t.Errorf("%q: %v", origin, got)
		}
	}
}
