package scheduler

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"tandem/internal/when"
)

// scheduleHash names the schedule as it is stored. The text of the message is no
// part of it, so an edit of the text rings nothing again; nor is the owner's own
// zone, which the nodes may learn of at different times: an occurrence is named by
// what the wall shows, and one that rang before its owner moved has rung.
func (m Message) scheduleHash() string {
	at := ""
	if m.TriggerAt != nil {
		at = strconv.FormatInt(m.TriggerAt.UnixMilli(), 10)
	}
	return digest(at, text(m.CronExpr), text(m.RRule), text(m.Zone), m.zoneMode, strconv.FormatBool(m.fromCompletion))
}

// fireID names one occurrence of one schedule of one message: the same on both
// nodes, whichever of them rings.
func (m Message) fireID(o when.Occurrence) string {
	return digest(m.UID.String(), m.scheduleHash(), o.Key)
}

// digest is the SHA-256 of the parts in hexadecimal. Each part goes in behind its
// length, so that no two lists of parts are one.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.BigEndian, uint32(len(p)))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// text is the string that p points to, or nothing.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
