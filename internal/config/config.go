// Package config is what an operator may decide about one node. It is one
// struct, filled from defaults in code, then one YAML file, then environment
// variables, and then checked as a whole; whoever starts the node sees every
// fault at once, and what to write instead. Settings that people change while
// the node runs are rows, not configuration, and live elsewhere.
package config

import "net/netip"

// Config is the whole of it. The yaml tags are the only list of keys: the
// reader, the names of the variables and the faults are all made from them.
// Printing or logging a Config shows no secret.
type Config struct {
	Node      Node      `yaml:"node"`
	HTTP      HTTP      `yaml:"http"`
	Peer      Peer      `yaml:"peer"`
	Scheduler Scheduler `yaml:"scheduler"`
	Push      Push      `yaml:"push"`
}

// Node says which of the two nodes this one is and where it keeps its files.
type Node struct {
	Name   string `yaml:"name"`   // 1 to 32 of a-z, 0-9 and -; stands in every row it writes
	Origin int    `yaml:"origin"` // 0 at home, which calls; 1 in the cloud, which is called
	Data   string `yaml:"data"`   // folder of the databases; made where missing
	TZ     string `yaml:"tz"`     // IANA zone of people who have chosen none; empty for none
}

// HTTP is the door for phones, scripts and the peer.
type HTTP struct {
	Listen         string         `yaml:"listen"`     // address and port; empty becomes 127.0.0.1 and 8470 + origin
	PublicURL      string         `yaml:"public_url"` // how others reach this node; no slash at the end
	TLS            TLS            `yaml:"tls"`
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"` // who speak TLS in front of this node
}

// TLS names the PEM files of a certificate: both or none.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// On reports whether the node speaks TLS itself.
func (t TLS) On() bool { return t.Cert != "" || t.Key != "" }

// Peer is the other node. AllowPlainOn counts without a peer too: it also says
// where this node may listen without TLS.
type Peer struct {
	Name         string         `yaml:"name"`
	URL          string         `yaml:"url"`   // at origin 0 only; no slash at the end
	Token        Secret         `yaml:"token"` // the shared secret itself, or:
	TokenFile    string         `yaml:"token_file"`
	AllowPlainOn []netip.Prefix `yaml:"allow_plain_on"` // networks that encrypt by themselves
}

// On reports whether there is another node. One alone is complete.
func (p Peer) On() bool {
	return p.Name != "" || p.URL != "" || p.Token != "" || p.TokenFile != ""
}

// Scheduler says what this node does when a reminder is due.
type Scheduler struct {
	Mode Mode `yaml:"mode"`
}

// Mode is a node's part in ringing.
type Mode string

// The modes.
const (
	Active  Mode = "active"  // rings
	Standby Mode = "standby" // keeps everything ready and does not ring
	Off     Mode = "off"     // never rings
)

// Push holds the ways to reach a person. Without any, reminders are recorded
// and reach nobody.
type Push struct {
	FCM      FCM      `yaml:"fcm"`
	Telegram Telegram `yaml:"telegram"`
}

// FCM is Firebase Cloud Messaging.
type FCM struct {
	CredentialsFile string `yaml:"credentials_file"` // JSON of a service account
	ProjectID       string `yaml:"project_id"`       // empty: the one in the credentials
	Endpoint        string `yaml:"endpoint"`         // base URL, no slash at the end; empty: Google's
}

// On reports whether notices go out through FCM.
func (f FCM) On() bool { return f != FCM{} }

// Telegram is one bot.
type Telegram struct {
	Token    Secret `yaml:"token"`
	Endpoint string `yaml:"endpoint"` // base URL, no slash at the end; empty: Telegram's
	ChatID   int64  `yaml:"chat_id"`  // chat of whoever is the first admin when it is first needed; 0 for none, negative for a group
}

// On reports whether notices go out through Telegram.
func (t Telegram) On() bool { return t != Telegram{} }

// defaults are the values of the keys that nobody has set, as far as they do
// not depend on other keys; for all others it is the zero value.
func defaults() Config { return Config{Scheduler: Scheduler{Mode: Active}} }
