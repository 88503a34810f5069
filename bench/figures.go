package main

import (
	"fmt"
	"math"
	"slices"
)

// work names what was measured; unit what was counted.
type (
	work string
	unit string
)

const (
	create16    work = "create, 16 connections"
	create64    work = "create, 64 connections"
	listPlain   work = "list of 50, 16 connections, no count"
	listCounted work = "list of 50, 16 connections, with count"
	viewOne     work = "one of 500 rows, 16 connections"
	startEmpty  work = "start to ready, empty folder"
	startAgain  work = "start to ready, 500 todos there"
	idle        work = "memory, idle for 5 s"
	loaded      work = "memory, peak under load"

	firstFetch  work = "first sync, 100,000 rows from the cloud home"
	firstOffer  work = "first sync, 100,000 rows from home to the cloud"
	growth      work = "peak at 200,000 rows less peak at 50,000"
	farAway     work = "100,000 rows, 100 ms round trip, 1 % loss"
	farCut      work = "the same, cut for 2 s in the middle"
	liveAlone   work = "one write at the cloud, seen at home"
	liveAmong   work = "one of 200 writes/s at the cloud, seen at home"
	liveUpAlone work = "one write at home, seen at the cloud"
	liveUpAmong work = "one of 200 writes/s at home, seen at the cloud"
	logSize     work = "the log after 10,000 edits of 100 rows"
)

const (
	rate   unit = "req/s"
	median unit = "p50 ms"
	slow   unit = "p99 ms"
	millis unit = "ms"
	mebi   unit = "MiB"

	rowRate    unit = "rows/s"
	secs       unit = "s"
	cpu        unit = "µs of CPU a row"
	readerPeak unit = "MiB, who reads"
	writerPeak unit = "MiB, who is read"
	onLine     unit = "MB on the line"
	asOnce     unit = "of the bytes of once"
	entryCount unit = "entries"
	fileGrowth unit = "KiB more of file"
)

// line is one row of the report with the bound we want to keep.
type line struct {
	work
	unit
	want bound
}

// section is the lines that stand beside one rival.
type section struct {
	rival string
	lines []line
}

// sections are the report, in order.
var sections = []section{{pocketbaseName, serving}, {pouchName, replicating}}

// serving is how a node answers. PocketBase counts all rows for each list
// unless told not to; Tandem's lists have no count, so its one figure stands
// beside both.
var serving = []line{
	{create16, rate, timesAtLeast(5)},
	{create16, median, bound{}},
	{create16, slow, partAtMost(5)},
	{create64, rate, timesAtLeast(7)},
	{create64, median, bound{}},
	{create64, slow, partAtMost(8)},
	{listPlain, rate, timesAtLeast(3)},
	{listPlain, slow, bound{}},
	{listCounted, rate, timesAtLeast(3)},
	{listCounted, slow, bound{}},
	{viewOne, rate, timesAtLeast(4)},
	{viewOne, slow, bound{}},
	{startEmpty, millis, atMost(150)},
	{startAgain, millis, atMost(60)},
	{idle, mebi, atMost(45)},
	{loaded, mebi, atMost(90)},
}

// replicating is how two nodes become alike. What PouchDB has no figure for stands
// alone.
var replicating = []line{
	{firstFetch, rowRate, timesAtLeast(20)},
	{firstFetch, cpu, bound{}},
	{firstFetch, readerPeak, bound{}},
	{firstFetch, writerPeak, bound{}},
	{firstOffer, rowRate, bound{}},
	{firstOffer, cpu, bound{}},
	{firstOffer, readerPeak, bound{}},
	{firstOffer, writerPeak, bound{}},
	{growth, readerPeak, atMost(16)},
	{growth, writerPeak, atMost(16)},
	{farAway, secs, atMost(60)},
	{farAway, onLine, bound{}},
	{farCut, secs, bound{}},
	{farCut, asOnce, atMost(1.3)},
	{liveAlone, median, atMost(3)},
	{liveAlone, slow, atMost(20)},
	{liveAmong, median, atMost(3)},
	{liveAmong, slow, atMost(20)},
	{liveUpAlone, median, atMost(3)},
	{liveUpAlone, slow, atMost(20)},
	{liveUpAmong, median, atMost(3)},
	{liveUpAmong, slow, atMost(20)},
	{logSize, entryCount, atMost(100)},
	{logSize, fileGrowth, atMost(0)},
}

// bound is what a figure should be: wanted is how it reads, met decides. The
// zero bound wants nothing.
type bound struct {
	wanted string
	met    func(ours, theirs float64) bool
	alone  bool // met looks at ours only
}

func timesAtLeast(n float64) bound {
	return bound{fmt.Sprintf(">= %gx", n), func(ours, theirs float64) bool { return ours >= n*theirs }, false}
}

func partAtMost(n float64) bound {
	return bound{fmt.Sprintf("<= 1/%g", n), func(ours, theirs float64) bool { return ours*n <= theirs }, false}
}

func atMost(n float64) bound {
	return bound{fmt.Sprintf("<= %g", n), func(ours, _ float64) bool { return ours <= n }, true}
}

type key struct {
	who string
	work
	unit
}

// figures holds each sample of each round, and the works that went wrong: one
// failed round spoils the figure.
type figures struct {
	samples  map[key][]float64
	failures map[key]error // unit is blank
}

func newFigures() *figures {
	return &figures{samples: map[key][]float64{}, failures: map[key]error{}}
}

func (f *figures) add(who string, w work, u unit, sample float64) {
	k := key{who, w, u}
	f.samples[k] = append(f.samples[k], sample)
}

func (f *figures) addOutcome(who string, w work, o outcome) {
	f.add(who, w, rate, o.perSecond)
	f.add(who, w, median, o.p50.Seconds()*1000)
	f.add(who, w, slow, o.p99.Seconds()*1000)
}

func (f *figures) fail(who string, w work, err error) {
	f.failures[key{who: who, work: w}] = err
}

// middle is the median of the rounds. It is false when there is none, or when
// a round failed.
func (f *figures) middle(who string, w work, u unit) (float64, bool) {
	samples := f.samples[key{who, w, u}]
	if len(samples) == 0 || f.failures[key{who: who, work: w}] != nil {
		return 0, false
	}
	return medianOf(samples), true
}

// quantile is the smallest sample that at least so much of them do not exceed. It
// wants one sample at least.
func quantile(samples []float64, part float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}

// medianOf wants at least one sample; of an even number it takes the mean of
// the two in the middle.
func medianOf(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
