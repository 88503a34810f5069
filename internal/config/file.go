package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFile is far above any real configuration; it keeps a mistaken path, such
// as that of a device, from filling the memory.
const maxFile = 1 << 20

func (d *draft) readFile() (text []byte, ok bool) {
	f, err := os.Open(d.file)
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add(d.file, "", "there is no such file; name one with --config, such as configs/local.yaml")
	case err != nil:
		d.add(d.file, "", "cannot be read (%s); name a file that this user may read", reason(err))
	case len(text) > maxFile:
		d.add(d.file, "", "is larger than 1 MiB; a configuration is a few lines")
	default:
		return text, true
	}
	return nil, false
}

// readText takes the keys from one YAML document. It is walked, not
// decoded into the struct, because the library's own complaints quote values and
// name Go types instead of keys. It returns false
// where the text holds no keys to check.
func (d *draft) readText(text []byte) (whole bool) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == 0 || r == utf8.RuneError && size == 1 {
			d.add(d.at(1+bytes.Count(text[:i], []byte("\n"))), "", "is not plain UTF-8 text (a NUL byte, or another encoding); save the file as UTF-8")
			return false
		}
		i += size
	}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&document); err == io.EOF {
		return true
	} else if err != nil {
		d.syntax(err)
		return false
	}
	if err := decoder.Decode(&second); err == nil {
		d.add(d.at(max(1, second.Line)), "", "a second document begins; take out the line ---")
	} else if err != io.EOF {
		d.syntax(err)
	}
	d.walk(document.Content[0], "")
	return document.Content[0].Kind == yaml.MappingNode || isNull(document.Content[0])
}

func (d *draft) at(line int) string { return d.file + ":" + strconv.Itoa(line) }

// yamlLine matches the parser's complaints of a fixed text, which come with a
// line. The others quote what they stumbled over, which may be a secret.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// syntax reports what the YAML parser found.
func (d *draft) syntax(err error) {
	where, detail := d.file, "is not valid YAML; look for an odd quote, a tab, or a value that begins with *"
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		where += ":" + m[1]
		detail = fmt.Sprintf("is not valid YAML near here (%s); look at the indentation and the quotes", m[2])
	}
	d.add(where, "", "%s", detail)
}

// walk takes the keys of one section.
func (d *draft) walk(section *yaml.Node, path string) {
	if isNull(section) {
		return
	}
	if section.Kind != yaml.MappingNode {
		d.add(d.at(section.Line), path, "wants keys below it: %s", strings.Join(d.keysIn(path), ", "))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		name := key.Value
		if path != "" {
			name = path + "." + name
		}
		l, isLeaf := d.leaf(name)
		switch line, again := first[name]; {
		case key.Kind != yaml.ScalarNode || !isLeaf && !d.isSection(name):
			d.unknown(key, path)
			continue
		case again:
			d.add(d.at(key.Line), name, "is already set in line %d; keep one of the two", line)
			continue
		}
		first[name] = key.Line
		if isLeaf {
			d.take(l, key.Line, value)
		} else {
			d.walk(value, name)
		}
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{0,32}`)

// unknown reports a key that does not exist, quoting no more of it than can be a
// name: in `token:abc` without a space the rest is a secret.
func (d *draft) unknown(key *yaml.Node, path string) {
	name := plainName.FindString(key.Value)
	full := name
	if path != "" {
		full = path + "." + name
	}
	detail := "is no key"
	if name != key.Value || name == "" {
		detail = "begins something that is no key (is a space missing after a colon?)"
	}
	d.add(d.at(key.Line), full, "%s; here may stand: %s", detail, strings.Join(d.keysIn(path), ", "))
}

// take sets one key. A null value is as good as none.
func (d *draft) take(l leaf, line int, value *yaml.Node) {
	if isNull(value) {
		return
	}
	nodes := []*yaml.Node{value}
	if l.isList() {
		if value.Kind != yaml.SequenceNode {
			d.add(d.at(line), l.path, "wants a list, such as [100.64.0.0/10]")
			return
		}
		nodes = value.Content
	}
	var texts []string
	for _, n := range nodes {
		if problem := scalar(n, l.isNumber()); problem != "" {
			d.add(d.at(line), l.path, "%s", problem)
			return
		}
		texts = append(texts, n.Value)
	}
	d.put(l, d.at(line), texts...)
}

// scalar says why n is not one plain value, or nothing. A text may look like a
// number or a date: it is taken letter by letter.
func scalar(n *yaml.Node, number bool) (problem string) {
	switch {
	case n.Kind == yaml.AliasNode:
		return "is an alias (*name); write the value itself, in quotes if it begins with *"
	case n.Kind != yaml.ScalarNode:
		return "wants a single value"
	case n.Style&yaml.TaggedStyle != 0:
		return "has a tag (!name); write the value alone, in quotes if it begins with !"
	case number && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return "wants a whole number; take off the quotes"
	}
	return ""
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
