package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const marker = "Zx9marker"

func reflectText(v reflect.Value) string { return fmt.Sprint(v.Interface()) }

func TestPrintedConfigShowsNoSecret(t *testing.T) {
	c := mustLoad(t, alone+"peer: {name: cloud, url: 'https://c', token: "+marker+strong+"}\npush: {telegram: {token: '1:"+marker+"'}}\n")
	secrets, err := LoadPeerSecret(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []any{c, &c, c.Peer, c.Peer.Token, &c.Peer.Token, secrets, &secrets, secrets.Send, secrets.Accept} {
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("started", "config", value)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("started", "config", value)
		js, jsonErr := json.Marshal(value)
		ya, yamlErr := yaml.Marshal(value)
		if jsonErr != nil || yamlErr != nil {
			t.Fatal(jsonErr, yamlErr)
		}
		out.Write(js)
		out.Write(ya)
		for _, shown := range []string{marker, fmt.Sprintf("%x", marker), fmt.Sprintf("%X", marker)} {
			if strings.Contains(out.String(), shown) {
				t.Errorf("%T shows a secret: %s", value, out.String())
			}
		}
		contains(t, out.String(), "[secret]")
	}
	equal(t, "no secret", Secret("").String(), "")
}

func TestNoFaultShowsAValue(t *testing.T) {
	long := marker + strong
	for name, c := range map[string]struct {
		text string
		env  []string
	}{
		"short token":           {text: alone + "peer: {name: c, url: 'https://c', token: " + marker + "}"},
		"odd token":             {text: alone + "peer: {name: c, url: 'https://c', token: '" + long + " x'}"},
		"token and file":        {text: alone + "peer: {name: c, url: 'https://c', token: " + long + ", token_file: f}"},
		"token twice":           {text: alone + "peer: {name: c, url: 'https://c', token: " + long + ", token: " + long + "}"},
		"token as an alias":     {text: alone + "peer: {token: *" + marker + "}"},
		"token as an anchor":    {text: alone + "peer: {token: &" + marker + " x}"},
		"token as a tag":        {text: alone + "peer: {token: !" + marker + " x}"},
		"token as a tag handle": {text: alone + "peer: {token: !" + marker + "!x x}"},
		"token as a directive":  {text: "%" + marker + " 1\n---\n" + alone},
		"token after %":         {text: alone + "peer: {token: %" + marker + "}"},
		"token after @":         {text: alone + "peer: {token: @" + marker + "}"},
		"token after `":         {text: alone + "peer: {token: `" + marker + "}"},
		"token in odd quotes":   {text: alone + "peer: {token: '" + marker + "}"},
		"token and a colon":     {text: alone + "peer:\n  token: " + marker + ": x\n"},
		"token without a space": {text: alone + "peer: {name: c, token:" + marker + "}"},
		"nothing but the token": {text: alone + "peer: " + marker},
		"token in a list":       {text: alone + "peer: {token: [" + marker + "]}"},
		"token as a number":     {text: alone + "push: {telegram: {chat_id: " + marker + "}}"},
		"bot token":             {text: alone + "push: {telegram: {token: '1 " + marker + "'}}"},
		"password in a URL":     {text: alone + "peer: {name: c, url: 'https://u:" + marker + "@c', token: " + long + "}"},
		"password, broken URL":  {text: alone + "peer: {name: c, url: 'https://u:" + marker + "%zz@c:x', token: " + long + "}"},
		"secret in a query":     {text: alone, env: []string{"TANDEM_HTTP_PUBLIC_URL=https://c/?k=" + marker}},
		"variable":              {text: alone, env: []string{"TANDEM_PEER_TOKEN=" + marker}},
		"control character":     {text: alone, env: []string{"TANDEM_PEER_TOKEN=" + long + "\r"}},
		"unknown variable":      {text: alone, env: []string{"TANDEM_TELEGRAM_TOKEN=" + marker}},
		"secret's file":         {text: alone, env: []string{"TANDEM_PUSH_TELEGRAM_TOKEN_FILE=" + write(t, "s", marker+" x", 0o600)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.text, c.env...)
			if err == nil {
				t.Fatal("this was meant to be a fault")
			}
			if text := fmt.Sprintf("%v %+v", err, err.(*Faults).List); strings.Contains(text, marker) {
				t.Error(text)
			}
		})
	}
}
