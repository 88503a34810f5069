package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tandem/internal/when"
)

var errNeverRings = errors.New("this schedule never rings")

type nextAnswer struct {
	Fires    []nextFire     `json:"fires"`
	Warnings []when.Warning `json:"warnings"`
}

type nextFire struct {
	At    string `json:"at"`
	Local string `json:"local"`
}

func nextCommand(o *options) *cobra.Command {
	var rule when.Rule
	var from string
	var n int
	var asJSON bool
	c := &cobra.Command{
		Use:   "next (--cron EXPR | --rrule R) --tz ZONE",
		Short: "Say when a schedule will ring",
		Long:  "Say when a schedule will ring, by the rules the node itself uses. Needs no configuration.",
		Example: `  tandem next --cron "30 2 * * *" --tz America/New_York --from 2026-03-07T12:00
  tandem next --rrule "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0" --tz Asia/Shanghai -n 12 --json`,
		RunE: func(*cobra.Command, []string) error {
			start := time.Now()
			if from != "" {
				m, _, err := when.Instant(from, rule.Zone)
				if err != nil {
					return err
				}
				start = m.At
			}
			a, err := next(rule, start, n)
			if err != nil {
				return err
			}
			return o.showNext(a, asJSON)
		},
	}
	f := c.Flags()
	f.StringVar(&rule.Cron, "cron", "", "a cron `line` of five fields")
	f.StringVar(&rule.RRule, "rrule", "", "a recurrence `rule` of RFC 5545")
	f.StringVar(&rule.Zone, "tz", "", "an IANA `zone`, such as Europe/Berlin")
	f.StringVar(&from, "from", "", "after this `time` instead of now: RFC 3339, or local time in --tz")
	f.IntVarP(&n, "count", "n", 3, "how many, 1 to 1000")
	f.BoolVar(&asJSON, "json", false, "as JSON")
	c.MarkFlagsOneRequired("cron", "rrule")
	c.MarkFlagsMutuallyExclusive("cron", "rrule")
	_ = c.MarkFlagRequired("tz")
	return c
}

func next(rule when.Rule, after time.Time, n int) (nextAnswer, error) {
	if n < 1 || n > 1000 {
		return nextAnswer{}, fmt.Errorf("%w: -n takes 1 to 1000", errUsage)
	}
	if rule.RRule != "" {
		anchored, err := when.WithStart(rule.RRule, after, rule.Zone)
		if err != nil {
			return nextAnswer{}, err
		}
		rule.RRule = anchored
	}
	s, err := when.Parse(rule)
	if err != nil {
		return nextAnswer{}, err
	}
	zone, err := when.Zone(rule.Zone)
	if err != nil {
		return nextAnswer{}, err
	}
	a := nextAnswer{Fires: []nextFire{}, Warnings: s.Warnings()}
	for len(a.Fires) < n {
		o, ok := s.Next(after)
		if !ok {
			break
		}
		a.Fires = append(a.Fires, nextFire{when.Format(o.At), when.Local(o.At, zone)})
		after = o.At
	}
	return a, nil
}

func (o *options) showNext(a nextAnswer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(o.out)
		e.SetIndent("", "  ")
		if err := e.Encode(a); err != nil {
			return err
		}
	} else {
		for _, f := range a.Fires {
			fmt.Fprintf(o.out, "%s  %s\n", f.At, f.Local)
		}
		for _, w := range a.Warnings {
			fmt.Fprintf(o.out, "Note: %s (%s)\n", w.Detail, w.Code)
		}
	}
	if len(a.Fires) == 0 {
		return errNeverRings
	}
	return nil
}
