package config

import (
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// leaf is one key that takes a value, and the place for it in the struct.
type leaf struct {
	path  string // "http.tls.cert"
	value reflect.Value
}

// leaves lists the keys below v in the order of the struct.
func leaves(v reflect.Value, prefix string) []leaf {
	var all []leaf
	for i := range v.NumField() {
		path := prefix + v.Type().Field(i).Tag.Get("yaml")
		if field := v.Field(i); field.Kind() == reflect.Struct {
			all = append(all, leaves(field, path+".")...)
		} else {
			all = append(all, leaf{path, field})
		}
	}
	return all
}

// variable is the name of the environment variable for a key.
func variable(path string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

const prefix = "TANDEM_"

func (d *draft) leaf(path string) (leaf, bool) {
	i := slices.IndexFunc(d.leaves, func(l leaf) bool { return l.path == path })
	if i < 0 {
		return leaf{}, false
	}
	return d.leaves[i], true
}

func (d *draft) isSection(path string) bool {
	return slices.ContainsFunc(d.leaves, func(l leaf) bool { return strings.HasPrefix(l.path, path+".") })
}

// keysIn names the keys directly below a section, "" for the whole file.
func (d *draft) keysIn(section string) []string {
	var names []string
	for _, l := range d.leaves {
		rest, ok := l.path, true
		if section != "" {
			rest, ok = strings.CutPrefix(l.path, section+".")
		}
		name, _, _ := strings.Cut(rest, ".")
		if ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (l leaf) isList() bool   { return l.value.Kind() == reflect.Slice }
func (l leaf) isNumber() bool { return l.value.CanInt() }
func (l leaf) isSecret() bool { return l.value.Type() == reflect.TypeFor[Secret]() }

// set puts texts, one for each element of a list and else exactly one, in their
// place. It returns what is wrong with them, or nothing.
func (l leaf) set(texts ...string) (problem string) {
	if !slices.ContainsFunc(texts, unprintable) {
		switch {
		case l.isList():
			return l.setNetworks(texts)
		case l.isNumber():
			n, err := strconv.ParseInt(texts[0], 10, 64)
			if err != nil {
				return "wants a whole number, in digits"
			}
			l.value.SetInt(n)
		default:
			l.value.SetString(texts[0])
		}
		return ""
	}
	return "holds a control character or is not UTF-8; write plain text"
}

func unprintable(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl)
}

func (l leaf) setNetworks(texts []string) (problem string) {
	networks := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		network, ok := parseNetwork(text)
		if !ok {
			return "holds something that is neither a network nor an address; write such as 100.64.0.0/10 or 10.0.0.7"
		}
		networks = append(networks, network)
	}
	l.value.Set(reflect.ValueOf(networks))
	return ""
}
