package fcm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/internal/fault"
	"tandem/internal/fcm"
	"tandem/internal/standin"
)

func TestConfigurationFaultsShowAtTheStart(t *testing.T) { // R:C11
	junk := filepath.Join(t.TempDir(), "junk.json")
	if err := os.WriteFile(junk, []byte("SECRET not json"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name    string
		options fcm.Options
		fields  string
	}{
		{"no such file", fcm.Options{CredentialsFile: junk + "x"}, "push.fcm.credentials_file"},
		{"a directory", fcm.Options{CredentialsFile: t.TempDir()}, "push.fcm.credentials_file"},
		{"junk", fcm.Options{CredentialsFile: junk}, "push.fcm.credentials_file"},
		{"another kind of account", fcm.Options{CredentialsFile: keyFile(t, "service_account", "authorized_user")}, "push.fcm.credentials_file"},
		{"no email", fcm.Options{CredentialsFile: keyFile(t, "client_email", "x")}, "push.fcm.credentials_file"},
		{"a broken key", fcm.Options{CredentialsFile: keyFile(t, "MII", "XXX")}, "push.fcm.credentials_file"},
		{"no key", fcm.Options{CredentialsFile: keyFile(t, `"private_key"`, `"x"`)}, "push.fcm.credentials_file"},
		{"a token_uri that is none", fcm.Options{CredentialsFile: keyFile(t, "http://login.test/token", "login")}, "push.fcm.credentials_file"},
		{"no project in the file", fcm.Options{CredentialsFile: keyFile(t, `"project_id"`, `"x"`)}, "push.fcm.project_id"},
		{"a project in the file that is a path", fcm.Options{CredentialsFile: keyFile(t, `"standin"`, `"a/b"`)}, "push.fcm.project_id"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.options.Log = quiet
			_, err := fcm.New(t.Context(), c.options)
			if err == nil || fault.From(err).Code != "fcm_config" || !fault.Of(err, fault.Invalid) {
				t.Fatalf("%v", err)
			}
			var fields []string
			for _, f := range fault.From(err).Fields {
				fields = append(fields, f.Name)
				if !strings.Contains(fault.From(err).Detail, f.Detail) {
					t.Errorf("the sentence leaves %q out: %s", f.Detail, fault.From(err).Detail)
				}
			}
			if got := strings.Join(fields, " "); got != c.fields {
				t.Errorf("fields %q, want %q", got, c.fields)
			}
			if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Errorf("the fault repeats the file: %v", err)
			}
		})
	}
}

func TestProjectOfTheOptionsBeatsTheFiles(t *testing.T) {
	far := standin.NewFCM("another")
	b, _ := os.ReadFile(keyFile(t))
	if err := far.Trust(b); err != nil {
		t.Fatal(err)
	}
	c, err := fcm.New(t.Context(), fcm.Options{
		CredentialsFile: keyFile(t), ProjectID: "another", Transport: standin.Transport(far), Log: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, c, phone, notice)
}

// A node whose network is away at the start sends as soon as it is back.
func TestStartNeedsNoNetwork(t *testing.T) {
	far := standin.NewFCM("standin")
	b, _ := os.ReadFile(keyFile(t))
	if err := far.Trust(b); err != nil {
		t.Fatal(err)
	}
	wire := standin.Transport(far)
	wire.Cut()
	c, err := fcm.New(t.Context(), fcm.Options{CredentialsFile: keyFile(t), Transport: wire, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if f := fail(t, c, phone, notice); f.MaybeTaken {
		t.Errorf("%+v", f)
	}
	wire.Mend()
	succeed(t, c, phone, notice)
}
