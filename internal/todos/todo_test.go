package todos

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/when"
)

func TestATextIsTrimmedAndMeasured(t *testing.T) {
	n := newNode(t)
	equal(t, "content", n.add(New{Content: " \n a  b\t"}).Content, "a  b")
	equal(t, "notes", n.add(New{Content: "x", Notes: " \n a\n"}).Notes, " \n a\n")
	n.add(New{Content: " " + strings.Repeat("x", MaxContent) + " ", Notes: strings.Repeat("\x01", MaxNotes)})
	for _, c := range []struct {
		name, field string
		New
	}{
		{"empty", "content", New{}},
		{"space", "content", New{Content: "\u00a0\u2003\n"}},
		{"long", "content", New{Content: strings.Repeat("x", MaxContent+1)}},
		{"S:57", "content", New{Content: "\xff"}},
		{"S:56", "content", New{Content: "a\x00b"}},
		{"S:56 in notes", "notes", New{Content: "x", Notes: "\x00"}},
		{"S:57 in notes", "notes", New{Content: "x", Notes: "\xc3\x28"}},
		{"long notes", "notes", New{Content: "x", Notes: strings.Repeat("x", MaxNotes+1)}},
	} {
		_, _, err := n.tryAdd(anna, c.New)
		refused(t, c.name, err, "todo_invalid", c.field)
		_, err = n.tryEdit(anna, n.add(New{Content: "y"}).Ref, Change{Content: &c.Content, Notes: &c.Notes})
		refused(t, c.name+" in an edit", err, "todo_invalid", c.field)
	}
}

// What a node takes from people, its peer takes from it.
func TestTheLargestTodoCrosses(t *testing.T) {
	local, cloud := newNode(t), newPeer(t, "cloud", 1)
	for _, char := range []string{"x", `"`, "\n", "\x01", "\u2028", "<", "\\", "\ufffd"} {
		todo := local.add(New{Content: "." + strings.Repeat(char, (MaxContent-2)/len(char)) + ".", Notes: strings.Repeat(char, MaxNotes/len(char))})
		cloud.take(local)
		got := cloud.see(todo.Ref)
		equal(t, fmt.Sprintf("%q", char), got.Content == todo.Content && got.Notes == todo.Notes, true)
		local.must(local.remove(anna, todo.Ref))
	}
}

// R:A6 where a todo is due, in either direction of the change, and whose zone counts.
func TestWhenATodoIsDue(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct{ given, zone, at, shown, warning string }{
		{"2026-03-29T02:30", "", "2026-03-29T01:30:00Z", "Europe/Berlin", "nonexistent_local_time"},
		{"2026-10-25T02:30", "", "2026-10-25T00:30:00Z", "Europe/Berlin", "ambiguous_local_time"},
		{"2026-10-25T02:30+01:00", "", "2026-10-25T01:30:00Z", "Europe/Berlin", ""},
		{"2026-03-08T02:30", "America/New_York", "2026-03-08T07:30:00Z", "America/New_York", "nonexistent_local_time"},
		{"2026-05-06T10:00", "", "2026-05-06T08:00:00Z", "Europe/Berlin", ""},
		{"2026-05-06T10:00:00.0009Z", "Asia/Tokyo", "2026-05-06T10:00:00Z", "Asia/Tokyo", ""},
	} {
		todo, warnings, err := n.tryAdd(anna, New{Content: "x", DueAt: c.given, Zone: c.zone})
		n.must(err)
		equal(t, c.given, when.Format(*todo.DueAt), c.at)
		equal(t, c.given, *todo.Zone, c.shown)
		code := ""
		if len(warnings) > 0 {
			code = warnings[0].Code
		}
		equal(t, c.given, code, c.warning)
		equal(t, c.given+" in the file", when.Format(*n.see(todo.Ref).DueAt), c.at)
	}
}

// The zone that a todo has is the one in which it is edited.
func TestALocalTimeIsReadInTheTodosOwnZone(t *testing.T) {
	n := newNode(t)
	todo := n.add(New{Content: "x", DueAt: "2026-05-06T10:00", Zone: "Asia/Tokyo"})
	later := "2026-05-06T11:00"
	equal(t, "due", when.Format(*n.edit(todo, Change{DueAt: &later}).DueAt), "2026-05-06T02:00:00Z")
	none := ""
	todo = n.edit(todo, Change{DueAt: &later, Zone: &none})
	equal(t, "due", when.Format(*todo.DueAt), "2026-05-06T09:00:00Z")
	equal(t, "zone", *todo.Zone, "Europe/Berlin")
	// One that only the peer knows is no help.
	n.must(n.write(func(tx *sqlite.Tx) error { _, err := tx.Exec(`UPDATE todos SET tz = 'Mars/Olympus'`); return err }))
	equal(t, "due", when.Format(*n.edit(todo, Change{DueAt: new("2026-05-06T12:00")}).DueAt), "2026-05-06T10:00:00Z")
}

// R:A10: a time is read in a zone that somebody named, or not at all.
func TestNoZoneIsEverGuessed(t *testing.T) {
	n := newNode(t)
	for name, home := range map[string]string{"nobody said": "", "junk": "Mars/Olympus", "the machine's": "Local"} {
		n.homes[ben] = home
		_, _, err := n.tryAdd(ben, New{Content: "x", DueAt: "2026-05-06T10:00"})
		refused(t, name, err, "unknown_zone", "due_at")
		todo, _, err := n.tryAdd(ben, New{Content: "x", DueAt: "2026-05-06T10:00Z"})
		n.must(err)
		equal(t, name, todo.Zone == nil, true)
		_, _, err = n.tryAdd(ben, New{Content: "x", DueOn: "2026-05-06"})
		n.must(err)
	}
	_, _, err := n.tryAdd(anna, New{Content: "x", Zone: "Europe/Nowhere"})
	refused(t, "a zone without a time", err, "unknown_zone", "tz")
}

// A todo is due at an instant, or on a day, and what is given replaces what was.
func TestAnInstantOrADay(t *testing.T) {
	n := newNode(t)
	none, at, on := "", "2026-05-06T10:00Z", "2026-05-07"
	_, _, err := n.tryAdd(anna, New{Content: "x", DueAt: at, DueOn: on})
	refused(t, "both", err, "todo_invalid", "due_on")
	due := func(t Todo) string {
		if t.DueAt != nil && t.DueOn != nil {
			return "both"
		}
		if t.DueAt != nil {
			return "at"
		}
		if t.DueOn != nil {
			return "on"
		}
		return "never"
	}
	for _, c := range []struct {
		from New
		Change
		want string
	}{
		{New{}, Change{}, "never"},
		{New{}, Change{DueAt: &at}, "at"},
		{New{}, Change{DueOn: &on}, "on"},
		{New{DueAt: at}, Change{DueOn: &on}, "on"},
		{New{DueOn: on}, Change{DueAt: &at}, "at"},
		{New{DueAt: at}, Change{DueOn: &none}, "at"},
		{New{DueOn: on}, Change{DueAt: &none}, "on"},
		{New{DueAt: at}, Change{DueAt: &none}, "never"},
		{New{DueOn: on}, Change{DueOn: &none}, "never"},
		{New{DueAt: at}, Change{DueAt: &none, DueOn: &on}, "on"},
		{New{DueOn: on}, Change{DueAt: &at, DueOn: &none}, "at"},
		{New{DueAt: at}, Change{DueAt: &none, DueOn: &none}, "never"},
		{New{DueAt: at}, Change{Zone: &none}, "at"},
	} {
		c.from.Content = "x"
		todo := n.add(c.from)
		equal(t, fmt.Sprintf("%s and %+v", due(todo), c.Change), due(n.edit(todo, c.Change)), c.want)
	}
	for day, good := range map[string]bool{"2026-02-28": true, "2026-02-29": false, "2028-02-29": true, "2026-2-8": false, "9999-12-31": true, "": true} {
		_, _, err := n.tryAdd(anna, New{Content: "x", DueOn: day})
		if !good {
			refused(t, day, err, "invalid_date", "due_on")
		} else if err != nil {
			t.Errorf("%s: %v", day, err)
		}
	}
}

// S:59: nodes in zones half a day apart save one day five times.
func TestADayIsTheSameOnBothNodes(t *testing.T) {
	local, cloud := newNode(t), newPeer(t, "cloud", 1)
	local.homes[anna], cloud.homes[anna] = "America/Los_Angeles", "Pacific/Apia"
	todo := local.add(New{Content: "x", DueOn: "2026-03-29"})
	for i := range 5 {
		at, other := local, cloud
		if i%2 == 0 {
			at, other = cloud, local
		}
		at.take(other)
		text, day := fmt.Sprint(i), *at.see(todo.Ref).DueOn
		at.edit(todo, Change{Content: &text, DueOn: &day})
	}
	local.take(cloud)
	equal(t, "day", *local.see(todo.Ref).DueOn, "2026-03-29")
	equal(t, "instants", local.count(`SELECT count(due_at) FROM todos`), 0)
}

// A change that says what is there already makes no version.
func TestTheSameAgainIsNoNewVersion(t *testing.T) {
	n := newNode(t)
	yes, at, zone := true, "2026-05-06T10:00", "Europe/Berlin"
	todo := n.add(New{Content: "x", Notes: "n", Done: true, DueAt: at})
	n.clock = n.clock.Add(time.Hour)
	text, notes, utc := " x", "n", "2026-05-06T08:00:00Z"
	for _, c := range []Change{{}, {Content: &text}, {Notes: &notes}, {Done: &yes}, {DueAt: &at}, {DueAt: &utc}, {Zone: &zone}} {
		same := n.edit(todo, c)
		equal(t, fmt.Sprintf("%+v", c), same.UpdatedAt, todo.UpdatedAt)
		equal(t, "seq", n.see(todo.Ref).Seq, todo.Seq)
	}
	other := n.edit(todo, Change{Zone: new("Asia/Tokyo")})
	if other.UpdatedAt <= todo.UpdatedAt || other.Seq <= todo.Seq {
		t.Error("another zone is no new version")
	}
	// S:15: two versions of one moment have two stamps.
	text = "y"
	again := n.edit(other, Change{Content: &text})
	equal(t, "stamp", again.UpdatedAt, other.UpdatedAt+1)
}

func TestATodoBelongsToItsOwner(t *testing.T) {
	n := newNode(t)
	todo := n.add(New{Content: "x"})
	text := "y"
	_, err := n.tryEdit(ben, todo.Ref, Change{Content: &text})
	for what, err := range map[string]error{"edit": err, "delete": n.remove(ben, todo.Ref)} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	equal(t, "content", n.see(todo.Ref).Content, "x")
}

// E07 and S:31: deleted stays deleted, on both nodes; its number is not given again.
func TestADeletedTodo(t *testing.T) {
	local, cloud := newNode(t), newPeer(t, "cloud", 1)
	todo := local.add(New{Content: "x"})
	cloud.take(local)
	local.must(local.remove(anna, todo.Ref))
	version := local.count(`SELECT seq FROM todos`)
	local.must(local.remove(anna, todo.Ref))
	equal(t, "seq after the second time", local.count(`SELECT seq FROM todos`), version)
	cloud.take(local)
	for _, n := range []*node{local, cloud} {
		if _, err := n.Get(t.Context(), anna, todo.Ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", n.name, err)
		}
		text := "y"
		if _, err := n.tryEdit(anna, todo.Ref, Change{Content: &text}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", n.name, err)
		}
	}
	equal(t, "the next one", local.add(New{Content: "y"}).Ref.String(), "0-2")
	// E05: both nodes may make the same number.
	equal(t, "the other's", cloud.add(New{Content: "z"}).Ref.String(), "1-1")
}
