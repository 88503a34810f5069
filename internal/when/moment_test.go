package when

import (
	"strings"
	"testing"
	"time"
)

func TestInstantReadsWhatPeopleGive(t *testing.T) {
	for _, c := range []struct{ id, text, zone, at, warnings string }{
		{"R:A6 in the gap", "2026-03-08T02:30", "America/New_York", "2026-03-08T07:30:00Z", "nonexistent_local_time "},
		{"R:A6 comes twice", "2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00Z", "ambiguous_local_time "},
		{"the last second before the gap", "2026-03-08T01:59:59", "America/New_York", "2026-03-08T06:59:59Z", ""},
		{"the first second after the gap", "2026-03-08T03:00", "America/New_York", "2026-03-08T07:00:00Z", ""},
		{"the first that comes twice", "2026-10-25T02:00:00", "Europe/Berlin", "2026-10-25T00:00:00Z", "ambiguous_local_time "},
		{"the first that comes once again", "2026-10-25T03:00:00", "Europe/Berlin", "2026-10-25T02:00:00Z", ""},
		{"a day that was left out", "2011-12-30T12:00", "Pacific/Apia", "2011-12-30T22:00:00Z", "nonexistent_local_time "},
		{"R:A7 no offset: the zone decides", "2026-05-06T10:00", "America/Chicago", "2026-05-06T15:00:00Z", ""},
		{"R:A7 Z: as written", "2026-05-06T10:00:00Z", "America/Chicago", "2026-05-06T10:00:00Z", ""},
		{"R:A7 an offset beats the zone", "2026-05-06T10:00:00+02:00", "America/Chicago", "2026-05-06T08:00:00Z", ""},
		{"R:A7 an offset needs no zone", "2026-05-06T10:00-05:30", "", "2026-05-06T15:30:00Z", ""},
		{"an offset settles what comes twice", "2026-10-25T02:30:00+01:00", "Europe/Berlin", "2026-10-25T01:30:00Z", ""},
		{"small letters and a space", " 2026-05-06 10:00:00z ", "", "2026-05-06T10:00:00Z", ""},
		{"below a millisecond is cut off", "2026-05-06T10:00:00.1239999", "UTC", "2026-05-06T10:00:00.123Z", ""},
		{"the first instant that is kept", "1970-01-01T00:00:00Z", "", "1970-01-01T00:00:00Z", ""},
		{"the last", "9999-12-31T23:59:59.999Z", "", "9999-12-31T23:59:59.999Z", ""},
	} {
		t.Run(c.id, func(t *testing.T) {
			m, ws, err := Instant(c.text, c.zone)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, Format(m.At), c.at)
			equal(t, m.At.Location(), time.UTC)
			equal(t, m.Zone, c.zone) // kept for display
			equal(t, codes(ws), c.warnings)
		})
	}
}

func TestInstantSaysHowItTookAClockChange(t *testing.T) {
	_, gap, _ := Instant("2026-03-08T02:30", "America/New_York")
	_, fold, _ := Instant("2026-10-25T02:30", "Europe/Berlin")
	equal(t, gap[0].Detail, "The clocks of America/New_York skip 02:30 on 8 March 2026; it is taken as 03:30 on 8 March.")
	equal(t, fold[0].Detail, "The clocks of Europe/Berlin show 02:30 twice on 25 October 2026; it is taken as the first (+02:00). Write the offset to choose.")
}

func TestInstantGuessesNothing(t *testing.T) {
	for _, c := range []struct{ text, zone, code string }{
		{"", "UTC", "invalid_time"},
		{"tomorrow", "UTC", "invalid_time"},
		{"2026-05-06", "UTC", "invalid_time"},
		{"10:00", "UTC", "invalid_time"},
		{"2026-02-30T10:00", "UTC", "invalid_time"},
		{"2026-02-30T10:00:00Z", "UTC", "invalid_time"},
		{"2026-05-06T24:00", "UTC", "invalid_time"},
		{"2026-05-06T23:59:60Z", "UTC", "invalid_time"},
		{"2026-05-06T9:00", "UTC", "invalid_time"},
		{"2026-05-06T10:00:00+24:00", "UTC", "invalid_time"},
		{"2026-05-06T10:00:00+0200", "UTC", "invalid_time"},
		{"2026-05-06T10:00.5", "UTC", "invalid_time"},
		{"2026-05-06T10:00:00,5Z", "UTC", "invalid_time"},
		{"２０２６-05-06T10:00", "UTC", "invalid_time"},
		{"1969-12-31T23:59:59Z", "", "invalid_time"},
		{"1970-01-01T00:00:00+00:01", "", "invalid_time"},
		{"1970-01-01T00:00", "Asia/Tokyo", "invalid_time"},
		{"9999-12-31T23:59:59-00:01", "", "invalid_time"},
		{"0001-01-01T00:00", "UTC", "invalid_time"},
		{"2026-05-06T10:00", "", "unknown_zone"},
		{"2026-05-06T10:00", "Local", "unknown_zone"},
		{"2026-05-06T10:00:00Z", "Europe/Nowhere", "unknown_zone"},
	} {
		t.Run(c.text+" "+c.zone, func(t *testing.T) {
			_, _, err := Instant(c.text, c.zone)
			refused(t, err, c.code)
		})
	}
}

// S:59 a day is a text, and in one form only.
func TestDateIsTextAndNotAnInstant(t *testing.T) {
	for _, day := range []string{"1970-01-01", "2026-03-29", "2028-02-29", "9999-12-31"} {
		if err := CheckDate(day); err != nil {
			t.Error(day, err)
		}
	}
	for _, bad := range []string{"", "2026-02-29", "2026-13-01", "2026-3-29", "2026-03-29T00:00:00Z", "29.03.2026", "1969-12-31", " 2026-03-29", "12026-03-29"} {
		refused(t, CheckDate(bad), "invalid_date")
	}
}

func TestFormatIsUTCWithAFractionOnlyWhenThereIsOne(t *testing.T) {
	at := time.Date(2026, 5, 6, 10, 0, 0, 0, time.FixedZone("", 2*3600))
	equal(t, Format(at), "2026-05-06T08:00:00Z")
	equal(t, Format(at.Add(20*time.Millisecond)), "2026-05-06T08:00:00.020Z")
	equal(t, Format(at.Add(999*time.Microsecond)), "2026-05-06T08:00:00Z")
	equal(t, Local(at, zone(t, "Asia/Kathmandu")), "2026-05-06T13:45:00+05:45")
	equal(t, Local(at, zone(t, "UTC")), "2026-05-06T08:00:00Z")
}

// R:A8 the answer to a schedule can show its zone and its next three local times.
func TestLocalTimesKeepTheirHour(t *testing.T) {
	loc, at := zone(t, "Pacific/Auckland"), instant(t, "2026-09-25T12:00:00Z")
	s := parse(t, Rule{Cron: "0 13 * * *", Zone: loc.String()})
	var shown []string
	for range 3 {
		o, _ := s.Next(at)
		shown, at = append(shown, Local(o.At, loc)), o.At
	}
	equal(t, strings.Join(shown, " "), "2026-09-26T13:00:00+12:00 2026-09-27T13:00:00+13:00 2026-09-28T13:00:00+13:00")
}
