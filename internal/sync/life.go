package sync

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// ErrAnotherNode refuses a file that another node wrote: two nodes that give out
// the same keys would replace each other's rows.
var ErrAnotherNode = fault.New(fault.Conflict, "another_nodes_data", "The data folder belongs to another node: it is a copy, or node.name and node.origin were changed. Point node.data elsewhere, or run tandem adopt --config FILE to make the folder this node's own.")

// state is what the file says of itself.
type state struct {
	incarnation string
	node        *string // nil: not said yet
	origin      *int64
}

// beginTx decides whether the file goes on with its life or begins another, and
// makes it so: the fence first, since a fence that is ahead of the file only begins
// yet another life.
func (l *Log) beginTx(tx *sqlite.Tx) error {
	s, known, err := stateTx(tx)
	if err != nil {
		return err
	}
	if err := belongs(s, l.guard.fence, l.node, l.origin); err != nil {
		return err
	}
	if l.last, err = l.countTx(tx); err != nil {
		return err
	}
	why := l.renewal(s, known)
	if known && why == "" {
		l.incarnation = s.incarnation
		return l.signTx(tx)
	}
	if known && l.guard.absent {
		l.blind = true
		l.skipIDs(tx)
	}
	l.reset = why
	return l.renewTx(tx)
}

func stateTx(tx *sqlite.Tx) (state, bool, error) {
	return sqlite.One(tx, func(r sqlite.Row) (s state, err error) {
		return s, r.Scan(&s.incarnation, &s.node, &s.origin)
	}, `SELECT incarnation, node, origin FROM sync_state`)
}

// belongs refuses a file or a fence of another node than the one of that name.
func belongs(s state, f fence, node string, origin int64) error {
	switch {
	case s.node != nil && (*s.node != node || s.origin != nil && *s.origin != origin):
		return ErrAnotherNode.Because(fmt.Errorf("the file is %q's, this node is %q", *s.node, node))
	case f.Node != "" && (f.Node != node || f.Origin != origin):
		return ErrAnotherNode.Because(fmt.Errorf("the fence is %q's, this node is %q", f.Node, node))
	}
	return nil
}

// Belongs returns ErrAnotherNode where a file, or the fence beside it, is another
// node's. It only reads: NewLog would refuse the same, and else begin.
func Belongs(ctx context.Context, db *sqlite.DB, fencePath, node string, origin int64) error {
	f, _, err := loadFence(fencePath)
	if err != nil {
		return err
	}
	s, err := sqlite.Read(ctx, db, func(tx *sqlite.Tx) (s state, err error) {
		signed, _, err := sqlite.One(tx, sqlite.Value[int], `SELECT count(*) FROM pragma_table_info('sync_state') WHERE name = 'node'`)
		if err == nil && signed > 0 { // a file of a version before that names nobody, and a start brings it up to date
			s, _, err = stateTx(tx)
		}
		return s, err
	})
	if err != nil {
		return err
	}
	return belongs(s, f, node, origin)
}

// renewal is why the file cannot go on with the life it names; empty: it can.
func (l *Log) renewal(s state, known bool) string {
	switch g := l.guard; {
	case g.path == "":
		return ""
	case !known && g.absent:
		return "" // both are new
	case !known:
		return "the database was lost"
	case g.absent:
		return "no fence stands beside the database"
	case g.fence.Incarnation != s.incarnation:
		return "the database is from another life"
	case g.fence.Served > l.last.seq:
		return "the database is older than its fence"
	}
	return ""
}

// renewTx begins a life: cursors into the last one are void, and no id that may
// have been given out in it is given out again.
func (l *Log) renewTx(tx *sqlite.Tx) error {
	next := fence{
		Node: l.node, Origin: l.origin, Incarnation: hex.EncodeToString(tx.Random(8)), // in which nothing was served
		Reserved: l.guard.fence.Reserved, Floor: l.guard.fence.Floor,
	}
	for table, id := range l.last.ids {
		l.last.ids[table] = max(id, next.Reserved[table])
		next.Floor = with(next.Floor, table, l.last.ids[table])
	}
	l.guard.read = 0
	if err := l.guard.replace(next); err != nil {
		return err
	}
	l.incarnation = next.Incarnation
	l.next.forget()
	if _, err := tx.Exec(`DELETE FROM sync_tokens`); err != nil {
		return err
	}
	return l.signTx(tx)
}

// signTx writes whose file it is and which life.
func (l *Log) signTx(tx *sqlite.Tx) error {
	_, err := tx.Exec(`
		INSERT INTO sync_state (one, incarnation, node, origin) VALUES (1, ?, ?, ?)
		ON CONFLICT (one) DO UPDATE SET incarnation = excluded.incarnation, node = excluded.node, origin = excluded.origin
		WHERE incarnation <> excluded.incarnation OR node IS NOT excluded.node OR origin IS NOT excluded.origin`,
		l.incarnation, l.node, l.origin)
	return err
}

// skipIDs leaves out as many ids as a forgotten life may have given out.
func (l *Log) skipIDs(tx *sqlite.Tx) {
	for _, table := range slices.Sorted(maps.Keys(l.last.ids)) {
		l.last.ids[table] += gap(tx)
	}
}

// gap is how many ids to leave out. Of two lives that begin alike and know nothing of
// each other, one backup put back twice, each has its own, or they would give out the
// same ids.
func gap(tx *sqlite.Tx) int64 {
	return forgotten + int64(binary.BigEndian.Uint64(tx.Random(8))%(mostForgotten-forgotten))
}

// renew begins a new life of a running log: the peer has come with a token that
// this life should have issued and did not, so the file was put back behind it.
func (l *Log) renew(ctx context.Context, cursor string) error {
	l.pages.Lock()
	defer l.pages.Unlock()
	return l.db.Write(ctx, func(tx *sqlite.Tx) error {
		if _, reason, err := l.positionTx(tx, cursor); err != nil || reason != notIssued {
			return err // somebody else's page has done it
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reset = "the peer has read further than this database remembers"
		if err := l.renewTx(tx); err != nil {
			return err
		}
		l.writer = l.node + "/" + l.incarnation
		tx.AfterCommit(l.Announce)
		return nil
	})
}

// Incarnation names this life of the file.
func (l *Log) Incarnation() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.incarnation
}

// Renewed is why the current life was begun at this start or since; empty: it goes
// on from before.
func (l *Log) Renewed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reset
}

// Adopt makes a file that another node wrote the node's own: what it wrote from
// here on is this node's, in a new life, and what it knew of its peer is gone. The
// rows stay as they are. Fence is the path of the fence beside the file.
func Adopt(ctx context.Context, db *sqlite.DB, fencePath, node string, origin int64) error {
	if err := removeFence(fencePath); err != nil {
		return err
	}
	return db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, statement := range []string{
			`DELETE FROM sync_tokens`, `DELETE FROM sync_cursors`, `DELETE FROM sync_marks`, `DELETE FROM sync_quarantine`,
		} {
			if _, err := tx.Exec(statement); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`UPDATE sync_state SET incarnation = '', node = ?, origin = ?, blanked = 0`, node, origin)
		return err
	})
}
