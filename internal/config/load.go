package config

import (
	"fmt"
	"reflect"
)

// Load reads the file at path, then the variables in env, which has the form of
// os.Environ and wins over the file, and checks what came of it. An empty path
// stands for no file. Variables that do not begin with TANDEM_ are not looked
// at. Any error is a *Faults that lists all there is to mend.
//
// Each key of the file is a variable too: http.public_url is
// TANDEM_HTTP_PUBLIC_URL, and lists are separated by commas. A secret may
// instead be named by its file: TANDEM_PUSH_TELEGRAM_TOKEN_FILE. The peer's has
// a key for that, so TANDEM_PEER_TOKEN_FILE is peer.token_file, with all that
// LoadPeerSecret does for it.
func Load(path string, env []string) (Config, error) {
	d := newDraft(path)
	whole := path == ""
	if !whole {
		if text, ok := d.readFile(); ok {
			whole = d.readText(text)
		}
	}
	return d.finish(whole, env)
}

// finish applies env and checks. A file that could not be read as a whole is not
// checked: its keys would all be reported as missing.
func (d *draft) finish(whole bool, env []string) (Config, error) {
	d.readEnv(env)
	if whole {
		d.check()
	}
	if len(d.faults) > 0 {
		return Config{}, &Faults{List: d.faults}
	}
	return d.Config, nil
}

// draft is a Config in the making.
type draft struct {
	Config
	file   string            // the path, or "environment" where there is no file
	leaves []leaf            // of Config
	where  map[string]string // for each key that was set: where
	broken map[string]bool   // keys with a fault of their own; no second one is added
	faults []Fault
}

func newDraft(path string) *draft {
	d := &draft{Config: defaults(), file: path, where: map[string]string{}, broken: map[string]bool{}}
	if path == "" {
		d.file = "environment"
	}
	d.leaves = leaves(reflect.ValueOf(&d.Config).Elem(), "")
	return d
}

// put sets a key and remembers where it was set.
func (d *draft) put(l leaf, where string, texts ...string) {
	d.where[l.path] = where
	delete(d.broken, l.path) // what the file had is overridden
	if problem := l.set(texts...); problem != "" {
		d.add(where, l.path, "%s", problem)
	}
}

// add records a fault at a place.
func (d *draft) add(where, key, format string, args ...any) {
	d.broken[key] = true
	d.faults = append(d.faults, Fault{Where: where, Key: key, Detail: fmt.Sprintf(format, args...)})
}

// say records a fault of a key, where the key was set, unless it has one already.
func (d *draft) say(key, format string, args ...any) {
	if d.broken[key] {
		return
	}
	where, ok := d.where[key]
	if !ok {
		where = d.file
	}
	d.add(where, key, format, args...)
}
