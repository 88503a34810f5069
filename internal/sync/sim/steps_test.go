package sim

import "fmt"

// odds are how often what goes wrong goes wrong, in one seed. Most seeds have few
// kinds of trouble, so that each is met by itself and in company.
type odds struct {
	lose, mute, twice, cut, refuse, crash float64
	ahead, cross                          float64
	page                                  int     // entries of a page; 0: as many as it holds
	moment                                float64 // how often a moment is remembered to which a node may fall back
	steps                                 []weighted
	total                                 float64
}

// weighted is a step and how often it is taken.
type weighted struct {
	name   string
	weight float64
	do     func(*world)
}

// steps are all that may happen, with the weight of each and the share of seeds in
// which it happens at all.
var steps = []struct {
	name          string
	weight, share float64
	do            func(*world)
}{
	{"add", 8, 1, (*world).addRow},
	{"edit", 10, 1, (*world).editRow},
	{"delete", 4, 0.7, (*world).deleteRow},
	{"quarrel", 4, 0.4, (*world).quarrel},
	{"post", 3, 0.4, (*world).post},
	{"exchange", 3, 0.5, (*world).exchange},
	{"copy", 1, 0.1, (*world).copyPeer},
	{"many", 4, 0.12, (*world).manyRows},
	{"bring back", 2, 0.4, (*world).bringBack},
	{"poison", 1, 0.25, (*world).poison},
	{"retry", 1, 0.5, (*world).retryNow},
	{"upkeep", 1, 0.2, (*world).upkeep},
	{"ask", 3, 0.5, (*world).ask},
	{"fact", 2, 0.5, (*world).tellFact},
	{"settings", 2, 0.4, (*world).setSettings},
	{"fetch", 8, 1, (*world).fetch},
	{"offer", 8, 1, (*world).offer},
	{"round", 2, 0.7, (*world).round},
	{"greet", 1, 1, (*world).greet},
	{"compare", 1, 0.3, (*world).compareNow},
	{"clock", 3, 0.5, (*world).stepClock},
	{"wait", 2, 0.7, (*world).wait},
	{"restart", 2, 0.5, (*world).restartNode},
	{"again", 3, 0.5, (*world).deliverAgain},
	{"backup", 2, 0.5, (*world).backUp},
	{"restore", 2, 0.5, (*world).restore},
	{"backup both", 2, 0.15, (*world).backUpBoth},
	{"restore both", 2, 0.15, (*world).restoreBoth},
	{"own", 1, 0.3, (*world).setOwn},
	{"tail", 1, 1, (*world).loseTail},
	{"wipe", 1, 0.25, (*world).wipe},
	{"tokens", 1, 0.15, (*world).loseTokens},
}

func (w *world) drawOdds() odds {
	p := func() float64 {
		if w.chance(0.6) {
			return 0
		}
		return w.rand.Float64() * 0.3
	}
	page := 0
	if w.chance(0.5) {
		page = 1 + w.rand.IntN(6)
	}
	moment := 0.0
	if w.chance(0.25) {
		moment = 0.2
	}
	o := odds{page: page, moment: moment, lose: p(), mute: p(), twice: p(), cut: p(), refuse: p(), crash: p(), ahead: 3 * p(), cross: 2 * p()}
	for _, s := range steps {
		if !w.chance(s.share) {
			continue
		}
		if s.name == "many" && w.chance(0.7) {
			o.page = 0 // all of them in one page
		}
		weight := s.weight * (0.3 + 1.4*w.rand.Float64())
		o.steps, o.total = append(o.steps, weighted{s.name, weight, s.do}), o.total+weight
	}
	return o
}

// step takes one step, buries who died in it, and lets a little time pass.
func (w *world) step() {
	w.now += int64(w.rand.IntN(40))
	if w.chance(w.odds.moment) {
		n := w.pick()
		n.before = n.snapshot()
	}
	at := w.rand.Float64() * w.odds.total
	for _, s := range w.odds.steps {
		if at -= s.weight; at < 0 {
			w.met["step "+s.name]++
			w.survive(func() { s.do(w) })
			break
		}
	}
	if w.strict {
		w.compare()
	}
}

// survive runs a step at whose crash points a node may die, and starts it again.
func (w *world) survive(do func()) {
	w.calls = 0
	func() {
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(crash); !ok {
					panic(p)
				}
			}
		}()
		do()
	}()
	for _, n := range w.nodes {
		w.revive(n)
		if len(n.ought.aside) > 0 {
			n.settle(n.quarantine())
		}
	}
}

// revive starts a node that died at a crash point.
func (w *world) revive(n *node) {
	if n.died == "" {
		return
	}
	w.met["died at "+n.died]++
	w.tell("%s died at %s and starts again", n, n.died)
	if n.origin == 0 {
		w.line.dropped()
	}
	n.restart()
}

// compare fails unless each node holds what it ought to.
func (w *world) compare() {
	for _, n := range w.nodes {
		if diff := n.differs(); diff != "" {
			w.fail("%s %s", n, diff)
		}
	}
}

// differs says where a file is not as the model has it.
func (n *node) differs() string {
	found := 0
	for _, t := range n.tables() {
		for _, r := range all(n, scanRow, n.selectRow(t.Name)) {
			if r.alias != nil {
				continue
			}
			h := n.w.byUID[r.UID]
			if h == nil {
				return fmt.Sprintf("holds a row that nobody made: %s %s", t.Name, r.Ref)
			}
			want, ok := n.ought.rows[r.UID]
			i, known := h.find(r.version())
			switch {
			case !ok:
				return fmt.Sprintf("holds %s, %v, which it never met", h.name, r.version())
			case !known:
				return fmt.Sprintf("holds a version of %s that nobody wrote: %v", h.name, r.version())
			case h.versions[i].priority != r.version().priority:
				return fmt.Sprintf("has lost the priority %q of %s, %v", h.versions[i].priority, h.name, r.version())
			case i != want.version:
				return fmt.Sprintf("holds %v of %s instead of %v", r.version(), h.name, h.versions[want.version])
			}
			found++
		}
	}
	if found != len(n.ought.rows) {
		for _, h := range n.w.rows {
			if _, ok := n.ought.rows[h.uid]; ok {
				if _, ok := n.read(h); !ok {
					return fmt.Sprintf("has lost %s, %v", h.name, h.versions[n.ought.rows[h.uid].version])
				}
			}
		}
	}
	return ""
}
