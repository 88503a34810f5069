package sim

import (
	"cmp"
	"fmt"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// heal ends all trouble, and has the nodes talk until they have nothing to say.
func (w *world) heal() {
	w.healing = true
	w.nodes[0].clock, w.nodes[1].clock = 0, 0
	w.now += 60_000
	w.tell("all is well again")
	for _, n := range w.nodes {
		if n.log.Renewed() != "" {
			w.met["new life: "+n.log.Renewed()]++
		}
	}
	w.upgrade()
	w.expect()
	waited := false
	for range 12 {
		w.calls = 0
		w.greet()
		moved, err := w.rounds()
		err = cmp.Or(err, w.exchangeNow())
		cured := w.cure()
		w.now += 2 * 3_600_000 // what is set aside is tried again
		decided := w.decide(w.nodes[0]) + w.decide(w.nodes[1])
		taken := w.retry(w.nodes[0]) + w.retry(w.nodes[1])
		if moved+cured+decided+taken > 0 || err != nil {
			continue
		}
		w.checkUnaided()
		w.compared = true
		w.greet() // each hears what the other has set aside by now
		c, err := w.comparison()
		if err == nil && c.Repaired == 0 && !(c.Lasting > 0 && w.years && !waited) {
			return
		}
		if waited = waited || c.Lasting > 0; c.Lasting > 0 {
			w.now += day // what a wrong clock had a node refuse is tried again
		}
		w.met["comparison that repairs"]++
	}
	w.fail("the nodes do not come to rest")
}

// expect keeps what must not be lost from here on: of each row the newest version
// that either node holds.
func (w *world) expect() {
	w.best = map[*history]int{}
	for _, h := range w.rows {
		var held uint64
		for _, n := range w.nodes {
			if o, ok := n.ought.rows[h.uid]; ok && h.versions[o.version].poison == "" {
				held |= 1 << o.version
			}
		}
		if held != 0 {
			w.best[h] = h.newest(held)
		}
	}
}

// upgrade brings the older node up to the version of the newer one, in half of the
// worlds that have one.
func (w *world) upgrade() {
	for _, n := range w.nodes {
		if n.newer || !n.peer().newer || w.chance(0.5) {
			continue
		}
		w.tell("%s is upgraded", n)
		n.newer = true
		n.restart()
	}
}

// retry has a node try again what it set aside, and returns how many entries it took.
func (w *world) retry(n *node) int {
	if len(n.quarantine()) == 0 {
		return 0
	}
	taken, err := n.log.Retry(ctx, n.peer().version())
	w.must(err)
	w.tell("%s tries again what it set aside, and takes %d", n, taken)
	n.settle(n.quarantine())
	return taken
}

// retryNow is retry as a step.
func (w *world) retryNow() { w.retry(w.pick()) }

// decide answers the deletes that a node holds.
func (w *world) decide(n *node) int {
	var held []*history
	for _, h := range w.rows {
		if _, ok := n.ought.aside[h.uid]; ok && n.quarantine()[h.uid].kind == sync.HeldDelete {
			held = append(held, h)
		}
	}
	if len(held) == 0 {
		return 0
	}
	apply := w.chance(0.5)
	w.met[fmt.Sprint("held deletes meant: ", apply)]++
	w.tell("%s holds %d deletes; they are meant: %v", n, len(held), apply)
	var decided int
	w.must(n.db.Write(ctx, func(tx *sqlite.Tx) (err error) {
		decided, err = n.log.DecideHeldTx(tx, apply)
		return err
	}))
	if decided != len(held) {
		w.fail("%s decided %d deletes of %d", n, decided, len(held))
	}
	if apply {
		n.settle(n.quarantine())
		return decided
	}
	for _, h := range held {
		n.keeps(h)
	}
	return decided
}

// keeps tells the model of the version that undoes a delete which was held.
func (n *node) keeps(h *history) {
	held := n.ought.aside[h.uid]
	delete(n.ought.aside, h.uid)
	mine := n.ought.rows[h.uid]
	switch {
	case h.versions[mine.version].deletedAt != 0:
		n.ought.meet(h, held, n.tie(h))
		return
	case !h.versions[held.version].over(h.versions[mine.version]):
		return
	}
	n.ought.rows[h.uid] = holding{mine.version, mine.contains | held.contains}
	r, _ := n.read(h)
	if !r.version().over(h.versions[held.version]) {
		n.w.fail("%s keeps %s with %v, under the delete %v", n, h.name, r.version(), h.versions[held.version])
	}
	v := r.version()
	v.poison, v.spoilt = h.versions[mine.version].poison, h.versions[mine.version].spoilt // it says what was here
	n.ought.write(h, v)
	n.w.count.written++
}

// upkeep is what a node does each hour.
func (w *world) upkeep() {
	n := w.pick()
	w.tell("%s forgets what is old", n)
	for _, f := range all(n, scanConflict, `SELECT uid, body FROM facts WHERE kind = 'conflict' AND at < ?`, n.factsFrom()) {
		w.expired[*f.loser] = true // its clock is a year ahead, or was a year behind
	}
	n.write(func(tx *sqlite.Tx) error {
		if _, err := n.log.PurgeFactsTx(tx); err != nil {
			return err
		}
		_, err := n.log.BlankTx(tx, false)
		return err
	})
}
