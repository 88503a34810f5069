package config

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// parseNetwork reads a network, or an address as the network of it alone.
func parseNetwork(text string) (netip.Prefix, bool) {
	if network, err := netip.ParsePrefix(text); err == nil {
		return network.Masked(), true
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	addr = addr.Unmap().WithZone("")
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

// isLoopback reports whether host can only mean this machine.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// within reports whether host is a literal address inside one of the networks.
// A name is not: who answers for it can change. Nor is the address that stands
// for every interface.
func within(host string, networks []netip.Prefix) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.IsUnspecified() {
		return false
	}
	addr = addr.Unmap().WithZone("")
	for _, network := range networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// checkHTTP also fills in the default of http.listen, which depends on origin.
func (d *draft) checkHTTP() {
	if d.HTTP.Listen == "" && d.originKnown() {
		d.HTTP.Listen = "127.0.0.1:" + strconv.Itoa(8470+d.Node.Origin)
	}
	d.checkListen()
	d.checkURL("http.public_url", &d.HTTP.PublicURL, func(string) bool { return true }, "")
	d.checkExists("http.tls.cert", d.HTTP.TLS.Cert)
	d.checkExists("http.tls.key", d.HTTP.TLS.Key)
	if d.HTTP.TLS.On() && d.HTTP.TLS.Cert == "" {
		d.missing("http.tls.cert", "the path of the certificate that goes with http.tls.key")
	}
	if d.HTTP.TLS.On() && d.HTTP.TLS.Key == "" {
		d.missing("http.tls.key", "the path of the key that goes with http.tls.cert")
	}
}

func (d *draft) checkListen() {
	if d.HTTP.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(d.HTTP.Listen)
	_, hostErr := netip.ParseAddr(host)
	named := host != "" && hostErr != nil && !isLoopback(host)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || named {
		d.say("http.listen", "wants an IP address of this machine and a port; write such as 127.0.0.1:8470")
		return
	}
	if isLoopback(host) || d.HTTP.TLS.On() || len(d.HTTP.TrustedProxies) > 0 || within(host, d.Peer.AllowPlainOn) {
		return
	}
	d.say("http.listen", "lets other machines in without encryption; do one of these: write 127.0.0.1:%s; "+
		"set http.tls.cert and http.tls.key; name the proxy that speaks TLS for this node in http.trusted_proxies; "+
		"listen on this machine's address in an encrypted overlay and name its network in peer.allow_plain_on", port)
}

// checkURL wants a base URL, to which paths can be appended, if there is one at
// all, and takes off its last slash. Plain says to which hosts http:// is
// allowed; refusal is what to say of another.
func (d *draft) checkURL(key string, text *string, plain func(host string) bool, refusal string) {
	if *text == "" {
		return
	}
	u, err := url.Parse(*text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" || !portOK(u.Port()):
		d.say(key, "is no address of a server; write such as https://tandem.example.org")
	case u.User != nil:
		d.say(key, "holds a user name or a password; take out what stands before the @")
	case strings.ContainsAny(*text, "?#"):
		d.say(key, "holds a ? or a #; end it before that")
	case u.Scheme == "http" && !plain(u.Hostname()):
		d.say(key, "%s", refusal)
	}
	*text = strings.TrimRight(*text, "/")
}

func portOK(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// checkEndpoint is for a service in the net, or a stand-in for one on this machine.
func (d *draft) checkEndpoint(key string, text *string) {
	d.checkURL(key, text, isLoopback, "sends secrets in plain text; write https://, or http:// to a stand-in on this machine")
}
