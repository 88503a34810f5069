package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInitMakesOneAdminAndNoSecond(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{"a line": adasPassword, "no line end": demoPassword, "a line of Windows": demoPassword + "\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := barePair(t, t.TempDir())
			w.cloud.env = append(w.cloud.env, "TANDEM_PEER_NAME=home")
			verb(t, w.cloud.env, in, "init", "--email", " Ada@Example.org", "--password-stdin").exits(t, exitOK, "ada@example.org is the first admin")
			second := verb(t, w.cloud.env, in, "init", "--email", "eve@example.org", "--password-stdin")
			second.exits(t, exitFailed, "has accounts already")
			w.cloud.start()
			must(t, w.cloud.login(t.Context()))
			verb(t, w.cloud.env, in, "init", "--email", "eve@example.org", "--password-stdin").exits(t, exitFailed, "has accounts already")
		})
	}
}

func TestInitAsksTheNodeThatRuns(t *testing.T) {
	t.Parallel()
	w := barePair(t, t.TempDir())
	w.cloud.start()
	asked := verb(t, w.cloud.env, adasPassword, "init", "--email", demoEmail) // asks at the terminal
	asked.exits(t, exitOK, demoEmail+" is the first admin")
	if !strings.Contains(asked.err, "Password (8 to 256 characters") {
		t.Errorf("it asks %q", asked.err)
	}
	must(t, w.cloud.login(t.Context()))
}

func TestInitSaysWhatIsWrongWithAnAccount(t *testing.T) {
	t.Parallel()
	env, _ := alone(t)
	s := verb(t, env, "short\n", "init", "--email", "nobody", "--password-stdin")
	s.exits(t, exitFailed, "email must be", "password must be 8 to 256 characters")
	if strings.Contains(s.err, "short") {
		t.Error("it repeats the password")
	}
	verb(t, env, "", "init", "--email", demoEmail, "--password-stdin").exits(t, exitFailed, "password must be")
	verb(t, env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitOK)
}

func TestInitWhereAccountsAreCopiedNamesTheOtherNode(t *testing.T) {
	t.Parallel()
	w := barePair(t, t.TempDir())
	url := "http://" + w.link.addr()
	verb(t, w.home.env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitFailed, "kept by the other node", url)
	w.home.start()
	verb(t, w.home.env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitFailed, "kept by the other node", url)
}

// A socket's address holds 107 bytes, and a folder's path more.
func TestAFolderMayLieDeep(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 20), strings.Repeat("long", 30))
	must(t, os.MkdirAll(dir, 0o700))
	w := barePair(t, dir)
	w.cloud.start()
	verb(t, w.cloud.env, adasPassword, "init", "--email", demoEmail, "--password-stdin").exits(t, exitOK)
	must(t, w.cloud.login(t.Context()))
	must(t, w.cloud.kill())
	w.cloud.start()
	found := verb(t, w.cloud.env, "", "doctor")
	if !strings.Contains(found.out, "ok    node       it runs") {
		t.Errorf("the doctor says\n%s", found.out)
	}
	must(t, w.cloud.call(t.Context(), http.MethodGet, "/v1/todos", nil, nil))
}

// The flag beats the variable, which beats the file.
func TestTheDataFlagWins(t *testing.T) {
	t.Parallel()
	env, data := alone(t)
	file := filepath.Join(t.TempDir(), "node.yaml")
	must(t, os.WriteFile(file, []byte("node: {name: filed, origin: 0, data: "+data+"-of-the-file}\n"), 0o600))
	verb(t, env, adasPassword, "init", "--email", demoEmail, "--password-stdin", "--data", data+"-of-the-flag", "--config", file).exits(t, exitOK)
	verb(t, env[2:], adasPassword, "init", "--email", demoEmail, "--password-stdin", "--config", file).exits(t, exitOK)
	verb(t, env[3:], adasPassword, "init", "--email", demoEmail, "--password-stdin", "--config", file).exits(t, exitOK)
	for _, made := range []string{data + "-of-the-flag", data, data + "-of-the-file"} {
		if _, err := os.Stat(filepath.Join(made, "users.db")); err != nil {
			t.Error(err)
		}
	}
}
