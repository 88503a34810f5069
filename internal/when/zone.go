package when

import (
	"regexp"
	"sync"
	"time"
	_ "time/tzdata" // a machine without zone files must not fall back to UTC

	"tandem/internal/fault"
)

// zoneName is the shape of every IANA name. It leaves out the other files that
// lie beside the zones on some machines: localtime, posixrules, right/….
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)

// zones holds each zone once found, by name. Only real names get in, so it stays
// small.
var zones sync.Map

// ErrUnknownZone is returned for what names no zone, an empty name included.
var ErrUnknownZone = fault.New(fault.Invalid, "unknown_zone", "Give an IANA zone such as Europe/Berlin or America/New_York.")

// Zone returns the zone of an IANA name such as Europe/Berlin, or ErrUnknownZone.
// It never means the zone of the machine, and never guesses UTC.
func Zone(name string) (*time.Location, error) {
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if name == "Local" || name == "Factory" || !zoneName.MatchString(name) {
		return nil, ErrUnknownZone
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, ErrUnknownZone.Because(err)
	}
	zones.Store(name, loc)
	return loc, nil
}
