package letters_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync/letters"
)

func TestLetterCrossesAndActsOnce(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	cloud.send(letter("a", "ann"), letter("b", "ann"))
	equal(t, "woken", cloud.woken, 2)
	cloud.send(letter("a", "ann")) // done twice
	equal(t, "woken by the same letter", cloud.woken, 2)
	equal(t, "crossed", cross(cloud, home), 2)
	equal(t, "done", home.done(), "a b")
	equal(t, "waits", cloud.waits(), false)
	cloud.send(letter("a", "ann"))
	equal(t, "crossed again", cross(cloud, home), 0)
	equal(t, "done", home.done(), "a b")
}

func TestLetterOfATransactionThatFailedIsNotSent(t *testing.T) {
	cloud := newNode(t)
	err := cloud.db.Write(t.Context(), func(tx *sqlite.Tx) error { return errors.Join(cloud.box.SendTx(tx, letter("a", "ann")), errBusy) })
	if !errors.Is(err, errBusy) {
		t.Error(err)
	}
	equal(t, "waits", cloud.waits(), false)
	equal(t, "woken", cloud.woken, 0)
}

// The ack is lost on its way, again and again, and both nodes are started anew.
func TestAckThatWasLostRepeatsNothing(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	cloud.send(letter("a", "ann"), letter("b", "ben"))
	for range 3 {
		equal(t, "acked", home.receive(cloud.offered()), "a b")
		home.restart()
		cloud.restart()
		equal(t, "waits", cloud.waits(), true)
	}
	equal(t, "done", home.done(), "a b")
	cross(cloud, home)
	equal(t, "waits", cloud.waits(), false)
	equal(t, "done", home.done(), "a b")
}

// A process that dies within the handler leaves neither its effect nor the key.
func TestDeathWithinTheHandlerLeavesNothing(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	cloud.send(letter("a", "ann"))
	home.refuse["a"] = errBusy
	cross(cloud, home)
	equal(t, "done", home.done(), "")
	home.restart()
	delete(home.refuse, "a")
	cross(cloud, home)
	equal(t, "done", home.done(), "a")
}

func TestOwnerWhoseLetterFailsStopsAndNobodyElseDoes(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	cloud.send(letter("a1", "ann"), letter("a2", "ann"), letter("b1", "ben"), letter("a3", "ann"), letter("b2", "ben"))
	home.refuse["a2"] = fault.New(fault.Unavailable, "model_away", "The model is away.").Because(errBusy)
	c := cloud.offered()
	ack, err := home.box.Receive(t.Context(), c.after, c.letters)
	equal(t, "acked", fmt.Sprint(ack), "[a1 b1 b2]")
	if !errors.Is(err, errBusy) {
		t.Errorf("the failure is told: %v", err)
	}
	cloud.acked(c, ack...)
	equal(t, "offered", keys(cloud.offered()), "a2 a3")
	delete(home.refuse, "a2")
	cross(cloud, home)
	equal(t, "done", home.done(), "a1 b1 b2 a2 a3")
}

func TestOwnerWithManyLettersDoesNotFillEachCall(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	home.refuse["a0"] = errBusy
	for i := range 150 {
		cloud.send(letter(fmt.Sprint("a", i), "ann"))
	}
	cloud.send(letter("b0", "ben"), letter("b1", "ben"))
	cross(cloud, home)
	equal(t, "done", home.done(), "b0 b1")
	delete(home.refuse, "a0")
	equal(t, "crossed", cross(cloud, home), 100)
	equal(t, "crossed", cross(cloud, home), 50)
	equal(t, "waits", cloud.waits(), false)
	want := "b0 b1"
	for i := range 150 {
		want += fmt.Sprint(" a", i)
	}
	equal(t, "done", home.done(), want)
}

// A call that was delayed comes after a later one, and one comes twice at once.
func TestLettersThatComeInAnotherOrderActOnceAndInTheirs(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	cloud.send(letter("a", "ann"), letter("b", "ann"))
	delayed := cloud.offered()
	cloud.send(letter("c", "ann"))
	equal(t, "acked", home.receive(cloud.offered()), "a b c")
	equal(t, "acked", home.receive(delayed), "a b")
	delayed.letters = append(delayed.letters, delayed.letters...)
	equal(t, "acked", home.receive(delayed), "a b a b")
	equal(t, "done", home.done(), "a b c")
	cloud.acked(delayed, "a", "unknown", "c", "a")
	equal(t, "offered", keys(cloud.offered()), "b")
	cloud.acked(cloud.offered())
	equal(t, "acked", home.receive(cloud.offered()), "b")
}

func TestLettersOfOneCallAreBoundedInBytes(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	for i := range 9 {
		l := letter(fmt.Sprint(i), []string{"ann", "ben"}[i%2])
		l.Body = text(200 << 10)
		cloud.send(l)
	}
	for _, want := range []int{5, 4, 0} {
		equal(t, "crossed", cross(cloud, home), want)
	}
	equal(t, "done", home.done(), "0 1 2 3 4 5 6 7 8")
}

// What came by the end of one life may be gone in the next; what did not is there.
func TestReaderThatWasPutBackIsOfferedAgainWhatItLost(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	cloud.send(letter("a", "ann"))
	cross(cloud, home)
	old := home.backup()
	cloud.send(letter("b", "ann"), letter("c", "ann"))
	cross(cloud, home)
	equal(t, "done", home.done(), "a b c")
	home.restore(old)
	equal(t, "done", home.done(), "a")
	woken := cloud.woken
	equal(t, "crossed", cross(cloud, home), 3)
	equal(t, "woken", cloud.woken, woken+1)
	equal(t, "done", home.done(), "a b c")
	equal(t, "crossed after that", cross(cloud, home), 0)
}

// The reader's disk had promised more than it kept, and nothing else tells of it: what
// comes next tells, and is not taken before what was lost.
func TestReaderThatLostItsTailAndGoesOnTakesWhatItLostFirst(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	cloud.send(letter("a", "ann"))
	cross(cloud, home)
	old := home.backup()
	cloud.send(letter("b", "ann"))
	cross(cloud, home)
	home.restore(old)
	cloud.send(letter("c", "ben"))
	c := cloud.offered()
	equal(t, "offered", keys(c), "c")
	if _, err := home.box.Receive(t.Context(), c.after, c.letters); !errors.Is(err, letters.ErrPutBack) {
		t.Errorf("what was lost is noticed: %v", err)
	}
	equal(t, "done", home.done(), "a")
	cross(cloud, home)
	equal(t, "done", home.done(), "a b c")
}

// An ack that was under way while the reader was put back says nothing of what it lost.
func TestAckFromBeforeALossIsVoid(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	old := home.backup()
	cloud.send(letter("a", "ann"))
	first := cloud.offered()
	cross(cloud, home)
	cloud.send(letter("b", "ann"))
	c := cloud.offered()
	equal(t, "acked", home.receive(c), "b")
	home.restore(old)
	cross(cloud, home)
	equal(t, "done", home.done(), "a b")
	home.restore(old)
	cross(cloud, home)
	cloud.send(letter("c", "ann"))
	cloud.acked(c, "b", "c")
	cloud.acked(first, "c")
	equal(t, "offered", keys(cloud.offered()), "c")
	must(t, cloud.box.OfferAgain(t.Context(), c.after)) // and so does a loss that was made good
	equal(t, "offered", keys(cloud.offered()), "c")
}

func TestLetterIsKept30DaysAfterItsAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, home := newNode(t), newNode(t)
		home.refuse["bad"] = fault.New(fault.Conflict, "already_answered", "You have already answered that.")
		for i := range 450 {
			cloud.send(letter(fmt.Sprint("a", i), "ann"))
		}
		cloud.send(letter("bad", "ann"))
		time.Sleep(100 * 24 * time.Hour) // the reader is away
		cloud.purge()
		equal(t, "kept", cloud.count("letters_sent"), 451)
		for cross(cloud, home) > 0 {
		}
		cloud.send(letter("late", "ann"))
		time.Sleep(30*24*time.Hour - time.Millisecond)
		cloud.acked(cloud.offered(), "a0") // again
		cloud.purge()
		home.purge()
		equal(t, "kept a little less than 30 days", cloud.count("letters_sent"), 452)
		equal(t, "parked", home.parked(), "bad: already_answered")
		time.Sleep(time.Millisecond)
		cloud.purge()
		home.purge()
		equal(t, "offered", keys(cloud.offered()), "late")
		equal(t, "kept after 30 days", cloud.count("letters_sent"), 1)
		equal(t, "parked", home.parked(), "")
	})
}

// A sender that was put back to long ago offers what both had forgotten.
func TestLetterActsOnceHoweverOldTheSendersBackupIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, home := newNode(t), newNode(t)
		cloud.send(letter("a", "ann"))
		old := cloud.backup()
		cross(cloud, home)
		time.Sleep(300 * 24 * time.Hour)
		cloud.purge()
		home.purge()
		equal(t, "kept", cloud.count("letters_sent"), 0)
		cloud.restore(old)
		equal(t, "crossed", cross(cloud, home), 1)
		equal(t, "done", home.done(), "a")
		equal(t, "waits", cloud.waits(), false)
	})
}

func TestReceiveEndsWithItsCaller(t *testing.T) {
	home := newNode(t)
	ended, end := context.WithCancel(t.Context())
	end()
	ack, err := home.box.Receive(ended, "", []letters.Letter{letter("a", "ann"), letter("b", "ben")})
	if !errors.Is(err, context.Canceled) || len(ack) > 0 {
		t.Errorf("%v, %v", ack, err)
	}
	equal(t, "done", home.done(), "")
}
