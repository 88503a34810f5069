package config

import (
	"os"
	"regexp"
	"strings"
	"time"
)

// check holds the rules that concern more than the form of one value.
func (d *draft) check() {
	d.checkNode()
	d.checkHTTP()
	d.checkPeer()
	switch d.Scheduler.Mode {
	case Active, Standby, Off:
	default:
		d.say("scheduler.mode", "is none of active, standby, off; write active where reminders should ring")
	}
	d.checkFCM()
	d.checkTelegram()
}

func (d *draft) missing(key, example string) {
	d.say(key, "is missing; write %s or set %s", example, variable(key))
}

var nodeName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

func (d *draft) checkNode() {
	if d.Node.Name == "" {
		d.missing("node.name", "name: local below node:")
	} else if !nodeName.MatchString(d.Node.Name) {
		d.say("node.name", "wants 1 to 32 of the characters a-z, 0-9 and -; write a short name such as local")
	}
	if _, set := d.where["node.origin"]; !set {
		d.missing("node.origin", "origin: 0 below node: at home, origin: 1 in the cloud,")
	} else if !d.originKnown() {
		d.say("node.origin", "is 0 at home and 1 in the cloud; write one of them")
	}
	if d.Node.Data == "" {
		d.missing("node.data", "data: data/local below node:")
	}
	d.checkPath("node.data", d.Node.Data)
	// Local would be whatever zone the machine happens to have.
	if _, err := time.LoadLocation(d.Node.TZ); err != nil || d.Node.TZ == "Local" {
		d.say("node.tz", "is no time zone known here; write an IANA name such as Europe/Berlin, or leave it out")
	}
}

// originKnown guards the rules that depend on which node this is: they say
// nothing where that is itself at fault.
func (d *draft) originKnown() bool {
	_, set := d.where["node.origin"]
	return set && !d.broken["node.origin"] && (d.Node.Origin == 0 || d.Node.Origin == 1)
}

func (d *draft) checkPeer() {
	for _, network := range d.Peer.AllowPlainOn {
		if network.Bits() == 0 {
			d.say("peer.allow_plain_on", "names every address there is; write the network of the overlay alone, such as 100.64.0.0/10")
		}
	}
	if !d.Peer.On() {
		return
	}
	if d.Peer.Name == "" {
		d.missing("peer.name", "name: cloud below peer: (the node.name of the other node)")
	} else if !nodeName.MatchString(d.Peer.Name) {
		d.say("peer.name", "wants 1 to 32 of the characters a-z, 0-9 and -; write the node.name of the other node")
	} else if d.Peer.Name == d.Node.Name {
		d.say("peer.name", "equals node.name; give the two nodes different names")
	}
	d.checkPeerURL()
	d.checkPeerToken()
}

func (d *draft) checkPeerURL() {
	switch {
	case !d.originKnown():
	case d.Node.Origin == 1 && d.Peer.URL != "":
		d.say("peer.url", "belongs to origin 0, which calls; origin 1 is called: take it out here")
		return
	case d.Node.Origin == 0 && d.Peer.URL == "":
		d.missing("peer.url", "url: https://… below peer:, where the other node listens,")
	}
	allowed := func(host string) bool { return isLoopback(host) || within(host, d.Peer.AllowPlainOn) }
	d.checkURL("peer.url", &d.Peer.URL, allowed,
		"sends the secret in plain text; write https://, or name the overlay network of that IP address in peer.allow_plain_on")
}

func (d *draft) checkPeerToken() {
	switch problem := weakness(string(d.Peer.Token)); {
	case d.Peer.Token != "" && d.Peer.TokenFile != "":
		d.say("peer.token", "is set together with peer.token_file; empty one of the two")
	case d.Peer.Token != "" && problem != "":
		d.say("peer.token", "%s", problem)
	case d.Peer.Token == "" && d.Peer.TokenFile == "":
		d.missing("peer.token_file", "token_file: data/peer.token below peer:")
	}
	d.checkPath("peer.token_file", d.Peer.TokenFile)
}

var projectID = regexp.MustCompile(`^[A-Za-z0-9.:_-]+$`)

func (d *draft) checkFCM() {
	f := d.Push.FCM
	d.checkExists("push.fcm.credentials_file", f.CredentialsFile)
	d.checkEndpoint("push.fcm.endpoint", &d.Push.FCM.Endpoint)
	if f.ProjectID != "" && !projectID.MatchString(f.ProjectID) {
		d.say("push.fcm.project_id", "is no project id; copy it from the Firebase console")
	}
	if !f.On() || f.CredentialsFile != "" {
		return
	}
	if f.Endpoint == "" {
		d.missing("push.fcm.credentials_file", "the path of the service account's JSON file there")
	} else if f.ProjectID == "" {
		d.missing("push.fcm.project_id", "any project id beside the endpoint of a stand-in, name push.fcm.credentials_file,")
	}
}

var botToken = regexp.MustCompile(`^[A-Za-z0-9:_-]+$`)

func (d *draft) checkTelegram() {
	t := d.Push.Telegram
	d.checkEndpoint("push.telegram.endpoint", &d.Push.Telegram.Endpoint)
	if t.Token != "" && !botToken.MatchString(string(t.Token)) {
		d.say("push.telegram.token", "holds a character that no bot token has; copy it from BotFather once more")
	}
	if t.On() && t.Token == "" {
		d.say("push.telegram.token", "is missing beside the other keys of push.telegram; set %s or %[1]s_FILE, or take the others out",
			variable("push.telegram.token"))
	}
}

// checkPath refuses what only a shell understands: it would become a folder
// named ~ in the working directory.
func (d *draft) checkPath(key, path string) {
	if strings.HasPrefix(path, "~") {
		d.say(key, "begins with ~, which only a shell expands; write the path in full")
	}
}

// checkExists wants a file at path, if one is named.
func (d *draft) checkExists(key, path string) {
	d.checkPath(key, path)
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err != nil {
		d.say(key, "names a file that cannot be found (%s); a relative path begins at the working directory", reason(err))
	} else if info.IsDir() {
		d.say(key, "names a folder; write the path of the file")
	}
}
