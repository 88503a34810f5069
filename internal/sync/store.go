package sync

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tandem/internal/sqlite"
)

// page is the part of a page that belongs to one table, beside what is here.
type page struct {
	table *Table
	rows  []Row        // as they came
	mine  map[UID]*Row // the rows here that have the uid of one of them
	keyed map[Ref]UID  // whose key, here, is that of one of them
	plain bool         // no uid and no key comes twice
}

// chunks are how many rows a statement asks for or stores at once: few numbers, so
// that few statements are prepared. A statement that stores journals the pages it
// begins with, which many small ones of a page would do again and again.
var chunks = []int{250, 50, 1}

// chunk is the largest.
const chunk = 250

// look finds what is here of the rows that came.
func (a *applying) look(t *Table, rows []Row) (page, error) {
	p := page{table: t, rows: rows, mine: make(map[UID]*Row, len(rows)), keyed: make(map[Ref]UID, len(rows)), plain: true}
	came, keys := make(map[UID]bool, len(rows)), make(map[Ref]bool, len(rows))
	for i := range rows {
		came[rows[i].UID], keys[rows[i].Ref] = true, true
	}
	p.plain = len(came) == len(rows) && len(keys) == len(rows)
	for first := 0; first < len(rows); first += chunk {
		if err := a.lookAt(&p, rows[first:min(first+chunk, len(rows))]); err != nil {
			return p, err
		}
	}
	return p, nil
}

// lookAt finds the rows here that share a uid with one of some, then those that
// have the key of one whose uid is not here.
func (a *applying) lookAt(p *page, some []Row) error {
	uids := make([]any, 0, chunk)
	for i := range some {
		uids = append(uids, some[i].UID[:])
	}
	known, err := sqlite.All(a.tx, sqlite.Value[[]byte], `SELECT uid FROM `+p.table.Name+` WHERE uid IN (`+repeated(`?`, sized(len(uids)))+`)`, filled(uids)...)
	if err != nil {
		return err
	}
	if len(known) > 0 {
		uids = uids[:0]
		for _, u := range known {
			uids = append(uids, u)
		}
		found, err := sqlite.All(a.tx, p.table.reader(false).lenient, p.table.selectAll+` WHERE uid IN (`+repeated(`?`, sized(len(uids)))+`)`, filled(uids)...)
		if err != nil {
			return err
		}
		for i := range found {
			p.mine[found[i].UID], p.keyed[found[i].Ref] = &found[i], found[i].UID
		}
	}
	for origin := range int64(2) {
		var ids []any
		for i := range some {
			if p.mine[some[i].UID] == nil && some[i].Origin == origin {
				ids = append(ids, some[i].ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		taken, err := sqlite.All(a.tx, scanKeyed, `SELECT origin, id, uid FROM `+p.table.Name+`
			WHERE origin = `+strconv.FormatInt(origin, 10)+` AND id IN (`+repeated(`?`, sized(len(ids)))+`)`, filled(ids)...)
		if err != nil {
			return err
		}
		for _, k := range taken {
			p.keyed[k.Ref] = k.uid
		}
	}
	return nil
}

type keyed struct {
	Ref
	uid UID
}

func scanKeyed(r sqlite.Row) (k keyed, err error) { return k, r.Scan(&k.Origin, &k.ID, &k.uid) }

// sized is for how many rows there is a statement: one or a chunk, so that few are
// prepared.
func sized(n int) int {
	for i := len(chunks) - 1; i > 0; i-- {
		if n <= chunks[i] {
			return chunks[i]
		}
	}
	return chunk
}

// filled repeats the last argument until there are as many as the statement takes.
func filled(args []any) []any {
	for n := sized(len(args)); len(args) < n; {
		args = append(args, args[len(args)-1])
	}
	return args
}

// store stores what is newer than what is here: many rows at once where nothing is
// unusual about them, and each by itself otherwise.
func (a *applying) store(p page) error {
	var easy []*Row
	var hard []Row
	for i := range p.rows {
		in := &p.rows[i]
		mine, taken := p.mine[in.UID], p.keyed[in.Ref]
		switch {
		case !p.plain, mine == nil && taken != UID{}, mine != nil && mine.Ref != in.Ref:
			hard = append(hard, *in)
		case mine == nil:
			easy = append(easy, in)
		default:
			won, err := a.meet(p.table, in, mine)
			if err != nil {
				return err
			}
			if won {
				easy = append(easy, in)
			}
		}
	}
	if err := a.storeEasy(p.table, easy); err != nil {
		return err
	}
	for _, in := range hard {
		if err := a.storeAlone(p.table, in); err != nil {
			return err
		}
	}
	return nil
}

// believed sets aside the rows under numbers of this node's own that it has not given
// out, and cannot have: they would leave it none to count on with.
func (a *applying) believed(t *Table, rows []Row) ([]Row, error) {
	most := max(believedID, a.last.ids[t.Name])
	doubted := func(r Row) bool { return r.Origin == a.origin && r.ID > most && t.Derived == nil }
	if !slices.ContainsFunc(rows, doubted) {
		return rows, nil
	}
	var rest []Row
	for _, r := range rows {
		if !doubted(r) {
			rest = append(rest, r)
		} else if err := a.setRowAside(Refused, errNotGiven, r); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

var errNotGiven = errors.New("a number of this node's that it cannot have given out")

// storeNews stores rows without a look at what is here, as long as the file tells that
// nothing of them is: a log that is read for the first time brings nothing else. It
// returns those from where that ended.
func (a *applying) storeNews(t *Table, rows []Row) ([]Row, error) {
	for len(rows) > 0 {
		some := rows[:sizeOfChunk(len(rows))]
		switch err := a.write(t, t.insert(len(some)), pointers(some)); {
		case unfit(err):
			return rows, nil
		case err != nil:
			return nil, err
		}
		for i := range some {
			if some[i].DeletedAt == nil {
				a.news++
			}
		}
		rows = rows[len(some):]
	}
	return nil, nil
}

func pointers(rows []Row) []*Row {
	all := make([]*Row, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	return all
}

// storeEasy stores rows that are new or newer, a chunk in a statement. A chunk that
// the file does not take is stored row by row.
func (a *applying) storeEasy(t *Table, rows []*Row) error {
	for len(rows) > 0 {
		some := rows[:sizeOfChunk(len(rows))]
		rows = rows[len(some):]
		err := a.write(t, t.upsert(len(some)), some)
		for i := 0; unfit(err) && i < len(some); i++ {
			if e := a.storeAlone(t, *some[i]); e != nil {
				return e
			}
		}
		if err != nil && !unfit(err) {
			return err
		}
	}
	return nil
}

// sizeOfChunk is how many of n rows the next statement stores.
func sizeOfChunk(n int) int {
	return chunks[slices.IndexFunc(chunks, func(c int) bool { return c <= n })]
}

// unfit reports whether the file refused a row for what it is.
func unfit(err error) bool { return errors.Is(err, sqlite.ErrUnfit) || errors.Is(err, sqlite.ErrTaken) }

// write stores rows by a statement of so many, each with a new seq; all or none.
func (a *applying) write(t *Table, statement string, rows []*Row) (err error) {
	last := a.last.seq
	args := make([]any, 0, len(rows)*(1+strings.Count(t.columns, ",")))
	for i, r := range rows {
		r.Seq = last + 1 + int64(i)
		if args, err = t.appendArgs(args, r); err != nil {
			return fmt.Errorf("%s %s: %w", t.Name, r.Ref, err)
		}
	}
	if _, err := a.tx.Exec(statement, args...); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	a.last.seq += int64(len(rows))
	a.announceTx(a.tx)
	for _, r := range rows {
		if err := a.took(t, r); err != nil {
			return err
		}
	}
	return nil
}

// took notes that a version is here now.
func (a *applying) took(t *Table, r *Row) error {
	a.changed[t.Name] = append(a.changed[t.Name], r.UID)
	if r.UpdatedAt > a.tx.Millis()+day {
		a.ahead.note()
	}
	if r.Origin == a.origin && t.Derived == nil && r.ID > a.last.ids[t.Name] { // made here, lost by a restore, and come back
		a.last.ids[t.Name] = r.ID
		if a.blind {
			a.last.ids[t.Name] += gap(a.tx) // it may not be the last one that was lost
		}
	}
	return a.clearTx(a.tx, t.Name, r.UID, r.UpdatedAt)
}

// meet lets a version that came and the one that is here find out which of them
// stays, and reports whether it is the one that came. The other one goes into
// conflicts where neither knew of the other. What both contain is kept in seen
// either way, without a new seq: it says nothing that the peer does not know.
func (a *applying) meet(t *Table, in, mine *Row) (bool, error) {
	if in.Owner == "" { // a tombstone that names nobody deletes a row that stays somebody's
		in.Owner = mine.Owner
	}
	won := newer(*in, *mine)
	stays, goes := mine, in
	if won {
		stays, goes = in, mine
	}
	if concurrent(in, mine) {
		if err := a.conflictTx(a.tx, stays, goes); err != nil {
			return false, err
		}
	}
	both := mine.Seen.merged(in.Seen)
	if won {
		in.Seen = both
		return true, nil
	}
	clear := a.clearCameTx
	if a.aside > 0 && !newer(*mine, *in) { // the peer has what is here
		clear = a.clearTx
	}
	if err := clear(a.tx, t.Name, in.UID, mine.UpdatedAt); err != nil {
		return false, err
	}
	if both == mine.Seen {
		return false, nil
	}
	_, err := a.tx.Exec(`UPDATE `+t.Name+` SET seen = ? WHERE uid = ?`, string(both), mine.UID[:])
	return false, err
}

// storeAlone stores one row, whatever is unusual about it, or sets it aside.
func (a *applying) storeAlone(t *Table, in Row) error {
	err := a.tx.Try(func() error { return a.place(t, in) })
	if err != nil {
		a.announced = nil // what was to follow the commit went with it
	}
	kind := Refused
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errKeyTaken):
		kind = IDReuse
	case !unfit(err):
		return err
	}
	return a.setRowAside(kind, reason(err), in)
}

// setRowAside puts a row that came into quarantine.
func (a *applying) setRowAside(kind string, why error, in Row) error {
	raw, err := in.MarshalJSON()
	if err != nil {
		return err
	}
	q := in.aside(kind, why)
	q.entry = raw
	return a.setAsideTx(a.tx, q, a.peerVersion)
}

// reason is what people read of why a row was refused.
func reason(err error) error {
	if errors.Is(err, errKeyTaken) {
		return errKeyTaken
	}
	return errors.New("the database does not take it: a value is outside of what its column allows")
}
