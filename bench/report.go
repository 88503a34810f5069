package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// reported is a line with its figures, as -json writes it. A figure that was
// not taken, or that failed, is null.
type reported struct {
	Work   work     `json:"work"`
	Unit   unit     `json:"unit"`
	Tandem *float64 `json:"tandem"`
	Rival  *float64 `json:"rival"`
	Beside string   `json:"beside"` // who the rival is
	Ratio  *float64 `json:"ratio"`  // Tandem's figure divided by the rival's
	Wanted string   `json:"wanted,omitempty"`
	Met    *bool    `json:"met,omitempty"`
	Failed []string `json:"failed,omitempty"` // who, and why
}

// The names of the contenders in the report.
const (
	ours           = "Tandem"
	pocketbaseName = "PocketBase"
	pouchName      = "PouchDB"
)

// report fills the lines of the works that were measured.
func report(f *figures, measured []part) []reported {
	var out []reported
	for _, s := range sections {
		for _, l := range s.lines {
			if slices.ContainsFunc(measured, func(p part) bool { return slices.Contains(p.works, l.work) }) {
				out = append(out, f.report(l, s.rival))
			}
		}
	}
	return out
}

func (f *figures) report(l line, rival string) reported {
	r := reported{Work: l.work, Unit: l.unit, Beside: rival, Wanted: l.want.wanted}
	for who, into := range map[string]**float64{ours: &r.Tandem, rival: &r.Rival} {
		if m, ok := f.middle(who, l.work, l.unit); ok {
			*into = &m
		}
	}
	for _, who := range []string{ours, rival} {
		if err := f.failures[key{who: who, work: l.work}]; err != nil {
			r.Failed = append(r.Failed, who+": "+err.Error())
		}
	}
	if r.Tandem == nil {
		return r
	}
	if r.Rival != nil {
		ratio := *r.Tandem / *r.Rival
		r.Ratio = &ratio
	}
	if l.want.met != nil && (r.Rival != nil || l.want.alone) {
		var other float64
		if r.Rival != nil {
			other = *r.Rival
		}
		met := l.want.met(*r.Tandem, other)
		r.Met = &met
	}
	return r
}

// writeTable is the report for people: a table for each rival.
func writeTable(w io.Writer, m machine, settings []string, rows []reported) error {
	fmt.Fprintf(w, "%s\n%s\n", m, strings.Join(settings, "\n"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	beside := ""
	for _, r := range rows {
		if r.Beside != beside {
			beside = r.Beside
			fmt.Fprintf(t, "\nwork\tunit\t%s\t%s\tratio\twanted\tmet\n", ours, beside)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Work, r.Unit,
			r.figure(ours, r.Tandem), r.figure(r.Beside, r.Rival), ratio(r), r.Wanted, yes(r.Met))
	}
	return t.Flush()
}

// writeJSON is the same report for programs.
func writeJSON(w io.Writer, m machine, settings []string, rows []reported) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Machine  machine    `json:"machine"`
		Settings []string   `json:"settings"`
		Lines    []reported `json:"lines"`
	}{m, settings, rows})
}

func (r reported) figure(who string, v *float64) string {
	if v == nil {
		if slices.ContainsFunc(r.Failed, func(s string) bool { return strings.HasPrefix(s, who+": ") }) {
			return "failed"
		}
		return "-"
	}
	if *v >= 100 {
		return fmt.Sprintf("%.0f", *v)
	}
	return fmt.Sprintf("%.1f", *v)
}

// ratio reads as "5.3x" above one and as "1/8.2" below, as the wants do.
func ratio(r reported) string {
	switch {
	case r.Ratio == nil:
		return "-"
	case *r.Ratio >= 1:
		return fmt.Sprintf("%.1fx", *r.Ratio)
	default:
		return fmt.Sprintf("1/%.1f", 1 / *r.Ratio)
	}
}

func yes(met *bool) string {
	switch {
	case met == nil:
		return ""
	case *met:
		return "yes"
	default:
		return "no"
	}
}
