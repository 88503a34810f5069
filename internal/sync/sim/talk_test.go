package sim

import (
	"cmp"

	"tandem/internal/fault"
	"tandem/internal/sync/link"
)

// fetch has local read one page of the cloud's log.
func (w *world) fetch() { w.fetchPage() }

func (w *world) fetchPage() (moved int, err error) {
	local := w.nodes[0]
	w.tell("%s fetches", local)
	w.line.begins()
	defer func() {
		if local.applied {
			moved = len(w.line.came.entries)
		}
		w.line.flush()
	}()
	_, err = local.client.FetchPage(ctx, 0)
	w.note(err)
	return 0, err
}

// offer has local hand the cloud one page of what it has not read.
func (w *world) offer() { _, _ = w.offerPage() }

func (w *world) offerPage() (more bool, err error) {
	w.tell("%s offers", w.nodes[0])
	more, err = w.nodes[0].client.OfferPage(ctx)
	w.note(err)
	return more, err
}

func (w *world) note(err error) {
	if err != nil {
		w.tell("      → %s", fault.From(err).Code) // the rest names tokens, which differ from run to run
	}
}

// rounds talks both ways until neither has more to say, and returns how many
// entries moved. What fails is tried again in the next round.
func (w *world) rounds() (int, error) {
	before := w.count.moved
	for range 400 {
		n, err := w.fetchPage()
		if n > 0 && err == nil {
			continue
		}
		more, failed := true, error(nil)
		for more {
			more, failed = w.offerPage()
		}
		return w.count.moved - before, cmp.Or(err, failed)
	}
	w.fail("a fetch that does not end")
	return 0, nil
}

// compareNow has the nodes compare what they hold, and repair what is not alike.
func (w *world) compareNow() { _, _ = w.comparison() }

func (w *world) comparison() (link.Comparison, error) {
	w.tell("%s compares", w.nodes[0])
	w.line.begins()
	defer w.line.flush()
	c, err := w.nodes[0].client.Compare(ctx)
	if err == nil {
		w.add(": %d differ, %d repaired, %d explained, %d lasting", c.Differing, c.Repaired, c.Explained, c.Lasting)
	}
	w.note(err)
	return c, err
}

func (w *world) round() { _, _ = w.rounds() }

func (w *world) greet() {
	w.tell("%s greets", w.nodes[0])
	err := w.nodes[0].client.Greet(ctx)
	w.note(err)
	for _, n := range w.nodes { // each has tried again what it set aside
		n.settle(n.quarantine())
		n.forgetful = n.forgetful && err != nil
	}
}

// deliverAgain has a call of an earlier moment arrive at the cloud once more, or, more
// often where there is one, for the first time.
func (w *world) deliverAgain() {
	if len(w.line.sent) == 0 {
		return
	}
	c := oneOf(w, w.line.sent...)
	if len(w.line.lost) > 0 && w.chance(0.6) {
		c = oneOf(w, w.line.lost...)
	}
	w.deliver(c)
}

func (w *world) deliver(c call) {
	w.tell("a call of earlier arrives at the cloud: %s %s", c.method, w.entries(c.page.entries))
	c.page.reset, c.page.first = false, false
	w.line.serve(c)
}

func (w *world) restartNode() {
	n := w.pick()
	w.tell("%s starts again", n)
	n.restart()
}
