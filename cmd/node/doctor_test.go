package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"tandem/internal/standin"
)

// looks asks the doctor, and checks the exit code and what it finds: "level check"
// for each line that is not ok.
func looks(t testing.TB, env []string, code int, want ...string) []finding {
	t.Helper()
	s := verb(t, env, "", "doctor", "--json")
	equal(t, "doctor exits", s.code, code)
	var found []finding
	if err := json.Unmarshal([]byte(s.out), &found); err != nil {
		t.Fatalf("%v\n%s\n%s", err, s.out, s.err)
	}
	var got []string
	for _, f := range found {
		if f.Level != fine {
			got = append(got, fmt.Sprint(f.Level, " ", f.Check))
		}
		if f.Check == "" || f.Detail == "" || f.Level == fail && f.Mend == "" && f.Check != "files" {
			t.Errorf("a finding says too little: %+v", f)
		}
	}
	equal(t, "what the doctor finds", fmt.Sprint(got), fmt.Sprint(want))

	text := verb(t, env, "", "doctor") // the same for a person
	equal(t, "doctor exits", text.code, code)
	for _, f := range found {
		if !strings.Contains(text.out, fmt.Sprintf("%-4s  %-10s ", f.Level, f.Check)) {
			t.Errorf("the text lacks %s %s:\n%s", f.Level, f.Check, text.out)
		}
	}
	if code != exitOK && !strings.Contains(text.err, "see the lines marked fail") {
		t.Errorf("it ends with %q", text.err)
	}
	return found
}

// tells checks what the doctor says of one thing it looked at.
func tells(t testing.TB, found []finding, check, text string) {
	t.Helper()
	var all string
	for _, f := range found {
		if f.Check == check {
			all += f.Detail + " → " + f.Mend + "\n"
		}
	}
	if !strings.Contains(all, text) {
		t.Errorf("of %s the doctor says %q, and not %q", check, all, text)
	}
}

func TestTheDoctorFindsTwoNodesWell(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	looks(t, w.home.env, exitOK, "warn node") // it does not run, and its files are whole
	w.cloud.start()
	w.home.start()
	eventually(t, func() error { return w.wellAt("home") })
	tells(t, looks(t, w.home.env, exitOK), "peer", "cloud answers (version ")
	eventually(t, func() error { return w.wellAt("cloud") })
	found := looks(t, w.cloud.env, exitOK)
	tells(t, found, "channels", "this node does not ring")
	tells(t, found, "accounts", "there is an admin")
	tells(t, looks(t, w.home.env, exitOK), "channels", "FCM, then Telegram")
	must(t, w.home.kill())
	tells(t, looks(t, w.home.env, exitOK, "warn node"), "node", "Start it: tandem serve")
}

func TestTheDoctorTellsANewcomerWhatComesFirst(t *testing.T) {
	t.Parallel()
	env, data := alone(t)
	found := looks(t, env, exitFailed, "warn folder", "fail channels", "warn node", "warn files")
	tells(t, found, "folder", "The first start makes it.")
	tells(t, found, "channels", "reminders reach nobody → Set push.fcm or push.telegram.")
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the doctor makes the folder (%v)", err)
	}
	bot := append(env, "TANDEM_PUSH_TELEGRAM_TOKEN=1:demo")
	tells(t, looks(t, bot, exitOK, "warn folder", "warn channels", "warn node", "warn files"), "channels", "Set push.telegram.chat_id.")

	w := barePair(t, t.TempDir())
	w.cloud.start()
	w.home.start()
	eventually(t, func() error { return w.wellAt("home") })
	eventually(t, func() error { return w.wellAt("cloud") })
	tells(t, looks(t, w.cloud.env, exitOK, "warn accounts"), "accounts", "tandem init --email YOU@EXAMPLE.ORG")
	tells(t, looks(t, w.home.env, exitOK, "warn accounts"), "accounts", "have not come from cloud yet")
}

func TestTheDoctorFindsAFolderThatOthersCanRead(t *testing.T) {
	t.Parallel()
	env, data := inhabited(t)
	env = append(env, "TANDEM_SCHEDULER_MODE=off")
	looks(t, env, exitOK, "warn node")
	must(t, os.Chmod(data, 0o750))
	tells(t, looks(t, env, exitFailed, "fail folder", "warn node"), "folder", "chmod 700 "+data)
}

func TestTheDoctorFindsThatThePeerIsAway(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.home.start()
	eventually(t, func() error {
		if err := w.wellAt("home"); err == nil || !strings.Contains(err.Error(), "peer_away") {
			return fmt.Errorf("it finds %v", err)
		}
		return nil
	})
	tells(t, looks(t, w.home.env, exitOK, "warn peer"), "peer", "→ Start cloud if it does not run. peer.url leads to http://"+w.link.addr()+": if that")
	must(t, w.home.kill())
	w.cloud.start()
	tells(t, looks(t, w.cloud.env, exitOK, "warn peer"), "peer", "home has not been heard of since the start → Start home if it does not run. If it does: tandem doctor --config FILE on the machine of home")
}

func TestTheDoctorFindsNodesThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ home, cloud, says string }{
		{"active", "active", "both schedulers are active"},
		{"standby", "standby", "no scheduler is active"},
		{"off", "off", "both schedulers are off"},
		{"off", "standby", "no scheduler is active"},
	} {
		t.Run(c.home+" and "+c.cloud, func(t *testing.T) {
			t.Parallel()
			w := newPair(t)
			w.cloud.env = append(w.cloud.env, "TANDEM_SCHEDULER_MODE="+c.cloud)
			w.home.env = append(w.home.env, "TANDEM_SCHEDULER_MODE="+c.home)
			w.cloud.start()
			w.home.start()
			for _, name := range []string{"home", "cloud"} {
				eventually(t, func() error {
					if err := w.wellAt(name); err == nil || !strings.Contains(err.Error(), c.says) {
						return fmt.Errorf("%s finds %v", name, err)
					}
					return nil
				})
			}
		})
	}
}

// A node that holds the folder and does not answer is not well.
func TestTheDoctorIsNotFooledByAnotherSocket(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	must(t, os.WriteFile(w.home.dir+"/"+socketName, nil, 0o600)) // not even a socket
	s := verb(t, w.home.env, "", "doctor")
	s.exits(t, exitOK, "warn  node       it does not run")
	w.fcm.FailAlways("", standin.Hang)
	w.home.start()
	if !strings.Contains(verb(t, w.home.env, "", "doctor").out, "it runs") {
		t.Error("the file was in the way")
	}
}
