package sim

import (
	"cmp"

	"tandem/internal/fault"
)

// fetch has local read one page of the cloud's log.
func (w *world) fetch() { w.fetchPage() }

func (w *world) fetchPage() (moved int, err error) {
	local := w.nodes[0]
	w.tell("%s fetches", local)
	w.line.last, local.applied = nil, false
	defer func() {
		if p := w.line.last; p != nil && local.applied {
			local.meets(*p)
			moved = len(p.entries)
		}
	}()
	err = local.client.FetchPage(ctx, 0)
	w.note(err)
	return 0, err
}

// offer has local hand the cloud what it has not read.
func (w *world) offer() { w.offerAll() }

func (w *world) offerAll() (int, error) {
	before := w.count.moved
	w.tell("%s offers", w.nodes[0])
	err := w.nodes[0].client.Offer(ctx)
	w.note(err)
	return w.count.moved - before, err
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
	for range 100 {
		n, err := w.fetchPage()
		if n > 0 && err == nil {
			continue
		}
		_, failed := w.offerAll()
		return w.count.moved - before, cmp.Or(err, failed)
	}
	w.fail("a fetch that does not end")
	return 0, nil
}

func (w *world) round() { _, _ = w.rounds() }

func (w *world) greet() {
	w.tell("%s greets", w.nodes[0])
	w.note(w.nodes[0].client.Greet(ctx))
}

// deliverAgain has a call of an earlier moment arrive at the cloud once more, or
// for the first time.
func (w *world) deliverAgain() {
	if len(w.line.sent) == 0 {
		return
	}
	c := oneOf(w, w.line.sent...)
	w.tell("a call of earlier arrives at the cloud: %s %s", c.method, w.entries(c.page.entries))
	c.page.reset, c.page.first = false, false
	w.line.serve(c)
}

func (w *world) restartNode() {
	n := w.pick()
	w.tell("%s starts again", n)
	n.restart()
}
