package config

import (
	"maps"
	"slices"
	"strings"
)

// readEnv takes the variables that name a key and reports the others of ours.
// Of a name that comes twice the last counts, as in os/exec.
func (d *draft) readEnv(env []string) {
	given := map[string]string{}
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, prefix) {
			given[name] = value
		}
	}
	for _, l := range d.leaves {
		d.takeVariable(l, given)
	}
	// The environment wins over the file also where the secret is named in two ways.
	if d.where["peer.token"] == variable("peer.token") && d.where["peer.token_file"] != variable("peer.token_file") {
		d.Peer.TokenFile = ""
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		d.add(name, "", "names no key; %s", d.variablesNear(name))
	}
}

// takeVariable moves what is meant for one key from given into its place.
func (d *draft) takeVariable(l leaf, given map[string]string) {
	name := variable(l.path)
	value, ok := given[name]
	delete(given, name)
	if _, hasKey := d.leaf(l.path + "_file"); l.isSecret() && !hasKey {
		file := given[name+"_FILE"]
		delete(given, name+"_FILE")
		if file != "" && value != "" {
			d.add(name, l.path, "is set together with %s_FILE; keep one of the two", name)
			return
		}
		if file != "" {
			d.takeSecretFile(l, name+"_FILE", file)
			return
		}
	}
	switch {
	case !ok:
	case !l.isList():
		d.put(l, name, value)
	case strings.TrimSpace(value) == "":
		d.put(l, name)
	default:
		texts := strings.Split(value, ",")
		for i := range texts {
			texts[i] = strings.TrimSpace(texts[i])
		}
		d.put(l, name, texts...)
	}
}

// takeSecretFile sets a secret to the content of a file, less one line end.
func (d *draft) takeSecretFile(l leaf, name, path string) {
	text, err := readPrivate(path, 0o007)
	switch secret := strings.TrimSuffix(string(text), "\n"); {
	case err != nil:
		d.add(name, l.path, "names a file that %s", clause(err))
	case secret == "":
		d.add(name, l.path, "names a file that is empty; write the secret into it")
	default:
		d.put(l, name, secret)
	}
}

// variablesNear lists the variables of the section that name seems to mean, or
// of all where it means none.
func (d *draft) variablesNear(name string) string {
	var near, all []string
	for _, l := range d.leaves {
		section, _, _ := strings.Cut(l.path, ".")
		all = append(all, variable(l.path))
		if strings.HasPrefix(name, variable(section)+"_") {
			near = append(near, variable(l.path))
		}
	}
	if near == nil {
		near = all
	}
	return "there are: " + strings.Join(near, ", ")
}
