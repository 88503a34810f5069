package sync

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"tandem/internal/sqlite"
)

// UID names a row for ever, whatever its key. Made here it begins with the time,
// so that the index on it grows at one end.
type UID [16]byte

// Scan implements sql.Scanner.
func (u *UID) Scan(v any) error {
	b, ok := v.([]byte)
	if !ok || len(b) != len(u) {
		return errors.New("not a uid of 16 bytes")
	}
	copy(u[:], b)
	return nil
}

// MarshalText writes the uid as 32 hexadecimal digits.
func (u UID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, u[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (u *UID) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(u) {
		return errNotUID
	}
	_, err := hex.Decode(u[:], b)
	return err
}

// read reads a uid as it stands in JSON.
func (u *UID) read(v []byte) error {
	if len(v) != 2+2*len(u) || v[0] != '"' {
		return errNotUID
	}
	if _, err := hex.Decode(u[:], v[1:len(v)-1]); err != nil {
		return errNotUID
	}
	return nil
}

var errNotUID = errors.New("not a uid of 32 hexadecimal digits")

func (u UID) String() string { return hex.EncodeToString(u[:]) }

// KeyedUID is the uid of what follows from its parts, the same on both nodes.
// Each part goes in with its length, so that no two lists of parts are one.
func KeyedUID(parts ...string) UID {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.BigEndian, uint32(len(p)))
		h.Write([]byte(p))
	}
	return UID(h.Sum(nil)[:16])
}

func newUID(tx *sqlite.Tx) UID {
	var u UID
	binary.BigEndian.PutUint64(u[:8], uint64(tx.Millis())<<16)
	copy(u[6:], tx.Random(10))
	return u
}

// Ref is a row's key as people see it: 0-42 is row 42 of those that node 0 made.
type Ref struct{ Origin, ID int64 }

func (r Ref) String() string {
	return strconv.FormatInt(r.Origin, 10) + "-" + strconv.FormatInt(r.ID, 10)
}

// ParseRef reads what String wrote, and nothing else: each row has one address.
func ParseRef(s string) (Ref, bool) {
	o, n, ok := strings.Cut(s, "-")
	id, err := strconv.ParseInt(n, 10, 64)
	if !ok || err != nil || id < 1 || (o != "0" && o != "1") {
		return Ref{}, false
	}
	r := Ref{Origin: int64(o[0] - '0'), ID: id}
	return r, r.String() == s
}

// Seen says which versions a version contains: for each writer (node/incarnation)
// the largest stamp of his that went into it, as a JSON object. It is read only
// where two versions meet, and otherwise passes through as text.
type Seen string

// MarshalJSON writes the object.
func (s Seen) MarshalJSON() ([]byte, error) { return []byte(s), nil }

// readSeen reads an object of stamps and refuses anything else.
func readSeen(v []byte) (Seen, error) {
	if s := Seen(v); s.single() { // as nearly all are, and as it is kept
		return s, nil
	}
	all, err := members(v)
	if err != nil {
		return "", err
	}
	for _, f := range all {
		if _, err := integer(f.Value); err != nil {
			return "", err
		}
	}
	entries := make(map[string]int64, len(all))
	for _, f := range all {
		entries[f.Name], _ = integer(f.Value)
	}
	return seenOf(entries), nil
}

// single reports whether s is one entry, as this node writes it: nearly all are, and
// need no more looking at.
func (s Seen) single() bool {
	if len(s) < len(`{"":0}`) || s[:2] != `{"` || s[len(s)-1] != '}' {
		return false
	}
	colon := strings.LastIndexByte(string(s), ':')
	if colon < 3 || s[colon-1] != '"' || s[colon+1] == '0' {
		return false
	}
	for _, c := range []byte(s[2 : colon-1]) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	_, err := integer([]byte(s[colon+1 : len(s)-1]))
	return err == nil
}

// sound reports whether s can be read.
func (s Seen) sound() bool {
	_, err := readSeen([]byte(s))
	return err == nil
}

func seenOf(entries map[string]int64) Seen {
	if len(entries) == 0 {
		return nothingSeen
	}
	b, _ := json.Marshal(entries) // sorted; strings and numbers marshal
	return Seen(b)
}

const nothingSeen Seen = "{}"

// by is what contains one version of one writer.
func by(writer string, at int64) Seen {
	return Seen(`{` + strconv.Quote(writer) + `:` + strconv.FormatInt(at, 10) + `}`)
}

// merged takes the larger entry of each writer from both. A text that cannot be
// read, from a file that was edited by hand, contains nothing.
func (s Seen) merged(other Seen) Seen {
	if s == other {
		return s
	}
	all := s.entries()
	for w, at := range other.entries() {
		all[w] = max(at, all[w])
	}
	return seenOf(all)
}

func (s Seen) entries() map[string]int64 {
	all := map[string]int64{}
	_ = json.Unmarshal([]byte(s), &all)
	return all
}

// Head is the part of a row that replication owns. A domain reads it with the
// row, and writes it back after AddTx or EditTx has filled it.
type Head struct {
	Ref
	UID       UID
	Owner     string // the account's id
	CreatedAt int64  // Unix ms, as are all times here
	UpdatedAt int64
	UpdatedBy string // the node that wrote this version
	DeletedAt *int64
	Seq       int64
	Seen      Seen
}

// HeadColumns are Head's columns, in the order of Dest and Args.
const HeadColumns = `origin, id, uid, owner, created_at, updated_at, updated_by, deleted_at, seq, seen`

const headColumns = 10 // so many

// Dest returns where to scan HeadColumns to.
func (h *Head) Dest() []any {
	return []any{&h.Origin, &h.ID, &h.UID, &h.Owner, &h.CreatedAt, &h.UpdatedAt, &h.UpdatedBy, &h.DeletedAt, &h.Seq, &h.Seen}
}

// Args returns HeadColumns as arguments.
func (h *Head) Args() []any { return h.AppendArgs(nil) }

// AppendArgs adds HeadColumns as arguments.
func (h *Head) AppendArgs(args []any) []any {
	return append(args, h.Origin, h.ID, h.UID[:], h.Owner, h.CreatedAt, h.UpdatedAt, h.UpdatedBy, h.DeletedAt, h.Seq, string(h.Seen))
}

// Place is where a row stands in the order of making, which lists follow.
type Place struct {
	CreatedAt int64
	Ref
}

// Place returns the row's.
func (h Head) Place() Place { return Place{h.CreatedAt, h.Ref} }

// AddTx returns the head of a new row of the owner, in a table of this log.
func (l *Log) AddTx(tx *sqlite.Tx, table, owner string) (Head, error) {
	return l.addTx(tx, table, owner, newUID(tx))
}

func (l *Log) addTx(tx *sqlite.Tx, table, owner string, uid UID) (Head, error) {
	id, err := l.nextID(table)
	if err != nil {
		return Head{}, err
	}
	return l.AddAtTx(tx, owner, Ref{l.origin, id}, uid), nil
}

// Asked names the request that makes a row: the same request made at both nodes
// makes one row. The zero value names none.
type Asked struct{ Route, Key string }

// askedFor is how long a row answers for the request that made it: as long as the
// keys of requests are kept.
const askedFor = 7 * 24 * time.Hour

func (a Asked) uid(table, owner string) UID { return KeyedUID("asked", table, owner, a.Route, a.Key) }

// MadeTx is the row that a request made before, here or at the other node; it may be
// deleted by now.
func (l *Log) MadeTx(tx *sqlite.Tx, table, owner string, by Asked) (Ref, bool, error) {
	if by == (Asked{}) {
		return Ref{}, false, nil
	}
	uid := by.uid(table, owner)
	row, found, err := sqlite.One(tx, scanKeyed, `SELECT origin, id, uid FROM `+table+` WHERE uid = ? AND owner = ? AND created_at > ?`,
		uid[:], owner, tx.Millis()-askedFor.Milliseconds())
	return row.Ref, found, err
}

// AddAskedTx is AddTx for a row that a request asks for and has not made.
func (l *Log) AddAskedTx(tx *sqlite.Tx, table, owner string, by Asked) (Head, error) {
	uid := by.uid(table, owner)
	_, used, err := sqlite.One(tx, sqlite.Value[int], `SELECT 1 FROM `+table+` WHERE uid = ?`, uid[:])
	if err != nil {
		return Head{}, err
	}
	if used || by == (Asked{}) { // used: long ago, for something else
		uid = newUID(tx)
	}
	return l.addTx(tx, table, owner, uid)
}

// AddAtTx is AddTx for a row whose key and uid follow from what it is about, so
// that two nodes that are apart and both make it make one row.
func (l *Log) AddAtTx(tx *sqlite.Tx, owner string, key Ref, uid UID) Head {
	now := clock(tx)
	return Head{
		Ref: key, UID: uid, Owner: owner, CreatedAt: now, UpdatedAt: now, UpdatedBy: l.node,
		Seq: l.seqTx(tx), Seen: by(l.writer, now),
	}
}

// EditTx gives h the stamp and the place of a new version. The stamp is above the
// one it replaces whatever the clock says: who edits what he saw, wins over it. One
// that is too late for any node to take is on no other: the edit begins below it.
func (l *Log) EditTx(tx *sqlite.Tx, h *Head) {
	if h.UpdatedAt > lastStamp {
		h.UpdatedAt = lastClock
	}
	h.UpdatedAt = min(max(clock(tx), h.UpdatedAt+1), lastStamp)
	if h.DeletedAt != nil {
		*h.DeletedAt = min(*h.DeletedAt, lastStamp)
	}
	h.UpdatedBy, h.Seq = l.node, l.seqTx(tx)
	h.Seen = h.Seen.merged(by(l.writer, h.UpdatedAt))
}
