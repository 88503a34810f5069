package sim

// heal ends all trouble, and has the nodes talk until they have nothing to say.
func (w *world) heal() {
	w.healing = true
	w.nodes[0].clock, w.nodes[1].clock = 0, 0
	w.now += 60_000
	w.tell("all is well again")
	w.greet()
	w.expect()
	for range 12 {
		moved, err := w.rounds()
		if moved == 0 && err == nil {
			return
		}
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
			if o, ok := n.ought.rows[h.uid]; ok {
				held |= 1 << o.version
			}
		}
		if held != 0 {
			w.best[h] = h.newest(held)
		}
	}
}
