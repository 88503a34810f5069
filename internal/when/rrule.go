package when

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"tandem/internal/fault"
)

// The most that COUNT and INTERVAL may be. More is refused rather than walked
// through.
const (
	maxCount    = 10_000
	maxInterval = 1_000_000
)

// ruleText is an rrule taken apart, before any of it is understood.
type ruleText struct {
	start     string   // the value of DTSTART, or empty
	startZone string   // the TZID beside it, or empty
	parts     []string // KEY=VALUE, DTSTART left out
}

// zeroth finds a BYDAY such as 0MO, which the parser takes for MO.
var zeroth = regexp.MustCompile(`(^|,)[+-]?0+[A-Z]`)

func rruleFault(hint string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, "invalid_rrule", hint, args...)
}

// WithStart returns rule with a DTSTART line, which fixes the time of day and
// from where intervals and COUNT are counted. One that has such a line comes back
// as it is. The line holds the wall time in zone and no TZID, so that the rule
// keeps its hour when the row moves to another zone. A start within a minute is
// moved to the next whole one.
func WithStart(rule string, start time.Time, zone string) (string, error) {
	loc, err := Zone(zone)
	if err != nil {
		return "", err
	}
	text, err := splitRule(rule)
	if err != nil || text.start != "" {
		return rule, err
	}
	if whole := start.Truncate(time.Minute); whole.Before(start) {
		start = whole.Add(time.Minute)
	}
	return "DTSTART:" + start.In(loc).Format("20060102T150405") + "\nRRULE:" + strings.Join(text.parts, ";"), nil
}

// parseRRule reads a rule in loc. Without DTSTART it counts from midnight of
// 1 January 1970, so that both nodes mean the same.
func parseRRule(text string, loc *time.Location) (Schedule, error) {
	rule, err := splitRule(text)
	if err != nil {
		return Schedule{}, err
	}
	if rule.startZone != "" && rule.startZone != loc.String() {
		return Schedule{}, fault.New(fault.Invalid, "schedule_zone_prefix", "The TZID beside DTSTART is another zone than the field for the zone. Leave it out, or make them the same.")
	}
	options, err := rrule.StrToROption(strings.Join(rule.parts, ";"))
	if err != nil {
		return Schedule{}, rruleFault("Write an RFC 5545 rule such as FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=9;BYMINUTE=0.").Because(err)
	}
	if err := allowed(options, rule.parts); err != nil {
		return Schedule{}, err
	}
	var start wall
	if rule.start != "" {
		if start, _, err = readStamp("DTSTART", rule.start, loc); err != nil {
			return Schedule{}, err
		}
	}
	r, err := newRecurrence(options, start)
	if err != nil {
		return Schedule{}, err
	}
	s := Schedule{
		loc:   loc,
		walls: r,
		// The same line that cron draws: an hour or a minute left open.
		elapsed:  options.Freq >= rrule.HOURLY && r.hours == 0 || options.Freq >= rrule.MINUTELY && r.minutes == 0,
		until:    math.MaxInt64,
		warnings: skippedMonths(r.monthDays, r.months),
	}
	if err := s.end(r, options, rule.parts); err != nil {
		return Schedule{}, err
	}
	return s, nil
}

// end sets where the rule stops, by UNTIL or by COUNT.
func (s *Schedule) end(r *recurrence, options *rrule.ROption, parts []string) error {
	for _, part := range parts {
		key, value, _ := strings.Cut(part, "=")
		switch {
		case key == "COUNT":
			r.closeAfter(options.Count)
		case key == "UNTIL" && strings.HasSuffix(value, "Z"):
			w, t, err := readStamp("UNTIL", value, s.loc)
			if err != nil {
				return err
			}
			s.until, r.last = t, w+widest
		case key == "UNTIL":
			w, _, err := readStamp("UNTIL", value, s.loc)
			if err != nil {
				return err
			}
			if len(value) == len("20060102") { // the day named is the last that rings
				w += day - 1
			}
			r.last = w
		}
	}
	return nil
}

// splitRule takes the lines of a rule apart. Lines may also be parted by the two
// characters \n, as a shell leaves them.
func splitRule(text string) (ruleText, error) {
	var rule ruleText
	for line := range strings.Lines(strings.ReplaceAll(text, `\n`, "\n")) {
		line = strings.TrimSpace(line)
		name := strings.ToUpper(line[:max(0, strings.IndexAny(line, ":;="))])
		switch {
		case line == "":
		case name == "DTSTART" && line[len(name)] != '=':
			if rule.start != "" {
				return rule, rruleFault("Write one DTSTART line.")
			}
			if err := rule.readStart(line[len(name):]); err != nil {
				return rule, err
			}
		case name == "RDATE" || name == "EXDATE" || name == "EXRULE":
			return rule, rruleFault("RDATE, EXDATE and EXRULE are not known. Make a reminder of its own for an extra date.")
		case len(rule.parts) > 0:
			return rule, rruleFault("Write one RRULE line, after an optional DTSTART line.")
		default:
			if err := unzoned(line); err != nil {
				return rule, err
			}
			line = strings.ToUpper(line)
			rule.parts = strings.Split(strings.TrimPrefix(line, "RRULE:"), ";")
		}
	}
	return rule, rule.takeStart()
}

// readStart reads what follows the name of a DTSTART line.
func (r *ruleText) readStart(line string) error {
	params, value, ok := strings.Cut(line, ":")
	if !ok || value == "" {
		return rruleFault("Write DTSTART as DTSTART:20260131T090000.")
	}
	for param := range strings.SplitSeq(strings.TrimPrefix(params, ";"), ";") {
		key, of, _ := strings.Cut(param, "=")
		switch key = strings.ToUpper(key); {
		case param == "":
		case key == "TZID" && of != "":
			r.startZone = of
		case key == "VALUE":
		default:
			return rruleFault("Beside DTSTART only TZID and VALUE are known.")
		}
	}
	r.start = strings.ToUpper(value)
	return nil
}

// takeStart moves a DTSTART that stands among the parts out of them, and refuses
// a part that stands there twice.
func (r *ruleText) takeStart() error {
	seen := map[string]bool{}
	var parts []string
	for _, part := range r.parts {
		key, value, _ := strings.Cut(part, "=")
		if seen[key] {
			return rruleFault("Write each part of the rule once.")
		}
		seen[key] = true
		if key != "DTSTART" {
			parts = append(parts, part)
			continue
		}
		if r.start != "" || value == "" {
			return rruleFault("Write DTSTART once.")
		}
		r.start = value
	}
	if len(parts) == 0 {
		return rruleFault("Write a rule such as FREQ=DAILY;BYHOUR=9;BYMINUTE=0.")
	}
	r.parts = parts
	return nil
}

// readStamp reads a date or a time of the form 20260131T093000, in loc unless it
// ends in Z.
func readStamp(name, value string, loc *time.Location) (wall, int64, error) {
	t, err := time.Parse("20060102T150405"[:min(len(value), 15)], strings.TrimSuffix(value, "Z"))
	if short := len(value) == len("20060102"); err != nil || !short && len(strings.TrimSuffix(value, "Z")) != 15 || !within(t) {
		return 0, 0, rruleFault("Write %s as 20260131T093000: a date, T, a time, and a Z only when it is UTC.", name)
	}
	if strings.HasSuffix(value, "Z") {
		return wallOf(t.In(loc)), t.Unix(), nil
	}
	return wall(t.Unix()), 0, nil
}

// allowed refuses what RFC 5545 forbids or what no reminder needs, instead of
// reading into it something that was not meant.
func allowed(o *rrule.ROption, parts []string) error {
	has := map[string]bool{}
	for _, part := range parts {
		key, value, _ := strings.Cut(part, "=")
		has[key] = true
		if key == "BYDAY" && zeroth.MatchString(value) {
			return rruleFault("A numbered weekday counts from 1, or from -1 at the end.")
		}
		if n, err := strconv.Atoi(value); key == "INTERVAL" && (err != nil || n < 1 || n > maxInterval) {
			return rruleFault("INTERVAL is a number from 1 to %d.", maxInterval)
		} else if key == "COUNT" && (err != nil || n < 1 || n > maxCount) {
			return rruleFault("COUNT is a number from 1 to %d; a longer rule ends with UNTIL.", maxCount)
		}
	}
	numbered := slices.ContainsFunc(o.Byweekday, func(d rrule.Weekday) bool { return d.N() != 0 })
	switch {
	case has["BYEASTER"]:
		return rruleFault("BYEASTER is not known; make a reminder for the date.")
	case has["COUNT"] && has["UNTIL"]:
		return rruleFault("End the rule with COUNT or with UNTIL, not with both.")
	case o.Wkst.N() != 0:
		return rruleFault("WKST is a weekday without a number.")
	case numbered && (o.Freq != rrule.MONTHLY && o.Freq != rrule.YEARLY || has["BYWEEKNO"]):
		return rruleFault("A numbered weekday such as 2MO goes with FREQ=MONTHLY or FREQ=YEARLY, and not with BYWEEKNO.")
	case has["BYWEEKNO"] && o.Freq != rrule.YEARLY:
		return rruleFault("BYWEEKNO goes with FREQ=YEARLY only.")
	case has["BYMONTHDAY"] && o.Freq == rrule.WEEKLY:
		return rruleFault("BYMONTHDAY does not go with FREQ=WEEKLY; use FREQ=MONTHLY.")
	case has["BYYEARDAY"] && (o.Freq == rrule.DAILY || o.Freq == rrule.WEEKLY || o.Freq == rrule.MONTHLY):
		return rruleFault("BYYEARDAY goes with FREQ=YEARLY.")
	case has["BYSETPOS"] && !(has["BYDAY"] || has["BYMONTHDAY"] || has["BYYEARDAY"] || has["BYWEEKNO"] || has["BYMONTH"] || has["BYHOUR"] || has["BYMINUTE"] || has["BYSECOND"]):
		return rruleFault("BYSETPOS chooses among the days or times of another BY part; add one.")
	}
	return nil
}
