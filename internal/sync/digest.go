package sync

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// ErrNoTable is returned for a table that this log does not have.
var ErrNoTable = fault.New(fault.NotFound, "no_such_table", "This node replicates no such table.")

// Sum is what some entries come to, whatever their order. Where two sums are the
// same, so are the entries, but for one chance in 2^64.
type Sum struct {
	Count int64  `json:"count"`
	Hash  uint64 `json:"hash,string"` // the first 64 bits of each entry's SHA-256, added modulo 2^64
}

func (s Sum) plus(o Sum) Sum { return Sum{s.Count + o.Count, s.Hash + o.Hash} }

// Digest is what a log comes to at one moment, table by table.
type Digest struct {
	End    int64          `json:"end"` // the last place in the log
	Tables map[string]Sum `json:"tables"`
}

// One read takes in so much at most: it holds up the folding of the write-ahead
// log, and its time is limited.
const (
	readRows    = 1000
	readBytes   = 4 << 20
	readBuckets = 8
)

// Digest adds up the whole log. Rows that cannot be sent are left out, as are facts
// from before cutoff, a whole UTC day in Unix ms, which either node may have
// dropped. It takes many reads, and what is written between them is in it too.
func (l *Log) Digest(ctx context.Context, cutoff int64) (Digest, error) {
	parts := []*part{factsPart(cutoff)}
	for _, t := range l.order {
		parts = append(parts, t.part())
	}
	end, err := l.addUp(ctx, parts)
	if err != nil {
		return Digest{}, err
	}
	d := Digest{End: end, Tables: map[string]Sum{}}
	for _, p := range parts {
		total := Sum{}
		for _, s := range p.sums {
			total = total.plus(s)
		}
		d.Tables[p.name] = total
	}
	return d, nil
}

// Buckets is Digest for one table in parts: 256 ids of one origin each, named
// origin<<48 | id>>8, or the facts whose uid begins with one byte. A bucket without
// entries is left out.
func (l *Log) Buckets(ctx context.Context, table string, cutoff int64) (map[int64]Sum, error) {
	p, err := l.part(table, cutoff)
	if err != nil {
		return nil, err
	}
	_, err = l.addUp(ctx, []*part{p})
	return p.sums, err
}

// Bucket returns the entries of one bucket as a page would carry them, in the order of
// their keys: those after one of its keys, empty for all, as many as a page holds, and
// the key to go on after; empty: that was all.
func (l *Log) Bucket(ctx context.Context, table string, bucket, cutoff int64, after string) (entries []json.RawMessage, next string, err error) {
	p, err := l.part(table, cutoff)
	if err != nil {
		return nil, "", err
	}
	from, to := p.bounds(bucket)
	if after != "" {
		var in int64
		if from, in, err = p.place(after); err != nil || in != bucket {
			return nil, "", ErrBadPage.Because(cmp.Or(err, errors.New("the key is of another bucket")))
		}
	}
	size, enough := 0, errors.New("enough for a page")
	_, err = sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (struct{}, error) {
		_, err := sqlite.All(tx, func(r sqlite.Row) (struct{}, error) {
			e, err := p.entry(r)
			if err != nil || e.bad != nil {
				return struct{}{}, nil
			}
			if size += len(e.json); len(entries) > 0 && size > PageBytes {
				next = p.key(entries[len(entries)-1])
				return struct{}{}, enough
			}
			entries = append(entries, e.json)
			return struct{}{}, nil
		}, p.query, slices.Concat(from, to)...)
		return struct{}{}, err
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return entries, next, err
}

// part is a table of the log as it is added up.
type part struct {
	name    string
	query   string // what lies after one key and up to another, in the order of keys
	touched string // what bucket reads of the entries that have changed since a seq
	bucket  func(sqlite.Row) (int64, error)
	all     [2][]any
	bounds  func(bucket int64) (from, to []any)
	key     func(json.RawMessage) string                   // of an entry, as text
	place   func(key string) (at []any, in int64, _ error) // where such a text leads, and in which bucket that is
	item    func(sqlite.Row) item
	entry   func(sqlite.Row) (entry, error)
	sums    map[int64]Sum // by bucket; none is empty
}

// item is one entry of a part.
type item struct {
	key    []any
	bucket int64
	sum    Sum // zero: it cannot be sent
	size   int
}

func (l *Log) part(table string, cutoff int64) (*part, error) {
	t := l.tables[table]
	switch {
	case table == FactsTable:
		return factsPart(cutoff), nil
	case t == nil:
		return nil, ErrNoTable
	}
	return t.part(), nil
}

func (t *Table) part() *part {
	return &part{
		name:    t.Name,
		query:   t.selectAll + ` WHERE (origin, id) > (?, ?) AND (origin, id) <= (?, ?) ORDER BY origin, id`,
		touched: `SELECT DISTINCT origin << 48 | id >> 8 FROM ` + t.Name + ` WHERE seq > ?`,
		bucket:  sqlite.Value[int64],
		all:     [2][]any{{int64(0), int64(0)}, {int64(1), int64(maxID)}},
		bounds: func(bucket int64) (from, to []any) {
			origin, first := bucket>>48, bucket&(1<<48-1)<<8
			return []any{origin, first - 1}, []any{origin, first | 0xff}
		},
		key:   func(e json.RawMessage) string { return keyOf(e).Ref.String() },
		place: placeOfRow,
		item:  t.items(),
		entry: t.entries(),
		sums:  map[int64]Sum{},
	}
}

// items returns what adds up the rows of one statement.
func (t *Table) items() func(sqlite.Row) item {
	from := t.reader(true)
	return func(r sqlite.Row) item { return itemOf(from.sendable(r)) }
}

// itemOf counts a row, of which the key is read whatever is wrong with the rest.
func itemOf(row Row, err error) item {
	it := item{key: []any{row.Origin, row.ID}, bucket: row.Origin<<48 | row.ID>>8}
	if err == nil {
		it.sum = sumOf(row.hash())
	}
	for _, f := range row.Fields {
		it.size += len(f.Value)
	}
	return it
}

func factsPart(cutoff int64) *part {
	return &part{
		name: FactsTable,
		// In the order of uid, which the index on at would not give. What has another
		// sort of uid cannot be sent, and has no place to go on from.
		query: `
			SELECT ` + factColumns + ` FROM facts
			WHERE uid > ? AND uid <= ? AND length(uid) = 16 AND +at >= ` + strconv.FormatInt(cutoff, 10) + `
			ORDER BY uid`,
		touched: `SELECT DISTINCT substr(uid, 1, 1) FROM facts WHERE seq > ? AND length(uid) = 16`,
		bucket: func(r sqlite.Row) (int64, error) {
			b, err := sqlite.Value[[]byte](r)
			if err != nil {
				return 0, err
			}
			return int64(b[0]), nil
		},
		all: [2][]any{{[]byte{}}, {lastUID(0xff)}},
		bounds: func(bucket int64) (from, to []any) {
			if from = []any{[]byte{}}; bucket > 0 {
				from = []any{lastUID(byte(bucket - 1))}
			}
			return from, []any{lastUID(byte(bucket))}
		},
		key:   func(e json.RawMessage) string { return keyOf(e).UID },
		place: placeOfFact,
		item:  factItem,
		entry: factEntry,
		sums:  map[int64]Sum{},
	}
}

// entryKey is what an entry is found by.
type entryKey struct {
	Ref
	UID string `json:"uid"`
}

func keyOf(e json.RawMessage) (k entryKey) {
	_ = json.Unmarshal(e, &k) // this log wrote it
	return k
}

func placeOfRow(key string) (at []any, in int64, err error) {
	ref, ok := ParseRef(key)
	if !ok {
		return nil, 0, errors.New("not the key of a row")
	}
	return []any{ref.Origin, ref.ID}, ref.Origin<<48 | ref.ID>>8, nil
}

func placeOfFact(key string) (at []any, in int64, err error) {
	var uid UID
	if err := uid.UnmarshalText([]byte(key)); err != nil {
		return nil, 0, err
	}
	return []any{uid[:]}, int64(uid[0]), nil
}

// lastUID is the last of those that begin with b.
func lastUID(b byte) []byte {
	return append([]byte{b}, bytes.Repeat([]byte{0xff}, len(UID{})-1)...)
}

func factItem(r sqlite.Row) item {
	f, err := scanFact(r)
	it := item{key: []any{f.UID[:]}, bucket: int64(f.UID[0]), size: len(f.Body)}
	if err == nil && f.check() == nil {
		it.sum = sumOf(f.hash())
	}
	return it
}

func sumOf(hash [sha256.Size]byte) Sum { return Sum{1, binary.BigEndian.Uint64(hash[:])} }

// addUp fills the sums of parts and returns the last place in the log at the moment
// for which all of them hold.
func (l *Log) addUp(ctx context.Context, parts []*part) (int64, error) {
	end, err := l.End(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range parts {
		for from := p.all[0]; from != nil; {
			from, err = sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) ([]any, error) { return p.addTx(tx, from, p.all[1]) })
			if err != nil {
				return 0, err
			}
		}
	}
	return l.catchUp(ctx, parts, end)
}

// addTx adds the entries after from and up to to, or as many as a read may, and
// returns where to go on: nil when it is done.
func (p *part) addTx(tx *sqlite.Tx, from, to []any) (next []any, err error) {
	rows, size, enough := 0, 0, errors.New("enough for a read")
	_, err = sqlite.All(tx, func(r sqlite.Row) (struct{}, error) {
		if rows == readRows || size > readBytes {
			return struct{}{}, enough
		}
		it := p.item(r)
		if it.sum != (Sum{}) {
			p.sums[it.bucket] = p.sums[it.bucket].plus(it.sum)
		}
		rows, size, next = rows+1, size+it.size, it.key
		return struct{}{}, nil
	}, p.query, slices.Concat(from, to)...)
	if errors.Is(err, enough) {
		return next, nil
	}
	return nil, err
}

// place is a bucket of a part.
type place struct {
	*part
	number int64
}

// catchUp adds up again what changed since a place in the log, until few enough
// buckets are left to do it at one moment.
func (l *Log) catchUp(ctx context.Context, parts []*part, since int64) (end int64, err error) {
	for {
		var places []place
		end, err = sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (end int64, err error) {
			if places, err = touchedTx(tx, parts, since); err != nil {
				return 0, err
			}
			if len(places) <= readBuckets {
				err = recountTx(tx, places)
			}
			if err != nil {
				return 0, err
			}
			return l.endTx(tx)
		})
		if err != nil || len(places) <= readBuckets {
			return end, err
		}
		for some := range slices.Chunk(places, readBuckets) {
			if _, err := sqlite.Read(ctx, l.db, func(tx *sqlite.Tx) (struct{}, error) { return struct{}{}, recountTx(tx, some) }); err != nil {
				return 0, err
			}
		}
		since = end
	}
}

func touchedTx(tx *sqlite.Tx, parts []*part, since int64) (places []place, err error) {
	for _, p := range parts {
		buckets, err := sqlite.All(tx, p.bucket, p.touched, since)
		if err != nil {
			return nil, err
		}
		for _, b := range buckets {
			places = append(places, place{p, b})
		}
	}
	return places, nil
}

func recountTx(tx *sqlite.Tx, places []place) (err error) {
	for _, p := range places {
		delete(p.sums, p.number)
		from, to := p.bounds(p.number)
		for from != nil {
			if from, err = p.addTx(tx, from, to); err != nil {
				return err
			}
		}
	}
	return nil
}
