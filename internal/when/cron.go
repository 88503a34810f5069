package when

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"tandem/internal/fault"
)

// named are the names that stand for a line. @every is not among them: it has no
// fixed start, so a restart would move it.
var named = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// cronItem is one item of a field. The parser behind it would also take "+5",
// "*-3" and an empty item.
var cronItem = regexp.MustCompile(`^([*?]|(?:\d{1,2}|[A-Za-z]{3})(?:-(?:\d{1,2}|[A-Za-z]{3}))?)(/\d{1,2})?$`)

// cronFields reads five fields and nothing else: no seconds, no names, no zone.
var cronFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

func parseCron(text string, loc *time.Location) (Schedule, error) {
	text = strings.TrimSpace(text)
	if err := unzoned(text); err != nil {
		return Schedule{}, err
	}
	if line, ok := named[strings.ToLower(text)]; ok {
		text = line
	}
	fields := strings.Fields(text)
	if err := readable(text, fields); err != nil {
		return Schedule{}, err
	}
	fields[4] = sundays(fields[4])
	parsed, err := cronFields.Parse(strings.Join(fields, " "))
	if err != nil {
		return Schedule{}, cronFault("Write five fields in range: minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-7.").Because(err)
	}
	spec := parsed.(*cron.SpecSchedule)
	c := crontab{
		minutes: spec.Minute & (1<<60 - 1),
		hours:   spec.Hour & (1<<24 - 1),
		days:    spec.Dom & (1<<32 - 1),
		months:  spec.Month & (1<<13 - 1),
		week:    spec.Dow & (1<<7 - 1),
		either:  spec.Dom>>63 == 0 && spec.Dow>>63 == 0,
	}
	return Schedule{
		loc:      loc,
		walls:    c,
		elapsed:  strings.ContainsAny(fields[0]+fields[1], "*?/"),
		until:    math.MaxInt64,
		warnings: cronWarnings(c, fields[2]),
	}, nil
}

func cronFault(hint string) *fault.Error { return fault.New(fault.Invalid, "invalid_cron", "%s", hint) }

// readable refuses what is no five-field line, with a hint where another dialect
// is likely to be meant.
func readable(text string, fields []string) error {
	if strings.HasPrefix(text, "@every") {
		return cronFault("@every has no fixed start. Write steps such as */15 * * * *, or an rrule with INTERVAL.")
	}
	if strings.HasPrefix(text, "@") {
		return cronFault("Of the names only @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually are known.")
	}
	if len(fields) == 6 || len(fields) == 7 {
		return cronFault("Write five fields: minute, hour, day, month, weekday. There is no field for seconds or years.")
	}
	if len(fields) != 5 {
		return cronFault("Write five fields: minute, hour, day, month, weekday; for example 30 8 * * 1-5.")
	}
	for i, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			if !cronItem.MatchString(item) {
				return cronFault(dialect(i, item))
			}
		}
	}
	return nil
}

// dialect says what to write instead of an item that other crons take.
func dialect(field int, item string) string {
	switch {
	case strings.Contains(item, "#"):
		return "The n-th weekday of a month is not cron's. Use the rrule FREQ=MONTHLY;BYDAY=2MO, which is the second Monday."
	case field == 2 && strings.ContainsAny(item, "Ll"):
		return "L is not known. For the last day of the month use the rrule FREQ=MONTHLY;BYMONTHDAY=-1."
	case field == 4 && strings.HasSuffix(strings.ToUpper(item), "L"):
		return "L is not known. For the last Friday of the month use the rrule FREQ=MONTHLY;BYDAY=-1FR."
	case strings.ContainsAny(item, "Ww"):
		return "W is not known. For the weekday nearest to a day, name the weekdays in an rrule with BYSETPOS."
	}
	return "In each field write *, a number, a range such as 1-5, a list such as 1,15, or a step such as */10."
}

// sundays rewrites a weekday field so that 7, and Sun at the end of a range, are
// the Sunday that the parser knows as 0. What makes no sense stays as it is, for
// the parser to refuse.
func sundays(field string) string {
	items := strings.Split(field, ",")
	for i, item := range items {
		span, step, stepped := strings.Cut(item, "/")
		first, last, ranged := strings.Cut(span, "-")
		if !ranged {
			if weekday(first) == 7 {
				items[i] = strings.Replace(item, "7", "0", 1)
			}
			continue
		}
		from, to, by := weekday(first), weekday(last), 1
		if stepped {
			by, _ = strconv.Atoi(step)
		}
		if from == to {
			to %= 7
		}
		from %= 7
		if to == 0 && from > 0 {
			to = 7
		}
		if from < 0 || to > 7 || from > to || by < 1 {
			continue
		}
		var days []string
		for d := from; d <= to; d += by {
			days = append(days, strconv.Itoa(d%7))
		}
		items[i] = strings.Join(days, ",")
	}
	return strings.Join(items, ",")
}

// weekday returns the number of a weekday, 0 to 7, or a number out of that range.
func weekday(text string) int {
	if i := strings.Index("sunmontuewedthufrisat", strings.ToLower(text)); len(text) == 3 && i >= 0 && i%3 == 0 {
		return i / 3
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return -1
}
