package config

import (
	"fmt"
	"strings"

	"tandem/internal/fault"
)

// Fault is one thing that is wrong with the configuration.
type Fault struct {
	Where  string // "configs/local.yaml:12" or the variable; the file alone for what is missing
	Key    string // "http.listen"; empty where the whole file is meant
	Detail string // what is wrong and what to write; never a value, since that may be a secret
}

// String is the fault on one line.
func (f Fault) String() string {
	parts := []string{f.Detail}
	if f.Key != "" {
		parts = []string{f.Key + " " + f.Detail}
	}
	if f.Where != "" {
		parts = append([]string{f.Where}, parts...)
	}
	return strings.Join(parts, ": ")
}

// Faults is everything that is wrong, in the order found. It wraps a
// fault.Error of the code bad_config.
type Faults struct {
	List []Fault
}

// Error is one line for one fault, else a heading and one line for each.
func (f *Faults) Error() string {
	if len(f.List) == 1 {
		return "bad configuration: " + f.List[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "bad configuration, %d faults:", len(f.List))
	for _, one := range f.List {
		b.WriteString("\n  " + one.String())
	}
	return b.String()
}

// Unwrap makes the code known to whoever asks fault.From.
func (f *Faults) Unwrap() error {
	return fault.New(fault.Invalid, "bad_config", "The configuration of the node is not usable; its log names each fault.")
}
